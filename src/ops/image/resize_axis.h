// How Resize and Upsample map one axis of the output to the input: coordinates, nearest elements,
// and the weights of interpolation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/status.h"

namespace tenon {

enum class ResizeMode : uint8_t { kNearest, kLinear, kCubic };

enum class ResizeCoordinates : uint8_t {
  kHalfPixel,
  kHalfPixelSymmetric,
  kPytorchHalfPixel,
  kAlignCorners,
  kAsymmetric,
  kTfHalfPixelForNn,  // of Resize-11 alone
  kTfCropAndResize,
};

enum class NearestMode : uint8_t {
  kRoundPreferFloor,
  kRoundPreferCeil,
  kFloor,
  kCeil,
  kOld,  // before Resize-11: down, but up on an axis that becomes shorter
};

// By the attributes' names. Errors: kInvalidArgument listing the known names.
Result<ResizeMode> ResizeModeFromName(std::string_view name);
Result<ResizeCoordinates> ResizeCoordinatesFromName(std::string_view name);
Result<NearestMode> NearestModeFromName(std::string_view name);

// One axis: sizes, how much longer it becomes, and the part of it that is cropped (for
// kTfCropAndResize).
struct ResizeAxis {
  int64_t in = 1;
  int64_t out = 1;
  double scale = 1;
  double start = 0;
  double end = 1;
  // The output is the input along this axis, whatever the mode.
  bool is_identity() const { return in == out && scale == 1 && start == 0 && end == 1; }
};

// The position on the input axis of element `o` of the output. May lie outside, or be NaN.
double SourcePosition(const ResizeAxis& axis, ResizeCoordinates coordinates, int64_t o);

// Whether kTfCropAndResize gives the extrapolation value to elements at this position.
inline bool IsExtrapolated(const ResizeAxis& axis, ResizeCoordinates coordinates, double position) {
  return coordinates == ResizeCoordinates::kTfCropAndResize &&
         !(position >= 0 && position <= static_cast<double>(axis.in - 1));
}

// The element of the input, in [0, in), that is nearest to the position.
int64_t NearestElement(const ResizeAxis& axis, NearestMode mode, double position);

struct InterpolationOptions {
  ResizeMode mode = ResizeMode::kLinear;  // or kCubic
  ResizeCoordinates coordinates = ResizeCoordinates::kHalfPixel;
  double cubic_coefficient = -0.75;
  bool antialias = false;
  bool exclude_outside = false;
};

// Elements of the input that an element of the output is made of, those outside included.
size_t TapCount(const ResizeAxis& axis, const InterpolationOptions& options);

// For every o in [0, out): tap k of it at [k * out + o]. A position outside the axis is replaced by
// the nearest end, with its weight, or with weight 0 if exclude_outside is set. T is float or
// double.
template <class T>
void MakeTaps(const ResizeAxis& axis, const InterpolationOptions& options, int32_t* indices,
              T* weights);

}  // namespace tenon
