// Conv and ConvTranspose with one or two spatial axes.
#include "webnn/images.h"

namespace tenon::webnn {
namespace {

// Shared by both.
struct Convolution {
  Image x;
  Operand filter;
  WindowOptions window;
  Parameters options;
};

Result<Convolution> ReadConvolution(NodeContext& context) {
  ProgramBuilder& builder = context.builder();
  Convolution result;
  TENON_ASSIGN_OR_RETURN(result.x, ImageInput(context, 0));
  TENON_ASSIGN_OR_RETURN(result.filter, context.Input(1));
  const Shape weights = builder.ShapeOf(result.filter);
  const Numbers kernel(weights.begin() + 2, weights.end());
  if (result.x.is_line) {
    TENON_ASSIGN_OR_RETURN(result.filter,
                           builder.Reshape(result.filter, Widened(weights, true, false)));
  }
  TENON_ASSIGN_OR_RETURN(const Shape shape, context.InputShape(0));
  TENON_ASSIGN_OR_RETURN(result.window, WindowOf(context, kernel, SpatialSizes(context, shape)));
  if (context.HasInput(2)) {
    TENON_ASSIGN_OR_RETURN(const Operand bias, context.Input(2));
    result.options.push_back({"bias", bias});
  }
  return result;
}

Status EmitConv(NodeContext& context) {
  ProgramBuilder& builder = context.builder();
  TENON_ASSIGN_OR_RETURN(Convolution conv, ReadConvolution(context));
  TENON_ASSIGN_OR_RETURN(const Shape shape, context.OutputShape(0));
  Parameters& options = conv.options;
  options.push_back({"padding", conv.window.padding});
  options.push_back({"strides", conv.window.strides});
  options.push_back({"dilations", conv.window.dilations});
  options.push_back({"groups", context.node().GetInt("group", 1)});
  options.push_back({"inputLayout", LayoutOf(context)});
  options.push_back({"filterLayout", std::string_view("oihw")});
  TENON_ASSIGN_OR_RETURN(
      const Operand y, builder.Call("conv2d", {{"input", conv.x.operand}, {"filter", conv.filter}},
                                    std::move(options),
                                    {builder.TypeOf(conv.x.operand),
                                     Widened(shape, conv.x.is_line, context.has_channels_last())}));
  return SetImageOutput(context, y, conv.x.is_line);
}

// The pads that give the output's sizes.
Status EmitConvTranspose(NodeContext& context) {
  ProgramBuilder& builder = context.builder();
  const Node& node = context.node();
  TENON_ASSIGN_OR_RETURN(Convolution conv, ReadConvolution(context));
  TENON_ASSIGN_OR_RETURN(const Shape shape, context.OutputShape(0));
  TENON_ASSIGN_OR_RETURN(const Shape x, context.InputShape(0));
  const Numbers in = SpatialSizes(context, x);
  const Numbers out = SpatialSizes(context, shape);
  Numbers added = node.GetInts("output_padding");
  added.resize(in.size(), 0);
  const bool gives_sizes = !node.GetInts("output_shape").empty();
  const std::string_view auto_pad = node.GetString("auto_pad", "NOTSET");
  WindowOptions& window = conv.window;
  const size_t first = window.strides.size() - in.size();  // a unit axis comes before
  for (size_t i = 0; i < in.size() && (gives_sizes || auto_pad != "NOTSET"); ++i) {
    const size_t axis = first + i;
    const int64_t reach = window.strides[axis] * (in[i] - 1) +
                          (window.kernel[axis] - 1) * window.dilations[axis] + 1 + added[i];
    const int64_t total = std::max<int64_t>(0, reach - out[i]);
    const int64_t half = total / 2;
    const int64_t begin = auto_pad == "SAME_UPPER" ? half : total - half;
    if (auto_pad == "NOTSET" && gives_sizes && total % 2 != 0) {
      return NotImplemented("pads that output_shape leaves uneven");
    }
    window.padding[2 * axis] = begin;
    window.padding[2 * axis + 1] = total - begin;
    if (reach < out[i]) return NotImplemented("an output larger than the windows reach");
  }
  if (first > 0) added.insert(added.begin(), 0);
  Parameters& options = conv.options;
  options.push_back({"padding", window.padding});
  options.push_back({"strides", window.strides});
  options.push_back({"dilations", window.dilations});
  options.push_back({"outputPadding", added});
  options.push_back({"groups", node.GetInt("group", 1)});
  options.push_back({"inputLayout", LayoutOf(context)});
  options.push_back({"filterLayout", std::string_view("iohw")});
  TENON_ASSIGN_OR_RETURN(
      const Operand y,
      builder.Call("convTranspose2d", {{"input", conv.x.operand}, {"filter", conv.filter}},
                   std::move(options),
                   {builder.TypeOf(conv.x.operand),
                    Widened(shape, conv.x.is_line, context.has_channels_last())}));
  return SetImageOutput(context, y, conv.x.is_line);
}

constexpr Row kRows[] = {
    {"Conv", EmitConv, "conv2d", "one or two spatial axes", "", false, true},
    {"ConvTranspose", EmitConvTranspose, "convTranspose2d",
     "one or two spatial axes; pads that output_shape determines are even", "", false, true},
};

}  // namespace

TENON_WEBNN_FAMILY(Convolution, kRows);

}  // namespace tenon::webnn
