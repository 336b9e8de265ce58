#include "ops/conv/window.h"

#include <algorithm>
#include <limits>
#include <string_view>

namespace tenon {
namespace {

// Products of two such numbers are far from the limits of int64_t.
constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();

Result<AutoPad> ParseAutoPad(std::string_view name) {
  if (name == "NOTSET" || name.empty()) return AutoPad::kNotSet;
  if (name == "SAME_UPPER") return AutoPad::kSameUpper;
  if (name == "SAME_LOWER") return AutoPad::kSameLower;
  if (name == "VALID") return AutoPad::kValid;
  return InvalidArgument(
      "expected auto_pad to be NOTSET, SAME_UPPER, SAME_LOWER or VALID, got '{}'", name);
}

Status CheckNumbers(std::string_view name, std::span<const int64_t> numbers, size_t count,
                    int64_t least) {
  if (numbers.size() != count) {
    return InvalidArgument("expected {} {}, got {}", count, name, numbers.size());
  }
  for (const int64_t number : numbers) {
    if (number < least || number > kLargest) {
      return InvalidArgument("expected {} in [{}, {}], got {}", name, least, kLargest, number);
    }
  }
  return OkStatus();
}

}  // namespace

Result<Window> MakeWindow(const WindowAttrs& attrs, std::span<const int64_t> kernel, size_t most) {
  Window window;
  window.rank = kernel.size();
  if (window.rank > most) {
    return NotImplemented("{} spatial dimensions; at most {} are served", window.rank, most);
  }
  TENON_ASSIGN_OR_RETURN(window.auto_pad, ParseAutoPad(attrs.auto_pad));
  TENON_RETURN_IF_ERROR(CheckNumbers("kernel sizes", kernel, window.rank, 1));
  const bool has_strides = !attrs.strides.empty();
  const bool has_dilations = !attrs.dilations.empty();
  const bool has_pads = !attrs.pads.empty() && window.auto_pad == AutoPad::kNotSet;
  if (has_strides) {
    TENON_RETURN_IF_ERROR(CheckNumbers("strides", attrs.strides, window.rank, 1));
  }
  if (has_dilations) {
    TENON_RETURN_IF_ERROR(CheckNumbers("dilations", attrs.dilations, window.rank, 1));
  }
  if (has_pads) TENON_RETURN_IF_ERROR(CheckNumbers("pads", attrs.pads, 2 * window.rank, 0));
  for (size_t i = 0; i < window.rank; ++i) {
    WindowDim& dim = window.dims[i];
    dim = kOneElement;
    dim.kernel = kernel[i];
    if (has_strides) dim.stride = attrs.strides[i];
    if (has_dilations) dim.dilation = attrs.dilations[i];
    if (has_pads) {
      dim.pad_begin = attrs.pads[i];
      dim.pad_end = attrs.pads[window.rank + i];
    }
  }
  return window;
}

Result<Dim> WindowSteps(const Window& window, size_t axis, const Dim& in, bool ceil_mode) {
  const WindowDim& dim = window.dims[axis];
  const bool same =
      window.auto_pad == AutoPad::kSameUpper || window.auto_pad == AutoPad::kSameLower;
  if (same) return CeilDiv(in, dim.stride);
  const Dim free = in + Dim(dim.pad_begin + dim.pad_end - dim.extent());
  // With ceil_mode, a window that reaches beyond the pads is one step too.
  const bool reaches_too_far =
      free.is_number() && (ceil_mode ? CeilDiv(free, dim.stride).value() < -1 : free.value() < 0);
  if (reaches_too_far) {
    return InvalidArgument(
        "spatial axis {}: the kernel spans {} elements, more than the padded "
        "input's {}",
        axis, dim.extent(), in + Dim(dim.pad_begin + dim.pad_end));
  }
  if (!ceil_mode) return FloorDiv(free, dim.stride) + Dim(1);
  return Min(CeilDiv(free, dim.stride) + Dim(1), CeilDiv(in + Dim(dim.pad_begin), dim.stride));
}

void DistributePads(int64_t total, AutoPad auto_pad, WindowDim* dim) {
  const int64_t half = total / 2;
  dim->pad_begin = auto_pad == AutoPad::kSameUpper ? half : total - half;
  dim->pad_end = total - dim->pad_begin;
}

WindowDim PaddedDim(const Window& window, size_t axis, int64_t in) {
  WindowDim dim = window.dims[axis];
  if (window.auto_pad == AutoPad::kSameUpper || window.auto_pad == AutoPad::kSameLower) {
    const int64_t steps = in / dim.stride + (in % dim.stride != 0);
    const int64_t reach = (steps - 1) * dim.stride + dim.extent();
    DistributePads(std::max<int64_t>(0, reach - in), window.auto_pad, &dim);
  }
  return dim;
}

}  // namespace tenon
