// Pad: adds elements around a tensor or, with negative pads, removes some.
#include <algorithm>
#include <array>
#include <span>

#include "ops/framework/element.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

enum class PadMode : uint8_t { kConstant, kReflect, kEdge, kWrap };

Result<PadMode> ModeFromName(std::string_view name) {
  if (name == "constant") return PadMode::kConstant;
  if (name == "reflect") return PadMode::kReflect;
  if (name == "edge") return PadMode::kEdge;
  if (name == "wrap") return PadMode::kWrap;
  return InvalidArgument("attribute 'mode': expected constant, reflect, edge or wrap, got '{}'",
                         name);
}

// The padding of one axis: [crop_begin, crop_end) of the input is kept, `before` elements go before
// it.
struct PadAxis {
  int64_t before = 0;
  int64_t first = 0;
  int64_t kept = 0;
  // Elements of the axis in the input and in the output.
  int64_t in = 0;
  int64_t out = 0;

  bool is_whole() const { return kept == in && kept == out; }

  // The input's index at output index `o`, or -1 for a constant.
  int64_t SourceOf(int64_t o, PadMode mode) const {
    int64_t i = o - before;
    if (i >= 0 && i < kept) return first + i;
    switch (mode) {
      case PadMode::kConstant:
        return -1;
      case PadMode::kEdge:
        return first + std::clamp<int64_t>(i, 0, kept - 1);
      case PadMode::kWrap:
        i %= kept;
        return first + (i < 0 ? i + kept : i);
      case PadMode::kReflect:
        break;
    }
    if (kept == 1) return first;
    const int64_t period = 2 * (kept - 1);
    i = i < 0 ? -i : i;
    if (i >= period) i %= period;  // rarely needed: a division takes as long as many copies
    return first + (i < kept ? i : period - i);
  }
};

Result<PadAxis> MakePadAxis(int64_t dim, int64_t begin, int64_t end, size_t axis) {
  PadAxis result;
  result.before = std::max<int64_t>(begin, 0);
  // One end may take what the other adds, as in onnxruntime. (No two such ends overflow.)
  if ((begin < -dim && end >= 0) || (end < -dim && begin >= 0)) {
    if (begin + end < -dim) {
      return InvalidArgument("pads {} and {} take more than the {} elements of axis {}", begin, end,
                             dim, axis);
    }
    result.before = begin + end + dim;
    return result;
  }
  // Checked against dim before negation: -INT64_MIN overflows.
  if (begin < -dim || end < -dim || (begin < 0 && end < 0 && begin + end < -dim)) {
    return InvalidArgument("pads {} and {} take more than the {} elements of axis {}", begin, end,
                           dim, axis);
  }
  result.first = begin < 0 ? -begin : 0;
  result.kept = dim - result.first - (end < 0 ? -end : 0);
  return result;
}

Status InferPads(const Dims& pads, const std::optional<Shape>& axes, PadMode mode,
                 ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  const size_t count = axes ? axes->rank() : shape.rank();
  if (pads.size() != 2 * count) {
    return InvalidArgument("expected {} pads, two for each of {} axes, got {}", 2 * count, count,
                           pads.size());
  }
  PooledVector<bool> padded(shape.rank(), false);
  for (size_t i = 0; i < count; ++i) {
    size_t axis = i;
    if (axes) {
      TENON_ASSIGN_OR_RETURN(axis, NormalizeAxis((*axes)[i], shape.rank()));
    }
    if (padded[axis]) return InvalidArgument("axis {} is given twice", axis);
    padded[axis] = true;
    const Dim begin = pads[i];
    const Dim end = pads[i + count];
    if (shape[axis].is_number() && begin.is_number() && end.is_number()) {
      TENON_ASSIGN_OR_RETURN(const PadAxis pad,
                             MakePadAxis(shape[axis].value(), begin.value(), end.value(), axis));
      const bool adds = begin.value() > 0 || end.value() > 0;
      if (mode != PadMode::kConstant && pad.kept == 0 && adds) {
        return InvalidArgument("axis {} has no elements to pad with", axis);
      }
    }
    shape[axis] = shape[axis] + begin + end;
  }
  return context.SetOutput(0, std::move(shape));
}

// Merges axes if one can absorb the other: an outer one of a single element, or an inner one that
// is whole, if the outer one is whole too or is padded with a constant. Returns the number of
// remaining axes.
size_t MergeAxes(PadAxis* axes, size_t rank, PadMode mode) {
  constexpr int64_t kLongRow = 1024;  // elements that are worth a separate copy
  size_t merged = 0;
  for (size_t i = 0; i < rank; ++i) {
    const PadAxis& inner = axes[i];
    PadAxis* outer = merged == 0 ? nullptr : &axes[merged - 1];
    const int64_t size = inner.in;
    if (outer && outer->is_whole() && outer->in == 1) {
      *outer = inner;
    } else if (outer && inner.is_whole() &&
               (size == 1 || outer->is_whole() ||
                (mode == PadMode::kConstant && size < kLongRow))) {
      *outer = {outer->before * size, outer->first * size, outer->kept * size, outer->in * size,
                outer->out * size};
    } else {
      axes[merged++] = inner;
    }
  }
  return merged;
}

