#include "window.h"

#include <algorithm>

namespace codegen {
namespace {

// The size of the result along one axis; finds the padding that auto_pad asks for.
Result<int64_t> OutputSize(const std::string& auto_pad, int64_t input, int64_t extent,
                           int64_t stride, int64_t& pad_begin, int64_t& pad_end, bool ceil_mode) {
  if (stride < 1 || extent < 1) return Failure("expected strides and kernel sizes of 1 or more");
  if (auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER") {
    const int64_t size = (input + stride - 1) / stride;
    const int64_t total = std::max<int64_t>(0, (size - 1) * stride + extent - input);
    pad_begin = auto_pad == "SAME_UPPER" ? total / 2 : total - total / 2;
    pad_end = total - pad_begin;
    return size;
  }
  if (auto_pad == "VALID") pad_begin = pad_end = 0;
  const int64_t room = input + pad_begin + pad_end - extent;
  if (room < 0) return Failure("expected the kernel to fit, got {} in {}", extent, input);
  int64_t size = (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  // A last window that would start in the padding at the end is none.
  if (ceil_mode && (size - 1) * stride >= input + pad_begin) --size;
  return size;
}

}  // namespace

Result<Window> ReadWindow(const Node& node, const Shape& input, const std::vector<int64_t>& kernel,
                          bool ceil_mode) {
  const size_t rank = input.size() - 2;
  const std::vector<int64_t> ones(rank, 1);
  const auto strides = node.Ints("strides", ones);
  const auto dilations = node.Ints("dilations", ones);
  auto pads = node.Ints("pads", std::vector<int64_t>(2 * rank, 0));
  if (kernel.size() != rank || strides.size() != rank || dilations.size() != rank ||
      pads.size() != 2 * rank) {
    return Failure("expected attributes for {} spatial axes", rank);
  }
  const std::string auto_pad = node.String("auto_pad", "NOTSET");
  Window window;
  for (size_t i = 0; i < rank; ++i) {
    const size_t axis = i + 2 - rank;
    window.input[axis] = input[i + 2];
    window.kernel[axis] = kernel[i];
    window.strides[axis] = strides[i];
    window.dilations[axis] = dilations[i];
    PLUGIN_ASSIGN_OR_RETURN(window.output[axis],
                            OutputSize(auto_pad, input[i + 2], (kernel[i] - 1) * dilations[i] + 1,
                                       strides[i], pads[i], pads[i + rank], ceil_mode));
    window.pads[axis] = pads[i];
  }
  return window;
}

Shape WindowResult(const Window& window, const Shape& input, int64_t channels) {
  Shape shape = {input[0], channels};
  for (size_t axis = 4 - input.size(); axis < 2; ++axis) shape.push_back(window.output[axis]);
  return shape;
}

WindowNames::WindowNames(KernelWriter& writer, const Window& window) {
  for (int axis = 0; axis < 2; ++axis) {
    input[axis] = writer.Int(window.input[axis]);
    output[axis] = writer.Int(window.output[axis]);
    kernel[axis] = writer.Int(window.kernel[axis]);
    strides[axis] = writer.Int(window.strides[axis]);
    dilations[axis] = writer.Int(window.dilations[axis]);
    pads[axis] = writer.Int(window.pads[axis]);
  }
}

}  // namespace codegen
