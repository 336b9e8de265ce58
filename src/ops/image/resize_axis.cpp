#include "ops/image/resize_axis.h"

#include <algorithm>
#include <cmath>

namespace tenon {

Result<ResizeMode> ResizeModeFromName(std::string_view name) {
  if (name == "nearest") return ResizeMode::kNearest;
  if (name == "linear" || name == "bilinear") return ResizeMode::kLinear;  // bilinear: Upsample-1
  if (name == "cubic") return ResizeMode::kCubic;
  return InvalidArgument("attribute 'mode': expected nearest, linear or cubic, got '{}'", name);
}

Result<ResizeCoordinates> ResizeCoordinatesFromName(std::string_view name) {
  if (name == "half_pixel") return ResizeCoordinates::kHalfPixel;
  if (name == "half_pixel_symmetric") return ResizeCoordinates::kHalfPixelSymmetric;
  if (name == "pytorch_half_pixel") return ResizeCoordinates::kPytorchHalfPixel;
  if (name == "align_corners") return ResizeCoordinates::kAlignCorners;
  if (name == "asymmetric") return ResizeCoordinates::kAsymmetric;
  if (name == "tf_half_pixel_for_nn") return ResizeCoordinates::kTfHalfPixelForNn;
  if (name == "tf_crop_and_resize") return ResizeCoordinates::kTfCropAndResize;
  return InvalidArgument(
      "attribute 'coordinate_transformation_mode': expected half_pixel, half_pixel_symmetric, "
      "pytorch_half_pixel, align_corners, asymmetric, tf_half_pixel_for_nn or tf_crop_and_resize, "
      "got '{}'",
      name);
}

Result<NearestMode> NearestModeFromName(std::string_view name) {
  if (name == "round_prefer_floor") return NearestMode::kRoundPreferFloor;
  if (name == "round_prefer_ceil") return NearestMode::kRoundPreferCeil;
  if (name == "floor") return NearestMode::kFloor;
  if (name == "ceil") return NearestMode::kCeil;
  return InvalidArgument(
      "attribute 'nearest_mode': expected round_prefer_floor, round_prefer_ceil, floor or ceil, "
      "got '{}'",
      name);
}

namespace {

// Whether the scale is the ratio of the sizes, except for rounding: models store it as a float.
bool IsScaleOfSizes(const ResizeAxis& axis) {
  const double ratio = static_cast<double>(axis.out) / static_cast<double>(axis.in);
  return static_cast<float>(axis.scale) == static_cast<float>(ratio);
}

// x / scale. With the rounded ratio of the sizes, a position on or between two elements would move.
double OverScale(const ResizeAxis& axis, double x) {
  return IsScaleOfSizes(axis) ? x * static_cast<double>(axis.in) / static_cast<double>(axis.out)
                              : x / axis.scale;
}

}  // namespace

double SourcePosition(const ResizeAxis& axis, ResizeCoordinates coordinates, int64_t o) {
  const auto x = static_cast<double>(o);
  const auto in = static_cast<double>(axis.in);
  // The exact length by the scale, of which `out` is the whole part. ONNX's backend tests use it as
  // length_resized.
  const double resized = IsScaleOfSizes(axis) ? static_cast<double>(axis.out) : axis.scale * in;
  switch (coordinates) {
    case ResizeCoordinates::kHalfPixel:
      return OverScale(axis, x + 0.5) - 0.5;
    case ResizeCoordinates::kHalfPixelSymmetric: {
      // in / 2 * (1 - out / resized)
      const double lacking = resized - static_cast<double>(axis.out);
      return lacking / (2 * axis.scale) + OverScale(axis, x + 0.5) - 0.5;
    }
    case ResizeCoordinates::kPytorchHalfPixel:
      return axis.out > 1 ? OverScale(axis, x + 0.5) - 0.5 : 0;
    case ResizeCoordinates::kAlignCorners:
      return axis.out > 1 ? x * (in - 1) / (resized - 1) : 0;
    case ResizeCoordinates::kAsymmetric:
      return OverScale(axis, x);
    case ResizeCoordinates::kTfHalfPixelForNn:
      // An axis that keeps its size is not shifted by half an element, as in onnxruntime.
      return axis.scale == 1 ? x : OverScale(axis, x + 0.5);
    case ResizeCoordinates::kTfCropAndResize:
      if (axis.out > 1) {
        return axis.start * (in - 1) + x * (axis.end - axis.start) * (in - 1) / (resized - 1);
      }
      return 0.5 * (axis.start + axis.end) * (in - 1);
  }
  return x;
}

namespace {

// The index kept within the axis; NaN gives 0.
int64_t Inside(double index, int64_t in) {
  if (!(index > 0)) return 0;
  return index < static_cast<double>(in - 1) ? static_cast<int64_t>(index) : in - 1;
}

double Round(NearestMode mode, double position, bool shrinks) {
  const double floor = std::floor(position);
  const double fraction = position - floor;
  switch (mode) {
    case NearestMode::kRoundPreferFloor:
      return fraction <= 0.5 ? floor : floor + 1;
    case NearestMode::kRoundPreferCeil:
      return fraction < 0.5 ? floor : floor + 1;
    case NearestMode::kFloor:
      return floor;
    case NearestMode::kCeil:
      return std::ceil(position);
    case NearestMode::kOld:
      return shrinks ? std::ceil(position) : floor;
  }
  return floor;
}

double CubicWeight(double distance, double a) {
  const double x = std::abs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

// The filter's reach on either side, in elements of the input, and its widening if an element of
// the output covers many of them.
double Radius(const InterpolationOptions& options) {
  return options.mode == ResizeMode::kCubic ? 2 : 1;
}
double Stretch(const ResizeAxis& axis, const InterpolationOptions& options) {
  return options.antialias ? std::min(axis.scale, 1.0) : 1.0;
}

double Weight(double distance, const InterpolationOptions& options) {
  if (options.mode == ResizeMode::kCubic) return CubicWeight(distance, options.cubic_coefficient);
  return std::max(0.0, 1 - std::abs(distance));
}

}  // namespace

int64_t NearestElement(const ResizeAxis& axis, NearestMode mode, double position) {
  return Inside(Round(mode, position, axis.scale < 1), axis.in);
}

size_t TapCount(const ResizeAxis& axis, const InterpolationOptions& options) {
  return 2 * static_cast<size_t>(std::ceil(Radius(options) / Stretch(axis, options)));
}

template <class T>
void MakeTaps(const ResizeAxis& axis, const InterpolationOptions& options, int32_t* indices,
              T* weights) {
  const size_t count = TapCount(axis, options);
  const double stretch = Stretch(axis, options);
  const auto out = static_cast<size_t>(axis.out);
  for (size_t o = 0; o < out; ++o) {
    const double position = SourcePosition(axis, options.coordinates, static_cast<int64_t>(o));
    const double base = std::floor(position);
    const double first = base + 1 - static_cast<double>(count / 2);
    const auto weight_of = [&](size_t k) {
      const double index = first + static_cast<double>(k);
      const bool inside = index >= 0 && index < static_cast<double>(axis.in);
      if (options.exclude_outside && !inside) return 0.0;
      return Weight((index - position) * stretch, options);
    };
    double sum = 0;
    for (size_t k = 0; k < count; ++k) sum += weight_of(k);
    const bool normalize = (options.antialias || options.exclude_outside) && sum != 0;
    for (size_t k = 0; k < count; ++k) {
      const double weight = weight_of(k);
      weights[k * out + o] = static_cast<T>(normalize ? weight / sum : weight);
      indices[k * out + o] = static_cast<int32_t>(Inside(first + static_cast<double>(k), axis.in));
    }
  }
}

template void MakeTaps<float>(const ResizeAxis&, const InterpolationOptions&, int32_t*, float*);
template void MakeTaps<double>(const ResizeAxis&, const InterpolationOptions&, int32_t*, double*);

}  // namespace tenon
