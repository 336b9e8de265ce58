// Pools with one or two spatial axes, and those over all of an image.
#include <numeric>

#include "webnn/images.h"

namespace tenon::webnn {
namespace {

// Pads with zeros, so that averages count them.
Result<Operand> PaddedWithZeros(NodeContext& context, Operand x, const Numbers& padding) {
  ProgramBuilder& builder = context.builder();
  Numbers begin = {0, 0, padding[0], padding[2]}, end = {0, 0, padding[1], padding[3]};
  if (context.has_channels_last()) {
    begin = {0, padding[0], padding[2], 0};
    end = {0, padding[1], padding[3], 0};
  }
  Shape shape = builder.ShapeOf(x);
  for (size_t i = 0; i < shape.rank(); ++i) shape[i] += begin[i] + end[i];
  return builder.Call("pad", {{"input", x}, {"", begin}, {"", end}},
                      {{"mode", std::string_view("constant")}, {"value", 0.0}},
                      {builder.TypeOf(x), shape});
}

Status EmitPool(NodeContext& context) {
  TENON_RETURN_IF_ERROR(context.RefuseOutput(1));
  const Node& node = context.node();
  if (node.op_type == "LpPool" && node.GetInt("p", 2) != 2) {
    return NotImplemented("WebNN has the pool of p = 2 alone");
  }
  ProgramBuilder& builder = context.builder();
  TENON_ASSIGN_OR_RETURN(Image x, ImageInput(context, 0));
  TENON_ASSIGN_OR_RETURN(const Shape in, context.InputShape(0));
  TENON_ASSIGN_OR_RETURN(const Shape shape, context.OutputShape(0));
  const Numbers kernel = node.GetInts("kernel_shape");
  TENON_ASSIGN_OR_RETURN(WindowOptions window,
                         WindowOf(context, kernel, SpatialSizes(context, in)));
  const bool is_average = node.op_type == "AveragePool";
  const bool rounds_up = node.GetInt("ceil_mode", 0) != 0;
  if (is_average && window.HasPadding() && node.GetInt("count_include_pad", 0) != 0) {
    // A window that reaches beyond the pads does not count the part beyond them, in ONNX and in
    // WebNN.
    if (rounds_up) return NotImplemented("ceil_mode and count_include_pad together");
    TENON_ASSIGN_OR_RETURN(x.operand, PaddedWithZeros(context, x.operand, window.padding));
    window.padding = {0, 0, 0, 0};
  }
  const Shape widened = Widened(shape, x.is_line, context.has_channels_last());
  Parameters options = {{"windowDimensions", window.kernel},
                        {"padding", window.padding},
                        {"strides", window.strides},
                        {"dilations", window.dilations},
                        {"layout", LayoutOf(context)}};
  if (rounds_up) options.push_back({"outputSizes", SpatialSizes(context, widened)});
  TENON_ASSIGN_OR_RETURN(const Operand y,
                         builder.Call(context.method(), {{"input", x.operand}}, std::move(options),
                                      {builder.TypeOf(x.operand), widened}));
  return SetImageOutput(context, y, x.is_line);
}

// Over all spatial axes, of which there may be any number.
Status EmitGlobal(NodeContext& context) {
  const Node& node = context.node();
  if (node.op_type == "GlobalLpPool" && node.GetInt("p", 2) != 2) {
    return NotImplemented("WebNN has the pool of p = 2 alone");
  }
  ProgramBuilder& builder = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  Numbers axes(builder.RankOf(x) - 2);
  std::iota(axes.begin(), axes.end(), context.has_channels_last() ? 1 : 2);
  TENON_ASSIGN_OR_RETURN(const Operand y, builder.Reduce(context.method(), x, axes, true));
  return context.SetOutput(0, y);
}

constexpr Row kRows[] = {
    {"AveragePool", EmitPool, "averagePool2d",
     "one or two spatial axes; not ceil_mode with count_include_pad and pads", "", false, true},
    {"GlobalAveragePool", EmitGlobal, "reduceMean", "", "", false, true},
    {"GlobalLpPool", EmitGlobal, "reduceL2", "p is 2", "", false, true},
    {"GlobalMaxPool", EmitGlobal, "reduceMax", "", "", false, true},
    {"LpPool", EmitPool, "l2Pool2d", "one or two spatial axes; p is 2", "", false, true},
    {"MaxPool", EmitPool, "maxPool2d", "one or two spatial axes; no indices", "", false, true},
};

}  // namespace

TENON_WEBNN_FAMILY(Pool, kRows);

}  // namespace tenon::webnn
