// Shared by convolutions and pools: images in WebNN's form, with two spatial axes.
#pragma once

#include "ops/conv/window.h"
#include "webnn/emission.h"

namespace tenon::webnn {

// An image with one or two spatial axes as one with two: a unit axis goes before the only one.
struct Image {
  Operand operand;
  bool is_line = false;  // it had one
};

// Input `i` of a node. Error: kNotImplemented for three spatial axes or more.
Result<Image> ImageInput(NodeContext& context, size_t i);
// A shape with the unit axis, or without it, as `is_line` says.
Shape Widened(const Shape& shape, bool is_line, bool has_channels_last);
// The operand, of a widened image, becomes output 0 of the node.
Status SetImageOutput(NodeContext& context, Operand operand, bool is_line);

// WebNN's name for the node's layout.
inline std::string_view LayoutOf(const NodeContext& context) {
  return context.has_channels_last() ? "nhwc" : "nchw";
}

// The windows of a node over an input with these spatial sizes, as options of WebNN: padding,
// strides and dilations of two axes.
struct WindowOptions {
  Numbers padding;  // begin and end of the height, of the width
  Numbers strides, dilations, kernel;

  bool HasPadding() const { return padding != Numbers{0, 0, 0, 0}; }
};
Result<WindowOptions> WindowOf(const NodeContext& context, std::span<const int64_t> kernel,
                               std::span<const int64_t> sizes);

// The spatial sizes of an image of the node.
Numbers SpatialSizes(const NodeContext& context, const Shape& shape);

}  // namespace tenon::webnn
