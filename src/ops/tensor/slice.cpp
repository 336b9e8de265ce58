// Slice: a range of each axis, with steps. Before opset 10 also as Crop and DynamicSlice.
#include <algorithm>
#include <cstring>

#include "ops/framework/element.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/op_row.h"
#include "ops/framework/strided_copy.h"

namespace tenon {
namespace {

// The elements of an axis that NumPy's start:end:step selects.
struct SliceRange {
  int64_t start;
  int64_t step;
  int64_t size;
};

// Both ends are clamped; negative ones count from the end. step is not 0, dim >= 0.
SliceRange ResolveRange(int64_t start, int64_t end, int64_t step, int64_t dim) {
  const int64_t lowest = step > 0 ? 0 : -1;
  const int64_t highest = step > 0 ? dim : dim - 1;
  start = std::clamp(start < 0 ? start + dim : start, step > 0 ? 0 : std::min<int64_t>(0, highest),
                     highest);
  end = std::clamp(end < 0 ? end + dim : end, lowest, highest);
  const int64_t distance = step > 0 ? end - start : start - end;
  if (distance <= 0 || dim == 0) return {0, 1, 0};
  // Magnitude as unsigned: -INT64_MIN does not fit.
  const uint64_t magnitude = step > 0 ? static_cast<uint64_t>(step) : -static_cast<uint64_t>(step);
  const auto size = static_cast<int64_t>((static_cast<uint64_t>(distance) - 1) / magnitude + 1);
  return {start, size > 1 ? step : 1, size};
}

// The size of a slice of a symbolic axis if it can be determined; otherwise unknown.
Dim SymbolicSize(const Dim& start, const Dim& end, int64_t step, const Dim& dim) {
  constexpr int64_t kFar = INT32_MAX;  // "to the end", as exporters write it
  if (step == -1 && dim.is_number() == false && start == Dim(-1) && end.is_number() &&
      end.value() < -kFar) {
    return dim;
  }
  if (step != 1 || !start.is_number()) return Dim::Unknown();
  const int64_t first = start.value();
  if (!end.is_number()) {
    if (first != 0) return Dim::Unknown();
    if (end == dim) return dim;
    return end.symbol_name().empty() ? Dim::Unknown() : Min(dim, end);
  }
  const int64_t last = end.value();
  if (last >= kFar) {
    if (first == 0) return dim;
    return first < 0 ? Min(dim, Dim(0) - Dim(first)) : dim - Min(dim, Dim(first));
  }
  if (first == 0) return last >= 0 ? Min(dim, Dim(last)) : Max(dim + Dim(last), Dim(0));
  return Dim::Unknown();
}

// The start, end and step of every axis that is sliced.
struct SliceRequest {
  Dims starts, ends;
  Shape axes, steps;
};

// `shape` becomes that of the ranges, and `elements`, if they are known, those selected.
Status SelectRanges(const SliceRequest& request, SymbolicShape& shape,
                    std::optional<Dims>& elements) {
  PooledVector<bool> sliced(shape.rank(), false);
  if (shape.rank() != 1) elements.reset();
  for (size_t i = 0; i < request.starts.size(); ++i) {
    TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(request.axes[i], shape.rank()));
    if (sliced[axis]) return InvalidArgument("axis {} is given twice", axis);
    sliced[axis] = true;
    const Dim start = request.starts[i];
    const Dim end = request.ends[i];
    const int64_t step = request.steps[i];
    if (step == 0) return InvalidArgument("expected a step other than 0 for axis {}, got 0", axis);
    if (!start.is_number() || !end.is_number() || !shape[axis].is_number()) {
      elements.reset();
      shape[axis] = SymbolicSize(start, end, step, shape[axis]);
      continue;
    }
    const SliceRange range = ResolveRange(start.value(), end.value(), step, shape[axis].value());
    if (elements) {
      Dims selected;
      for (int64_t k = 0; k < range.size; ++k) {
        const auto index = static_cast<size_t>(range.start + k * range.step);
        if (index < elements->size()) selected.push_back((*elements)[index]);
      }
      elements = std::move(selected);
    }
    shape[axis] = Dim(range.size);
  }
  return OkStatus();
}

Status InferRanges(const SliceRequest& request, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  std::optional<Dims> elements = context.KnownDims(0);
  TENON_RETURN_IF_ERROR(SelectRanges(request, shape, elements));
  if (elements) context.SetOutputDims(0, std::move(*elements));
  return context.SetOutput(0, std::move(shape));
}

Status CheckLengths(size_t starts, size_t ends, size_t axes, size_t steps) {
  if (starts == ends && starts == axes && starts == steps) return OkStatus();
  return InvalidArgument("expected as many starts, ends, axes and steps, got {}, {}, {}, {}",
                         starts, ends, axes, steps);
}

Shape FirstAxes(size_t count) {
  Shape axes(count, 0);
  for (size_t i = 0; i < count; ++i) axes[i] = static_cast<int64_t>(i);
  return axes;
}

// The ranges in the inputs from `i` on: starts, ends, axes and steps.
Result<SliceRequest> RequestFrom(ShapeContext& context, size_t i) {
  SliceRequest request;
  TENON_ASSIGN_OR_RETURN(request.starts, context.InputAsDims(i));
  TENON_ASSIGN_OR_RETURN(request.ends, context.InputAsDims(i + 1));
  if (context.HasInput(i + 2)) {
    TENON_ASSIGN_OR_RETURN(request.axes, context.InputAsInts(i + 2));
  } else {
    request.axes = FirstAxes(request.starts.size());
  }
  if (context.HasInput(i + 3)) {
    TENON_ASSIGN_OR_RETURN(request.steps, context.InputAsInts(i + 3));
  } else {
    request.steps = Shape(request.starts.size(), 1);
  }
  TENON_RETURN_IF_ERROR(CheckLengths(request.starts.size(), request.ends.size(),
                                     request.axes.rank(), request.steps.rank()));
  return request;
}

// Slice-10, 11, 13.
Status InferSlice(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SliceRequest request, RequestFrom(context, 1));
  return InferRanges(request, context);
}

