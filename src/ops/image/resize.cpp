// Resize and Upsample: attributes and shapes.
#include "ops/image/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/framework/element.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// Resize-19; earlier versions lack some of these.
struct ResizeAttrs {
  std::string mode = "nearest";
  std::string coordinate_transformation_mode = "half_pixel";
  std::string nearest_mode = "round_prefer_floor";
  std::string keep_aspect_ratio_policy = "stretch";
  float cubic_coeff_a = -0.75f;
  float extrapolation_value = 0;
  bool exclude_outside = false;
  bool antialias = false;
  std::optional<std::vector<int64_t>> axes;
  static constexpr auto Fields() {
    using A = ResizeAttrs;
    return std::tuple(Field("mode", &A::mode),
                      Field("coordinate_transformation_mode", &A::coordinate_transformation_mode),
                      Field("nearest_mode", &A::nearest_mode),
                      Field("keep_aspect_ratio_policy", &A::keep_aspect_ratio_policy),
                      Field("cubic_coeff_a", &A::cubic_coeff_a),
                      Field("extrapolation_value", &A::extrapolation_value),
                      Field("exclude_outside", &A::exclude_outside),
                      Field("antialias", &A::antialias), Field("axes", &A::axes));
  }
};

// floor(in * scale), in the precision of ONNX's own shape inference.
Result<int64_t> ScaledSize(int64_t in, float scale) {
  constexpr int64_t kExact = int64_t{1} << 24;  // floats below are exact
  constexpr double kMost = 4e18;
  if (!(scale > 0) || std::isinf(scale)) {
    return InvalidArgument("expected scales above 0, got {}", scale);
  }
  if (scale == 1) return in;
  const double size = in < kExact ? static_cast<double>(static_cast<float>(in) * scale)
                                  : static_cast<double>(in) * static_cast<double>(scale);
  if (!(size < kMost)) return InvalidArgument("an axis of {} becomes too long by {}", in, scale);
  return static_cast<int64_t>(size);
}

Result<Dim> ScaledDim(const Dim& in, float scale) {
  constexpr float kMostExact = 1 << 24;
  if (in.is_number()) {
    TENON_ASSIGN_OR_RETURN(const int64_t size, ScaledSize(in.value(), scale));
    return Dim(size);
  }
  TENON_RETURN_IF_ERROR(ScaledSize(1, scale));
  if (scale <= kMostExact && scale == std::floor(scale)) {
    return in * Dim(static_cast<int64_t>(scale));
  }
  int exponent = 0;
  if (scale < 1 && scale > 1 / kMostExact && std::frexp(scale, &exponent) == 0.5f) {
    return FloorDiv(in, Dim(int64_t{1} << (1 - exponent)));
  }
  return Dim::Unknown();
}

// The axes of scales, sizes and roi, in their order: those of the attribute, or all.
Result<std::array<size_t, kMaxResizeRank>> GivenAxes(const ResizeAttrs& attrs, size_t rank,
                                                     size_t* count) {
  if (rank > kMaxResizeRank) {
    return NotImplemented("tensors of more than {} axes", kMaxResizeRank);
  }
  std::array<size_t, kMaxResizeRank> axes{};
  for (size_t i = 0; i < rank; ++i) axes[i] = i;
  *count = rank;
  if (!attrs.axes) return axes;
  *count = attrs.axes->size();
  std::array<bool, kMaxResizeRank> given{};
  for (size_t i = 0; i < *count; ++i) {
    TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis((*attrs.axes)[i], rank));
    if (given[axis]) return InvalidArgument("attribute 'axes': axis {} is given twice", axis);
    given[axis] = true;
    axes[i] = axis;
  }
  return axes;
}

Status CheckCount(std::string_view what, size_t got, size_t expected) {
  if (got == expected) return OkStatus();
  return InvalidArgument("expected {} {}, got {}", expected, what, got);
}

