#include "ops/tensor/pad_axes.h"

namespace tenon {
namespace {

// Of an axis of `dim` elements, without the sizes.
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

}  // namespace

Result<PadMode> PadModeFromName(std::string_view name) {
  if (name == "constant") return PadMode::kConstant;
  if (name == "reflect") return PadMode::kReflect;
  if (name == "edge") return PadMode::kEdge;
  if (name == "wrap") return PadMode::kWrap;
  return InvalidArgument("attribute 'mode': expected constant, reflect, edge or wrap, got '{}'",
                         name);
}

Result<SymbolicShape> PaddedShape(SymbolicShape shape, const Dims& pads,
                                  const std::optional<Shape>& axes, PadMode mode) {
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
  return shape;
}

Result<PadAxes> PadAxes::Make(const Shape& in, const Shape& out, const Shape& pads,
                              const std::optional<Shape>& axes, PadMode mode) {
  const size_t rank = in.rank();
  if (rank > kMaxRank) return NotImplemented("tensors of more than {} axes", kMaxRank);
  PadAxes result;
  for (size_t i = 0; i < rank; ++i) result.axes_[i].kept = in[i];
  const size_t count = axes ? axes->rank() : rank;
  for (size_t i = 0; i < count; ++i) {
    size_t axis = i;
    if (axes) {
      TENON_ASSIGN_OR_RETURN(axis, NormalizeAxis((*axes)[i], rank));
    }
    TENON_ASSIGN_OR_RETURN(result.axes_[axis],
                           MakePadAxis(in[axis], pads[i], pads[i + count], axis));
  }
  for (size_t i = 0; i < rank; ++i) {
    result.axes_[i].in = in[i];
    result.axes_[i].out = out[i];
  }
  if (rank == 0) result.axes_[0] = {0, 0, 1, 1, 1};
  result.count_ = std::max<size_t>(1, rank);
  result.Merge(mode);
  if (mode != PadMode::kConstant) result.FindSources(mode);
  return result;
}

void PadAxes::FindSources(PadMode mode) {
  const PadAxis& last = axes_[count_ - 1];
  for (int64_t i = 0; i < last.out; ++i) {
    if (i == last.before) i += last.kept;
    if (i < last.out) sources_.push_back(last.SourceOf(i, mode));
  }
}

// Merges axes if one can absorb the other: an outer one of a single element, or an inner one that
// is whole, if the outer one is whole too or is padded with a constant.
void PadAxes::Merge(PadMode mode) {
  constexpr int64_t kLongRow = 1024;  // elements that are worth a separate copy
  size_t merged = 0;
  for (size_t i = 0; i < count_; ++i) {
    const PadAxis& inner = axes_[i];
    PadAxis* outer = merged == 0 ? nullptr : &axes_[merged - 1];
    const int64_t size = inner.in;
    if (outer && outer->is_whole() && outer->in == 1) {
      *outer = inner;
    } else if (outer && inner.is_whole() &&
               (size == 1 || outer->is_whole() ||
                (mode == PadMode::kConstant && size < kLongRow))) {
      *outer = {outer->before * size, outer->first * size, outer->kept * size, outer->in * size,
                outer->out * size};
    } else {
      axes_[merged++] = inner;
    }
  }
  count_ = merged;
}

}  // namespace tenon
