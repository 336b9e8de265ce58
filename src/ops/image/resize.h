// Runs Resize and Upsample, once every axis is known.
#pragma once

#include <array>

#include "ops/image/resize_axis.h"
#include "runtime/kernel_context.h"

namespace tenon {

constexpr size_t kMaxResizeRank = 32;

// Everything on which the output depends, except the elements of the input.
struct ResizePlan {
  InterpolationOptions interpolation;  // its mode and coordinates apply to kNearest too
  NearestMode nearest = NearestMode::kRoundPreferFloor;
  float extrapolation_value = 0;
  size_t rank = 0;
  std::array<ResizeAxis, kMaxResizeRank> axes;
};

// Computes output 0 of `context` from input 0 by picking elements, which may have any type of whole
// bytes. The output is not empty, and neither is the input.
Status RunNearest(const ResizePlan& plan, KernelContext& context);

// The same by linear or cubic interpolation. Integers are rounded, half to even, and saturated.
// Error: kInvalidArgument for strings.
Status RunInterpolation(const ResizePlan& plan, KernelContext& context);

}  // namespace tenon