// The one scale of all given axes that keeps their ratios. The sizes are upper or lower limits.
Result<double> CommonScale(std::string_view policy, std::span<const int64_t> in,
                           std::span<const int64_t> sizes) {
  const bool not_larger = policy == "not_larger";
  if (!not_larger && policy != "not_smaller") {
    return InvalidArgument(
        "attribute 'keep_aspect_ratio_policy': expected stretch, not_larger or not_smaller, got "
        "'{}'",
        policy);
  }
  double common = not_larger ? INFINITY : 0;
  for (size_t i = 0; i < in.size(); ++i) {
    const double scale = static_cast<double>(sizes[i]) / static_cast<double>(in[i]);
    common = not_larger ? std::min(common, scale) : std::max(common, scale);
  }
  if (!std::isfinite(common)) {
    return InvalidArgument("expected an axis with elements to keep the aspect ratio of");
  }
  return common;
}

// Rounds half up.
Result<int64_t> RoundedSize(int64_t in, double scale) {
  constexpr double kMost = 4e18;
  const double size = std::floor(static_cast<double>(in) * scale + 0.5);
  if (!(size < kMost)) return InvalidArgument("an axis of {} becomes too long by {}", in, scale);
  return static_cast<int64_t>(size);
}

// Replaces the given axes of `shape` by those sizes, or by the sizes that the policy makes of them.
Status SetSizes(const ResizeAttrs& attrs, std::span<const size_t> axes, std::span<const Dim> sizes,
                SymbolicShape& shape) {
  TENON_RETURN_IF_ERROR(CheckCount("sizes", sizes.size(), axes.size()));
  std::array<int64_t, kMaxResizeRank> in{}, out{};
  bool known = true;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (sizes[i].is_number() && sizes[i].value() < 0) {
      return InvalidArgument("expected sizes >= 0, got {}", sizes[i]);
    }
    known = known && sizes[i].is_number() && shape[axes[i]].is_number();
    if (known) {
      in[i] = shape[axes[i]].value();
      out[i] = sizes[i].value();
    }
  }
  if (attrs.keep_aspect_ratio_policy == "stretch") {
    for (size_t i = 0; i < axes.size(); ++i) shape[axes[i]] = sizes[i];
    return OkStatus();
  }
  for (size_t i = 0; i < axes.size() && !known; ++i) shape[axes[i]] = Dim::Unknown();
  if (!known || axes.empty()) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const double scale,
                         CommonScale(attrs.keep_aspect_ratio_policy, {in.data(), axes.size()},
                                     {out.data(), axes.size()}));
  for (size_t i = 0; i < axes.size(); ++i) {
    TENON_ASSIGN_OR_RETURN(const int64_t size, RoundedSize(in[i], scale));
    shape[axes[i]] = Dim(size);
  }
  return OkStatus();
}