// SliceGrad-1 of com.microsoft: dY, the shape of X, and the ranges. dX is 0 elsewhere.
Status InferSliceGradient(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const Dims dims, context.InputAsDims(1));
  SymbolicShape x;
  for (const Dim& dim : dims) {
    if (dim.is_number() && dim.value() < 0) {
      return InvalidArgument("input 1: expected sizes >= 0, got {}", dim);
    }
    x.Append(dim);
  }
  TENON_RETURN_IF_ERROR(context.SetOutput(0, x));
  TENON_ASSIGN_OR_RETURN(const SliceRequest request, RequestFrom(context, 2));
  std::optional<Dims> elements;
  TENON_RETURN_IF_ERROR(SelectRanges(request, x, elements));
  return CheckInputShape(context, 0, x);
}

// Copies the ranges of a tensor of shape `shape`: from input 0, which is one, or into output 0 if
// it is one. Inputs have been checked by the shape function.
Status CopyRanges(const Shape& starts, const Shape& ends, const Shape& axes, const Shape& steps,
                  KernelContext& context, bool into = false) {
  const Tensor& input = context.Input(0);
  const Shape& shape = into ? context.Output(0).shape() : input.shape();
  const size_t rank = shape.rank();
  Shape first(rank, 0), step(rank, 1), size(shape);
  for (size_t i = 0; i < starts.rank(); ++i) {
    TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(axes[i], rank));
    const SliceRange range = ResolveRange(starts[i], ends[i], steps[i], shape[axis]);
    first[axis] = range.start;
    step[axis] = range.step;
    size[axis] = range.size;
  }
  Tensor& output = context.Output(0);
  if (input.size() == 0 || output.size() == 0) return OkStatus();
  StridedCopy copy(input.type());
  int64_t whole_stride = shape.NumElements();
  int64_t part_stride = size.NumElements();
  int64_t offset = 0;
  for (size_t i = 0; i < rank; ++i) {
    whole_stride /= shape[i];
    part_stride /= size[i];
    offset += first[i] * whole_stride;
    const int64_t stride = whole_stride * step[i];
    TENON_RETURN_IF_ERROR(
        copy.AddAxis(size[i], into ? part_stride : stride, into ? stride : part_stride));
  }
  offset *= static_cast<int64_t>(DataTypeBits(input.type()) / 8);
  const auto* source = static_cast<const char*>(input.raw());
  auto* target = static_cast<char*>(output.raw());
  return into ? copy.Run(source, target + offset, context.threads())
              : copy.Run(source + offset, target, context.threads());
}

// The ranges begin at input `i`.
Status RunRanges(size_t i, bool into, KernelContext& context) {
  TENON_ASSIGN_OR_RETURN(const Shape starts, IntegersOf(context.Input(i)));
  TENON_ASSIGN_OR_RETURN(const Shape ends, IntegersOf(context.Input(i + 1)));
  Shape axes = FirstAxes(starts.rank());
  Shape steps(starts.rank(), 1);
  if (context.HasInput(i + 2)) {
    TENON_ASSIGN_OR_RETURN(axes, IntegersOf(context.Input(i + 2)));
  }
  if (context.HasInput(i + 3)) {
    TENON_ASSIGN_OR_RETURN(steps, IntegersOf(context.Input(i + 3)));
  }
  return CopyRanges(starts, ends, axes, steps, context, into);
}

