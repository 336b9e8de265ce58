// Pad: adds elements around a tensor or, with negative pads, removes some.
#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>

#include "ops/framework/element.h"
#include "ops/framework/op_row.h"
#include "ops/tensor/pad_axes.h"

namespace tenon {
namespace {

Status InferPads(const Dims& pads, const std::optional<Shape>& axes, PadMode mode,
                 ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, PaddedShape(std::move(x), pads, axes, mode));
  return context.SetOutput(0, std::move(y));
}

// Copies `count` elements. Calls of memcpy would take longer than the copies of short rows.
template <class T>
void CopyElements(const T* from, T* to, int64_t count) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    constexpr size_t kStep = 16, kMost = 512;
    const size_t bytes = static_cast<size_t>(count) * sizeof(T);
    if (bytes >= kStep && bytes <= kMost) {
      const auto* source = reinterpret_cast<const std::byte*>(from);
      auto* target = reinterpret_cast<std::byte*>(to);
      for (size_t at = 0; at + kStep < bytes; at += kStep) {
        std::memcpy(target + at, source + at, kStep);
      }
      std::memcpy(target + bytes - kStep, source + bytes - kStep, kStep);
      return;
    }
  }
  std::copy_n(from, count, to);
}

template <class T>
void FillElements(T* to, int64_t count, T value) {  // by value: it is not a part of `to`
  for (int64_t i = 0; i < count; ++i) to[i] = value;
}

// Output rows are copied one by one: padding before, the middle in one piece, and padding after.
template <class T>
class Padding {
 public:
  // There is at least one axis.
  Padding(const T* input, T* output, const PadAxes& axes, PadMode mode, T value)
      : input_(input),
        output_(output),
        axes_(axes.span()),
        sources_(axes.sources()),
        mode_(mode),
        value_(std::move(value)) {}

  void Run(ThreadPool& threads) const {
    size_t rows = 1;
    for (const PadAxis& axis : axes_.first(axes_.size() - 1)) rows *= static_cast<size_t>(axis.out);
    threads.ParallelFor(rows, CopyGrain(static_cast<size_t>(axes_.back().out) * sizeof(T)),
                        [&](size_t begin, size_t end) {
                          for (size_t row = begin; row < end;) row += CopyRows(row, end);
                        });
  }

 private:
  // Rows of the output from `row` on, at most to `end`, which differ only in the index of the last
  // axis but one. Returns their number.
  size_t CopyRows(size_t row, size_t end) const {
    const size_t outer = std::max<size_t>(axes_.size(), 2) - 2;
    const PadAxis inner = axes_.size() < 2 ? PadAxis{0, 0, 1, 1, 1} : axes_[outer];
    auto rest = static_cast<int64_t>(row) / inner.out;
    int64_t at = static_cast<int64_t>(row) % inner.out;
    const auto count = std::min<size_t>(end - row, static_cast<size_t>(inner.out - at));
    int64_t above = 0, stride = 1;
    for (size_t i = outer; i-- > 0 && above >= 0;) {
      const int64_t source = axes_[i].SourceOf(rest % axes_[i].out, mode_);
      above = source < 0 ? -1 : above + source * stride;
      stride *= axes_[i].in;
      rest /= axes_[i].out;
    }
    T* target = output_ + static_cast<int64_t>(row) * axes_.back().out;
    const auto end_at = at + static_cast<int64_t>(count);
    while (at < end_at) {
      // Where rows are neighbours in the input, too, the next one is known.
      const int64_t source = above < 0 ? -1 : inner.SourceOf(at, mode_);
      const bool is_kept = at >= inner.before && at < inner.before + inner.kept;
      int64_t next = at + 1;
      if (source < 0) {
        next = above >= 0 && at < inner.before ? std::min(end_at, inner.before) : end_at;
        std::fill_n(target, (next - at) * axes_.back().out, value_);
      } else {
        if (is_kept) next = std::min({end_at, inner.before + inner.kept, at + kRows});
        CopyNeighbours(above * inner.in + source, next - at, target);
      }
      target += (next - at) * axes_.back().out;
      at = next;
    }
    return count;
  }

  static constexpr int64_t kRows = 16;  // at once: their ends are padded after the copies

