// The geometry of convolutions and pooling.
#pragma once

#include <string>
#include <vector>

#include "kernel_writer.h"

namespace codegen {

// One or two spatial axes, as two: a signal is an image of one row.
struct Window {
  int64_t input[2] = {1, 1};
  int64_t output[2] = {1, 1};
  int64_t kernel[2] = {1, 1};
  int64_t strides[2] = {1, 1};
  int64_t dilations[2] = {1, 1};
  int64_t pads[2] = {0, 0};  // at the beginnings
};

// Reads kernel_shape (or `kernel`), strides, dilations, pads and auto_pad.
Result<Window> ReadWindow(const Node& node, const Shape& input, const std::vector<int64_t>& kernel,
                          bool ceil_mode);
// [n, channels, spatial sizes of the output].
Shape WindowResult(const Window& window, const Shape& input, int64_t channels);

// Names of the arguments that hold a window.
struct WindowNames {
  WindowNames(KernelWriter& writer, const Window& window);
  std::string input[2], output[2], kernel[2], strides[2], dilations[2], pads[2];
};

}  // namespace codegen