Status RunSlice(const NoAttrs&, KernelContext& context) { return RunRanges(1, false, context); }

Status RunSliceGradient(const NoAttrs&, KernelContext& context) {
  Tensor& dx = context.Output(0);
  std::memset(dx.raw(), 0, dx.bytes());
  return RunRanges(2, true, context);
}

// Slice-1: attributes, no steps.
struct Slice1Attrs {
  std::vector<int64_t> starts, ends, axes;
  static constexpr auto Fields() {
    return std::tuple(Field("starts", &Slice1Attrs::starts), Field("ends", &Slice1Attrs::ends),
                      Field("axes", &Slice1Attrs::axes));
  }
};

Status InferSlice1(const Slice1Attrs& attrs, ShapeContext& context) {
  SliceRequest request;
  request.starts.assign(attrs.starts.begin(), attrs.starts.end());
  request.ends.assign(attrs.ends.begin(), attrs.ends.end());
  request.axes = attrs.axes.empty() ? FirstAxes(attrs.starts.size()) : Shape(attrs.axes);
  request.steps = Shape(attrs.starts.size(), 1);
  TENON_RETURN_IF_ERROR(CheckLengths(request.starts.size(), request.ends.size(),
                                     request.axes.rank(), request.steps.rank()));
  return InferRanges(request, context);
}

Status RunSlice1(const Slice1Attrs& attrs, KernelContext& context) {
  Shape axes(attrs.starts.size(), 0);
  for (size_t i = 0; i < axes.rank(); ++i) {
    axes[i] = attrs.axes.empty() ? static_cast<int64_t>(i) : attrs.axes[i];
  }
  return CopyRanges(Shape(attrs.starts), Shape(attrs.ends), axes, Shape(axes.rank(), 1), context);
}

// Crop-1: images [N, C, H, W] without a border (left, top, right, bottom) or, with `scale` (height,
// width), the part of this size after the left and the top border.
struct CropAttrs {
  std::vector<int64_t> border, scale;
  static constexpr auto Fields() {
    return std::tuple(Field("border", &CropAttrs::border), Field("scale", &CropAttrs::scale));
  }
};

constexpr bool IsNegative(int64_t number) { return number < 0; }

Status InferCrop(const CropAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.InputOfRank(0, 4));
  const std::vector<int64_t>&border = attrs.border, &scale = attrs.scale;
  if (border.size() != 4 || std::any_of(border.begin(), border.end(), IsNegative)) {
    return InvalidArgument("attribute 'border': expected 4 numbers >= 0, got {}", Shape(border));
  }
  if ((!scale.empty() && scale.size() != 2) ||
      std::any_of(scale.begin(), scale.end(), IsNegative)) {
    return InvalidArgument("attribute 'scale': expected 2 numbers >= 0, got {}", Shape(scale));
  }
  for (const size_t i : {0, 1}) {  // height and width
    Dim& dim = shape[2 + i];
    const Dim begin(border[1 - i]), end(scale.empty() ? border[3 - i] : scale[i]);
    const Dim rest = dim - begin - (scale.empty() ? end : Dim(0));
    if (rest.is_number() && rest.value() < (scale.empty() ? 0 : scale[i])) {
      return InvalidArgument("input 0: {} is smaller than what is cropped along axis {}: {} and {}",
                             shape, 2 + i, begin, end);
    }
    dim = scale.empty() ? rest : end;
  }
  return context.SetOutput(0, std::move(shape));
}

Status RunCrop(const CropAttrs& attrs, KernelContext& context) {
  const Shape& y = context.Output(0).shape();
  const int64_t top = attrs.border[1], left = attrs.border[0];
  return CopyRanges({top, left}, {top + y[2], left + y[3]}, {2, 3}, {1, 1}, context);
}

constexpr OpRow kRows[] = {
    Op<InferCrop, RunCrop>("Crop", {.since = 1, .types = kFloats}),
    Op<InferSlice, RunSlice>("DynamicSlice", {.since = 1, .types = kWholeByteTypes}),
    Op<InferSlice1, RunSlice1>("Slice", {.since = 1, .types = kWholeByteTypes}),
    Op<InferSlice, RunSlice>("Slice", {.since = 10, .types = kWholeByteTypes}),
    Op<InferSliceGradient, RunSliceGradient>("SliceGrad",
                                             {.domain = "com.microsoft", .types = kFloats}),
};

}  // namespace

TENON_OP_FAMILY(Slice, kRows);

}  // namespace tenon