  // Rows of the input from `row` on.
  void CopyNeighbours(int64_t row, int64_t count, T* target) const {
    const PadAxis last = axes_.back();
    const T* const first = input_ + row * last.in;
    const int64_t after = last.before + last.kept;
    for (int64_t i = 0; i < count; ++i) {
      CopyElements(first + i * last.in + last.first, target + i * last.out + last.before,
                   last.kept);
    }
    if (mode_ == PadMode::kConstant) {
      // What comes after a row and what comes before the next one are neighbours.
      FillElements(target, last.before, value_);
      for (int64_t i = 1; i < count; ++i) {
        FillElements(target + (i - 1) * last.out + after, last.out - last.kept, value_);
      }
      FillElements(target + (count - 1) * last.out + after, last.out - after, value_);
      return;
    }
    const int64_t *const before = sources_.data(), *const behind = before + last.before;
    for (int64_t i = 0; i < count; ++i) {
      const T* const source = first + i * last.in;
      T *const begin = target + i * last.out, *const end = begin + after;
      for (int64_t k = 0; k < last.before; ++k) begin[k] = source[before[k]];
      for (int64_t k = 0; k < last.out - after; ++k) end[k] = source[behind[k]];
    }
  }

  const T* input_;
  T* output_;
  std::span<const PadAxis> axes_;
  std::span<const int64_t> sources_;
  PadMode mode_;
  T value_;
};

// `value` points to an element of the input's type, or is null for the type's zero.
Status RunPads(const Shape& pads, const std::optional<Shape>& axes, PadMode mode, const void* value,
               KernelContext& context) {
  const Tensor& input = context.Input(0);
  Tensor& output = context.Output(0);
  if (output.size() == 0) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const PadAxes pad_axes,
                         PadAxes::Make(input.shape(), output.shape(), pads, axes, mode));
  VisitElement(input.type(), [&](auto element) {
    using T = decltype(element);
    const T constant = value ? *static_cast<const T*>(value) : T();
    Padding<T>(input.data<T>(), output.data<T>(), pad_axes, mode, constant).Run(context.threads());
  });
  return OkStatus();
}

// Pad-18; Pad-11 and 13 lack the axes.
struct PadAttrs {
  std::string mode;
  static constexpr auto Fields() { return std::tuple(Field("mode", &PadAttrs::mode)); }
};

Status InferPad(const PadAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const PadMode mode, PadModeFromName(attrs.mode));
  TENON_ASSIGN_OR_RETURN(const Dims pads, context.InputAsDims(1));
  std::optional<Shape> axes;
  if (context.HasInput(3)) {
    TENON_ASSIGN_OR_RETURN(axes, context.InputAsInts(3));
  }
  return InferPads(pads, axes, mode, context);
}

Status RunPad(const PadAttrs& attrs, KernelContext& context) {
  TENON_ASSIGN_OR_RETURN(const PadMode mode, PadModeFromName(attrs.mode));
  TENON_ASSIGN_OR_RETURN(const Shape pads, IntegersOf(context.Input(1)));
  std::optional<Shape> axes;
  if (context.HasInput(3)) {
    TENON_ASSIGN_OR_RETURN(axes, IntegersOf(context.Input(3)));
  }
  const void* value = nullptr;
  if (context.HasInput(2)) {
    const Tensor& constant = context.Input(2);
    if (constant.size() != 1 || constant.type() != context.Input(0).type()) {
      return InvalidArgument("input 2: expected one element of type {}, got {} {}",
                             DataTypeName(context.Input(0).type()), DataTypeName(constant.type()),
                             constant.shape());
    }
    value = constant.raw();
  }
  return RunPads(pads, axes, mode, value, context);
}

// Pad-2: pads and value are attributes. Pad-1 spells the first `paddings`.
struct Pad2Attrs {
  std::string mode;
  std::vector<int64_t> pads, paddings;
  float value = 0;
  static constexpr auto Fields() {
    return std::tuple(Field("mode", &Pad2Attrs::mode), Field("pads", &Pad2Attrs::pads),
                      Field("paddings", &Pad2Attrs::paddings), Field("value", &Pad2Attrs::value));
  }
  const std::vector<int64_t>& any_pads() const { return pads.empty() ? paddings : pads; }
};

Status InferPad2(const Pad2Attrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const PadMode mode, PadModeFromName(attrs.mode));
  const std::vector<int64_t>& pads = attrs.any_pads();
  return InferPads(Dims(pads.begin(), pads.end()), std::nullopt, mode, context);
}

Status RunPad2(const Pad2Attrs& attrs, KernelContext& context) {
  TENON_ASSIGN_OR_RETURN(const PadMode mode, PadModeFromName(attrs.mode));
  return VisitNumber(context.Input(0).type(), [&](auto number) {
    const auto value = static_cast<decltype(number)>(attrs.value);
    return RunPads(Shape(attrs.any_pads()), std::nullopt, mode, &value, context);
  });
}

constexpr OpRow kRows[] = {
    Op<InferPad2, RunPad2>("Pad", {.since = 1, .types = kFloats}),
    Op<InferPad, RunPad>("Pad", {.since = 11, .types = kWholeByteTypes}),
    Op<InferPad, RunPad>("Pad", {.domain = "com.microsoft", .types = kWholeByteTypes}),
};

}  // namespace

TENON_OP_FAMILY(Pad, kRows);

}  // namespace tenon