// Output rows are copied one by one: padding before, the middle in one piece, and padding after.
template <class T>
class Padding {
 public:
  // There is at least one axis.
  Padding(const T* input, T* output, std::span<const PadAxis> axes, PadMode mode, T value)
      : input_(input), output_(output), axes_(axes), mode_(mode), value_(std::move(value)) {}

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
    for (size_t i = 0; i < count; ++i, ++at, target += axes_.back().out) {
      const int64_t source = above < 0 ? -1 : inner.SourceOf(at, mode_);
      CopyRow(source < 0 ? -1 : above * inner.in + source, target);
    }
    return count;
  }

  // From row `source_row` of the input, or from the constant if that is negative.
  void CopyRow(int64_t source_row, T* target) const {
    const PadAxis last = axes_.back();
    if (source_row < 0) {
      std::fill_n(target, last.out, value_);
      return;
    }
    const T* source = input_ + source_row * last.in;
    FillFromEnds(source, target, 0, last.before);
    std::copy_n(source + last.first, last.kept, target + last.before);
    FillFromEnds(source, target, last.before + last.kept, last.out);
  }

  void FillFromEnds(const T* source, T* target, int64_t begin, int64_t end) const {
    const PadMode mode = mode_;  // the destination is not a part of these copies
    const PadAxis last = axes_.back();
    if (mode == PadMode::kConstant) {
      std::fill(target + begin, target + end, value_);
    } else {
      for (int64_t i = begin; i < end; ++i) target[i] = source[last.SourceOf(i, mode)];
    }
  }

  const T* input_;
  T* output_;
  std::span<const PadAxis> axes_;
  PadMode mode_;
  T value_;
};

// `value` points to an element of the input's type, or is null for the type's zero.
Status RunPads(const Shape& pads, const std::optional<Shape>& axes, PadMode mode, const void* value,
               KernelContext& context) {
  constexpr size_t kMaxRank = 32;
  const Tensor& input = context.Input(0);
  Tensor& output = context.Output(0);
  if (output.size() == 0) return OkStatus();
  if (input.rank() > kMaxRank) return NotImplemented("tensors of more than {} axes", kMaxRank);
  std::array<PadAxis, kMaxRank> pad_axes;
  for (size_t i = 0; i < input.rank(); ++i) pad_axes[i].kept = input.shape()[i];
  if (input.rank() == 0) pad_axes[0].kept = pad_axes[0].in = pad_axes[0].out = 1;
  const size_t count = axes ? axes->rank() : input.rank();
  for (size_t i = 0; i < count; ++i) {
    size_t axis = i;
    if (axes) {
      TENON_ASSIGN_OR_RETURN(axis, NormalizeAxis((*axes)[i], input.rank()));
    }
    TENON_ASSIGN_OR_RETURN(pad_axes[axis],
                           MakePadAxis(input.shape()[axis], pads[i], pads[i + count], axis));
  }
  for (size_t i = 0; i < input.rank(); ++i) {
    pad_axes[i].in = input.shape()[i];
    pad_axes[i].out = output.shape()[i];
  }
  const size_t rank = MergeAxes(pad_axes.data(), std::max<size_t>(1, input.rank()), mode);
  VisitElement(input.type(), [&](auto element) {
    using T = decltype(element);
    const T constant = value ? *static_cast<const T*>(value) : T();
    Padding<T>(input.data<T>(), output.data<T>(), std::span(pad_axes).first(rank), mode, constant)
        .Run(context.threads());
  });
  return OkStatus();
}

// Pad-18; Pad-11 and 13 lack the axes.
struct PadAttrs {
  std::string mode;
  static constexpr auto Fields() { return std::tuple(Field("mode", &PadAttrs::mode)); }
};

Status InferPad(const PadAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const PadMode mode, ModeFromName(attrs.mode));
  TENON_ASSIGN_OR_RETURN(const Dims pads, context.InputAsDims(1));
  std::optional<Shape> axes;
  if (context.HasInput(3)) {
    TENON_ASSIGN_OR_RETURN(axes, context.InputAsInts(3));
  }
  return InferPads(pads, axes, mode, context);
}

Status RunPad(const PadAttrs& attrs, KernelContext& context) {
  TENON_ASSIGN_OR_RETURN(const PadMode mode, ModeFromName(attrs.mode));
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
  TENON_ASSIGN_OR_RETURN(const PadMode mode, ModeFromName(attrs.mode));
  const std::vector<int64_t>& pads = attrs.any_pads();
  return InferPads(Dims(pads.begin(), pads.end()), std::nullopt, mode, context);
}

Status RunPad2(const Pad2Attrs& attrs, KernelContext& context) {
  TENON_ASSIGN_OR_RETURN(const PadMode mode, ModeFromName(attrs.mode));
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