Status SetScaled(std::span<const size_t> axes, std::span<const float> scales,
                 SymbolicShape& shape) {
  TENON_RETURN_IF_ERROR(CheckCount("scales", scales.size(), axes.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    TENON_ASSIGN_OR_RETURN(shape[axes[i]], ScaledDim(shape[axes[i]], scales[i]));
  }
  return OkStatus();
}

// Whether the input is present and has elements: old models use an empty tensor for an absent one.
Result<bool> IsGiven(ShapeContext& context, size_t i) {
  if (!context.HasInput(i)) return false;
  TENON_ASSIGN_OR_RETURN(const SymbolicShape shape, context.InputOfRank(i, 1));
  if (shape[0].is_number()) return shape[0].value() > 0;
  const Tensor* data = context.InputData(i);
  if (data == nullptr) TENON_RETURN_IF_ERROR(UnknownShape());
  return data->size() > 0;
}

Status InferResize(const ResizeAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  size_t count = 0;
  TENON_ASSIGN_OR_RETURN(const auto axes, GivenAxes(attrs, shape.rank(), &count));
  const std::span<const size_t> given(axes.data(), count);
  TENON_ASSIGN_OR_RETURN(const bool has_scales, IsGiven(context, 2));
  TENON_ASSIGN_OR_RETURN(const bool has_sizes, IsGiven(context, 3));
  if (has_scales && has_sizes) return InvalidArgument("expected scales or sizes, got both");
  if (has_sizes) {
    TENON_ASSIGN_OR_RETURN(const Dims sizes, context.InputAsDims(3));
    TENON_RETURN_IF_ERROR(SetSizes(attrs, given, sizes, shape));
  } else if (!has_scales && count > 0) {
    // A node that no run reaches may have empty ones.
    if (!context.HasInput(2) && !context.HasInput(3)) {
      return InvalidArgument("expected scales or sizes, got none");
    }
    for (const size_t axis : given) shape[axis] = Dim::Unknown();
  } else if (has_scales) {
    const Tensor* scales = context.InputData(2);
    for (size_t i = 0; i < count && scales == nullptr; ++i) shape[axes[i]] = Dim::Unknown();
    if (scales) TENON_RETURN_IF_ERROR(SetScaled(given, scales->values<float>(), shape));
  }
  return context.SetOutput(0, std::move(shape));
}

Status Parse(const ResizeAttrs& attrs, ResizePlan& plan) {
  TENON_ASSIGN_OR_RETURN(plan.interpolation.mode, ResizeModeFromName(attrs.mode));
  TENON_ASSIGN_OR_RETURN(plan.interpolation.coordinates,
                         ResizeCoordinatesFromName(attrs.coordinate_transformation_mode));
  TENON_ASSIGN_OR_RETURN(plan.nearest, NearestModeFromName(attrs.nearest_mode));
  plan.interpolation.cubic_coefficient = static_cast<double>(attrs.cubic_coeff_a);
  plan.interpolation.antialias = attrs.antialias;
  plan.interpolation.exclude_outside = attrs.exclude_outside;
  plan.extrapolation_value = attrs.extrapolation_value;
  return OkStatus();
}

// Sizes of all axes, each stretched from one to the other.
Status SetAxes(const Shape& in, const Shape& out, ResizePlan& plan) {
  plan.rank = in.rank();
  for (size_t i = 0; i < in.rank(); ++i) {
    if (in[i] > INT32_MAX) return NotImplemented("an axis of {} elements", in[i]);
    if (in[i] == 0 && out[i] > 0) {
      return InvalidArgument("axis {} has no elements to make {} of", i, out[i]);
    }
    plan.axes[i] = {in[i], out[i], static_cast<double>(out[i]) / static_cast<double>(in[i]), 0, 1};
  }
  return OkStatus();
}

void SetScales(std::span<const size_t> axes, std::span<const float> scales, ResizePlan& plan) {
  for (size_t i = 0; i < axes.size(); ++i) {
    plan.axes[axes[i]].scale = static_cast<double>(scales[i]);
  }
}

Status SetCommonScale(const ResizeAttrs& attrs, std::span<const size_t> axes, const Tensor& sizes,
                      ResizePlan& plan) {
  std::array<int64_t, kMaxResizeRank> in{};
  for (size_t i = 0; i < axes.size(); ++i) in[i] = plan.axes[axes[i]].in;
  TENON_ASSIGN_OR_RETURN(const double scale,
                         CommonScale(attrs.keep_aspect_ratio_policy, {in.data(), axes.size()},
                                     sizes.values<int64_t>()));
  for (const size_t axis : axes) plan.axes[axis].scale = scale;
  return OkStatus();
}

// The roi lists the starts of the given axes, then their ends.
Status SetRoi(std::span<const size_t> axes, const Tensor& roi, ResizePlan& plan) {
  TENON_RETURN_IF_ERROR(
      CheckCount("numbers in roi", static_cast<size_t>(roi.size()), 2 * axes.size()));
  VisitNumber(roi.type(), [&]<class T>(T) {
    for (size_t i = 0; i < axes.size(); ++i) {
      plan.axes[axes[i]].start = static_cast<double>(Widen(roi.data<T>()[i]));
      plan.axes[axes[i]].end = static_cast<double>(Widen(roi.data<T>()[i + axes.size()]));
    }
  });
  return OkStatus();
}

Status RunPlan(const ResizePlan& plan, KernelContext& context) {
  const bool nearest = plan.interpolation.mode == ResizeMode::kNearest;
  return nearest ? RunNearest(plan, context) : RunInterpolation(plan, context);
}

// Runs a plan whose axes have the sizes of input and output alone. `set_scales` is called with the
// axes that are given and the plan, unless the output is empty.
template <class SetScalesFn>
Status RunGiven(const ResizeAttrs& attrs, KernelContext& context, const SetScalesFn& set_scales) {
  const Shape& in = context.Input(0).shape();
  const Shape& out = context.Output(0).shape();
  ResizePlan plan;
  TENON_RETURN_IF_ERROR(Parse(attrs, plan));
  size_t count = 0;
  TENON_ASSIGN_OR_RETURN(const auto axes, GivenAxes(attrs, in.rank(), &count));
  const std::span<const size_t> given(axes.data(), count);
  TENON_RETURN_IF_ERROR(SetAxes(in, out, plan));
  if (context.Output(0).size() == 0) return OkStatus();
  TENON_RETURN_IF_ERROR(set_scales(given, plan));
  if (plan.interpolation.coordinates == ResizeCoordinates::kTfCropAndResize) {
    // Without a roi it is the whole input.
    if (context.HasInput(1) && context.Input(1).size() > 0) {
      TENON_RETURN_IF_ERROR(SetRoi(given, context.Input(1), plan));
    }
  }
  return RunPlan(plan, context);
}

Status RunResize(const ResizeAttrs& attrs, KernelContext& context) {
  return RunGiven(attrs, context, [&](std::span<const size_t> axes, ResizePlan& plan) {
    if (context.HasInput(2) && context.Input(2).size() > 0) {
      SetScales(axes, context.Input(2).values<float>(), plan);
    } else if (!axes.empty() && attrs.keep_aspect_ratio_policy != "stretch") {
      return SetCommonScale(attrs, axes, context.Input(3), plan);
    }
    return OkStatus();
  });
}

// ScaledResize-1 of com.tenon: a part of the gradient of a Resize that keeps the ratios of its
// axes, whose sizes are rounded. So it has both, sizes and the exact scales that lead to them.
Status InferScaledResize(const ResizeAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  size_t count = 0;
  TENON_ASSIGN_OR_RETURN(const auto axes, GivenAxes(attrs, shape.rank(), &count));
  const auto counted = static_cast<int64_t>(count);
  TENON_RETURN_IF_ERROR(CheckInputShape(context, 2, {Dim(counted)}));
  TENON_ASSIGN_OR_RETURN(const Dims sizes, context.InputAsDims(3));
  TENON_RETURN_IF_ERROR(SetSizes({}, {axes.data(), count}, sizes, shape));
  return context.SetOutput(0, std::move(shape));
}

Status RunScaledResize(const ResizeAttrs& attrs, KernelContext& context) {
  return RunGiven(attrs, context, [&](std::span<const size_t> axes, ResizePlan& plan) -> Status {
    const std::span<const double> scales = context.Input(2).values<double>();
    for (size_t i = 0; i < axes.size(); ++i) {
      ResizeAxis& axis = plan.axes[axes[i]];
      axis.scale = scales[i];
      TENON_ASSIGN_OR_RETURN(const int64_t size, RoundedSize(axis.in, axis.scale));
      if (size == axis.out) continue;
      return InvalidArgument("axis {} of {}: expected {} elements by the scale {}, got {}", axes[i],
                             axis.in, size, axis.scale, axis.out);
    }
    return OkStatus();
  });
}

// Resize-10, Upsample-9 and older: asymmetric coordinates, and scales for all axes.
struct OldResizeAttrs {
  std::string mode = "nearest";
  std::vector<float> scales;                       // Upsample-7
  std::optional<float> height_scale, width_scale;  // Upsample-1
  static constexpr auto Fields() {
    using A = OldResizeAttrs;
    return std::tuple(Field("mode", &A::mode), Field("scales", &A::scales),
                      Field("height_scale", &A::height_scale),
                      Field("width_scale", &A::width_scale));
  }
};

enum class OldScales : uint8_t { kHeightAndWidth, kAttribute, kInput };

struct ScaleList {
  std::array<float, kMaxResizeRank> values{};
  size_t count = 0;
  std::span<const float> span() const { return {values.data(), count}; }
};

// `input` is null unless the scales are in it.
template <OldScales from, bool up>
Result<ScaleList> ScalesOf(const OldResizeAttrs& attrs, const Tensor* input, size_t rank) {
  const float pair[] = {1, 1, attrs.height_scale.value_or(1), attrs.width_scale.value_or(1)};
  std::span<const float> scales = attrs.scales;
  if constexpr (from == OldScales::kHeightAndWidth) scales = pair;
  if constexpr (from == OldScales::kInput) scales = input->values<float>();
  if (rank > kMaxResizeRank) return NotImplemented("tensors of more than {} axes", kMaxResizeRank);
  TENON_RETURN_IF_ERROR(CheckCount("scales", scales.size(), rank));
  ScaleList list;
  list.count = rank;
  for (size_t i = 0; i < rank; ++i) {
    if (up && !(scales[i] >= 1)) {
      return InvalidArgument("expected scales of at least 1, got {}", scales[i]);
    }
    list.values[i] = scales[i];
  }
  return list;
}

template <OldScales from, bool up>
Status InferOld(const OldResizeAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  const Tensor* input = from == OldScales::kInput ? context.InputData(1) : nullptr;
  if (from == OldScales::kInput && input == nullptr) {
    for (size_t i = 0; i < shape.rank(); ++i) shape[i] = Dim::Unknown();
    return context.SetOutput(0, std::move(shape));
  }
  TENON_ASSIGN_OR_RETURN(const ScaleList scales, (ScalesOf<from, up>(attrs, input, shape.rank())));
  for (size_t i = 0; i < shape.rank(); ++i) {
    TENON_ASSIGN_OR_RETURN(shape[i], ScaledDim(shape[i], scales.values[i]));
  }
  return context.SetOutput(0, std::move(shape));
}

template <OldScales from, bool up>
Status RunOld(const OldResizeAttrs& attrs, KernelContext& context) {
  const Shape& in = context.Input(0).shape();
  ResizePlan plan;
  TENON_ASSIGN_OR_RETURN(plan.interpolation.mode, ResizeModeFromName(attrs.mode));
  if (plan.interpolation.mode == ResizeMode::kCubic) {
    return InvalidArgument("attribute 'mode': expected nearest or linear, got 'cubic'");
  }
  plan.interpolation.coordinates = ResizeCoordinates::kAsymmetric;
  plan.nearest = NearestMode::kOld;
  const Tensor* input = from == OldScales::kInput ? &context.Input(1) : nullptr;
  TENON_ASSIGN_OR_RETURN(const ScaleList scales, (ScalesOf<from, up>(attrs, input, in.rank())));
  TENON_RETURN_IF_ERROR(SetAxes(in, context.Output(0).shape(), plan));
  if (context.Output(0).size() == 0) return OkStatus();
  for (size_t i = 0; i < in.rank(); ++i) {
    plan.axes[i].scale = static_cast<double>(scales.values[i]);
  }
  return RunPlan(plan, context);
}

template <OldScales from, bool up>
constexpr OpRow Old(std::string_view name, int32_t since, TypeSet types) {
  return Op<InferOld<from, up>, RunOld<from, up>>(name, {.since = since, .types = types});
}

constexpr TypeSet kScaledTypes = {DataType::kFloat, DataType::kDouble};

// Half precision is widened, but picking the nearest element needs no arithmetic.
constexpr OpRow kRows[] = {
    Op<InferResize, RunResize>("Resize", {.since = 11, .types = kWholeByteTypes}),
    Op<InferScaledResize, RunScaledResize>("ScaledResize",
                                           {.domain = "com.tenon", .types = kScaledTypes}),
    Old<OldScales::kInput, false>("Resize", 10, kWholeByteTypes),
    Old<OldScales::kHeightAndWidth, true>("Upsample", 1, kWholeByteTypes),
    Old<OldScales::kAttribute, true>("Upsample", 7, kWholeByteTypes),
    Old<OldScales::kInput, true>("Upsample", 9, kWholeByteTypes),
};

}  // namespace

TENON_OP_FAMILY(Resize, kRows);

}  // namespace tenon
