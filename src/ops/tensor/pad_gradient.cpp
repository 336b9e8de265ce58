// PadGrad of com.microsoft: every element of dX is the sum of those of dY that Pad copied it to.
#include <algorithm>
#include <span>

#include "ops/framework/element.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/op_row.h"
#include "ops/tensor/pad_axes.h"

namespace tenon {
namespace {

enum Input : size_t { kDy, kShape, kPads, kAxes };

struct PadGradAttrs {
  std::string mode = "constant";
  static constexpr auto Fields() { return std::tuple(Field("mode", &PadGradAttrs::mode)); }
};

Status InferPadGradient(const PadGradAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const PadMode mode, PadModeFromName(attrs.mode));
  TENON_ASSIGN_OR_RETURN(const Dims dims, context.InputAsDims(kShape));
  TENON_ASSIGN_OR_RETURN(const Dims pads, context.InputAsDims(kPads));
  std::optional<Shape> axes;
  if (context.HasInput(kAxes)) {
    TENON_ASSIGN_OR_RETURN(axes, context.InputAsInts(kAxes));
  }
  SymbolicShape x;
  for (const Dim& dim : dims) {
    if (dim.is_number() && dim.value() < 0) {
      return InvalidArgument("input 1: expected sizes >= 0, got {}", dim);
    }
    x.Append(dim);
  }
  TENON_ASSIGN_OR_RETURN(const SymbolicShape y, PaddedShape(x, pads, axes, mode));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kDy, y));
  return context.SetOutput(0, std::move(x));
}

template <class T>
class PadGradient {
 public:
  PadGradient(const T* dy, T* dx, std::span<const PadAxis> axes, PadMode mode)
      : dy_(dy), dx_(dx), axes_(axes), mode_(mode) {
    for (const PadAxis& axis : axes) in_ *= axis.in, out_ *= axis.out;
  }

  // Each task has one index of the first axis, if that is whole, and all that lies behind it.
  void Run(ThreadPool& threads) {
    int64_t tasks = 1;
    if (axes_.size() > 1 && axes_[0].is_whole()) {
      tasks = axes_[0].in;
      axes_ = axes_.subspan(1);
    }
    in_ /= tasks, out_ /= tasks;
    threads.ParallelFor(static_cast<size_t>(tasks),
                        CopyGrain(static_cast<size_t>(in_ + out_) * sizeof(T)),
                        [&](size_t begin, size_t end) {
                          for (size_t task = begin; task < end; ++task) {
                            const auto i = static_cast<int64_t>(task);
                            std::fill_n(dx_ + i * in_, in_, T(0));
                            AddRows(dy_ + i * out_, dx_ + i * in_);
                          }
                        });
  }

 private:
  void AddRows(const T* dy, T* dx) const {
    const size_t last = axes_.size() - 1;
    const int64_t rows = out_ / axes_[last].out;
    for (int64_t row = 0; row < rows; ++row) {
      int64_t at = 0, stride = axes_[last].in, rest = row;
      for (size_t i = last; i-- > 0 && at >= 0; rest /= axes_[i].out, stride *= axes_[i].in) {
        const int64_t source = axes_[i].SourceOf(rest % axes_[i].out, mode_);
        at = source < 0 ? -1 : at + source * stride;
      }
      if (at >= 0) AddRow(dy + row * axes_[last].out, dx + at);
    }
  }

  void AddRow(const T* dy, T* dx) const {
    const PadAxis axis = axes_.back();
    AddEnds(dy, dx, 0, axis.before);
    const T* const from = dy + axis.before;
    T* const to = dx + axis.first;
    for (int64_t i = 0; i < axis.kept; ++i) to[i] += from[i];
    AddEnds(dy, dx, axis.before + axis.kept, axis.out);
  }

  void AddEnds(const T* dy, T* dx, int64_t begin, int64_t end) const {
    if (mode_ == PadMode::kConstant) return;
    for (int64_t i = begin; i < end; ++i) dx[axes_.back().SourceOf(i, mode_)] += dy[i];
  }

  const T* dy_;
  T* dx_;
  std::span<const PadAxis> axes_;
  PadMode mode_;
  int64_t in_ = 1, out_ = 1;  // elements of a task
};

Status RunPadGradient(const PadGradAttrs& attrs, KernelContext& context) {
  TENON_ASSIGN_OR_RETURN(const PadMode mode, PadModeFromName(attrs.mode));
  const Tensor& dy = context.Input(kDy);
  Tensor& dx = context.Output(0);
  if (dx.size() == 0) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const Shape pads, IntegersOf(context.Input(kPads)));
  std::optional<Shape> axes;
  if (context.HasInput(kAxes)) {
    TENON_ASSIGN_OR_RETURN(axes, IntegersOf(context.Input(kAxes)));
  }
  TENON_ASSIGN_OR_RETURN(const PadAxes pad_axes,
                         PadAxes::Make(dx.shape(), dy.shape(), pads, axes, mode));
  const auto run = [&]<class T>(T) {
    if (dy.size() == 0) {
      std::fill_n(dx.data<T>(), dx.size(), T(0));
    } else {
      PadGradient<T>(dy.data<T>(), dx.data<T>(), pad_axes.span(), mode).Run(context.threads());
    }
  };
  dy.type() == DataType::kDouble ? run(0.0) : run(0.0f);
  return OkStatus();
}

constexpr OpRow kRows[] = {
    Op<InferPadGradient, RunPadGradient>(
        "PadGrad", {.domain = "com.microsoft", .types = {DataType::kFloat, DataType::kDouble}}),
};

}  // namespace

TENON_OP_FAMILY(PadGradient, kRows);

}  // namespace tenon
