// The sliding window of convolutions and pools: kernel, strides, dilations, pads.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/status.h"
#include "ir/dim.h"
#include "ops/framework/attributes.h"

namespace tenon {

// Attributes of Conv-11, MaxPool-12, AveragePool-19 and similar operators.
struct WindowAttrs {
  std::string auto_pad = "NOTSET";
  std::vector<int64_t> kernel_shape, strides, dilations, pads;
  static constexpr auto Fields() {
    using A = WindowAttrs;
    return std::tuple(Field("auto_pad", &A::auto_pad), Field("kernel_shape", &A::kernel_shape),
                      Field("strides", &A::strides), Field("dilations", &A::dilations),
                      Field("pads", &A::pads));
  }
};

// The most spatial dimensions that the kernels support, and that operators support.
constexpr size_t kMaxWindowRank = 3;
constexpr size_t kMostWindowRank = 30;  // of tensors with 32 axes

// One spatial dimension.
struct WindowDim {
  int64_t kernel;
  int64_t stride;
  int64_t dilation;
  int64_t pad_begin;
  int64_t pad_end;
  // From the first tap to the last.
  int64_t extent() const { return (kernel - 1) * dilation + 1; }
};

constexpr WindowDim kOneElement = {1, 1, 1, 0, 0};

enum class AutoPad { kNotSet, kSameUpper, kSameLower, kValid };

// The checked attributes: all numbers are in [0, 2^31), kernels, strides and dilations at least 1.
struct Window {
  size_t rank = 0;
  AutoPad auto_pad = AutoPad::kNotSet;
  // The first `rank`. Pads are zero unless auto_pad is kNotSet.
  std::array<WindowDim, kMostWindowRank> dims;
};

// The window of a kernel with these sizes. Errors: kInvalidArgument naming the attribute;
// kNotImplemented for more than `most` dimensions, which are at most kMostWindowRank.
Result<Window> MakeWindow(const WindowAttrs& attrs, std::span<const int64_t> kernel,
                          size_t most = kMaxWindowRank);

// The window's steps over dimension `axis` of size `in`; with ceil_mode the last may reach beyond
// the pads, if it begins inside. Error: kInvalidArgument if the kernel is larger than the padded
// input, with ceil_mode by more than two strides.
Result<Dim> WindowSteps(const Window& window, size_t axis, const Dim& in, bool ceil_mode);

// Dimension `axis` of the window with the pads of auto_pad for an input of size `in`.
WindowDim PaddedDim(const Window& window, size_t axis, int64_t in);

// Pads whose sum is `total`. If it is odd, the larger half is at the end for kSameUpper, otherwise
// at the beginning.
void DistributePads(int64_t total, AutoPad auto_pad, WindowDim* dim);

}  // namespace tenon
