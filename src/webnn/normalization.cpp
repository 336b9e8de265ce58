// Normalizations: batch, instance, layer, group, local response, Lp, root mean square.
#include <numeric>

#include "webnn/images.h"

namespace tenon::webnn {
namespace {

constexpr std::string_view kMicrosoft = "com.microsoft";

Status EmitBatch(NodeContext& context) {
  const Node& node = context.node();
  for (size_t i = 1; i < node.outputs.size(); ++i) TENON_RETURN_IF_ERROR(context.RefuseOutput(i));
  const bool trains = node.GetInt("training_mode", 0) != 0 ||
                      (context.since() < 7 && node.GetInt("is_test", 0) == 0);
  if (trains) return NotImplemented("WebNN does not train");
  if (node.GetInt("spatial", 1) == 0) return NotImplemented("statistics of each element");
  ProgramBuilder& builder = context.builder();
  Operand in[5];
  for (size_t i = 0; i < 5; ++i) {
    TENON_ASSIGN_OR_RETURN(in[i], context.Input(i));
  }
  const auto rank = static_cast<int64_t>(builder.RankOf(in[0]));
  const int64_t axis = context.has_channels_last() ? rank - 1 : 1;
  TENON_ASSIGN_OR_RETURN(
      const Operand y,
      builder.Call("batchNormalization", {{"input", in[0]}, {"mean", in[3]}, {"variance", in[4]}},
                   {{"scale", in[1]},
                    {"bias", in[2]},
                    {"axis", axis},
                    {"epsilon", static_cast<double>(node.GetFloat("epsilon", 1e-5F))}},
                   {builder.TypeOf(in[0]), builder.ShapeOf(in[0])}));
  return context.SetOutput(0, y);
}

Status EmitInstance(NodeContext& context) {
  ProgramBuilder& builder = context.builder();
  TENON_ASSIGN_OR_RETURN(const Image x, ImageInput(context, 0));
  TENON_ASSIGN_OR_RETURN(const Operand scale, context.Input(1));
  TENON_ASSIGN_OR_RETURN(const Operand bias, context.Input(2));
  const double epsilon = context.node().GetFloat("epsilon", 1e-5F);
  TENON_ASSIGN_OR_RETURN(
      const Operand y,
      builder.Call(
          "instanceNormalization", {{"input", x.operand}},
          {{"scale", scale}, {"bias", bias}, {"epsilon", epsilon}, {"layout", LayoutOf(context)}},
          {builder.TypeOf(x.operand), builder.ShapeOf(x.operand)}));
  return SetImageOutput(context, y, x.is_line);
}

// The axes from `axis` on.
Numbers AxesFrom(int64_t axis, size_t rank) {
  Numbers axes(rank - static_cast<size_t>(axis));
  std::iota(axes.begin(), axes.end(), axis);
  return axes;
}

// Scale and bias of layerNormalization have the shape of the axes.
Result<Operand> OverAxes(ProgramBuilder& b, Operand operand, const Shape& shape, int64_t axis) {
  const Shape wanted(shape.dims().subspan(static_cast<size_t>(axis)));
  if (b.ShapeOf(operand) == wanted) return operand;
  return b.Reshape(operand, wanted);
}

Result<Operand> LayerNormalized(NodeContext& context, Operand x, int64_t axis, size_t scale,
                                size_t bias, double epsilon) {
  ProgramBuilder& b = context.builder();
  const Shape shape = b.ShapeOf(x);
  Parameters options = {{"axes", AxesFrom(axis, shape.rank())}, {"epsilon", epsilon}};
  constexpr std::string_view kNames[] = {"scale", "bias"};
  for (size_t i = 0; i < 2; ++i) {
    const size_t input = i == 0 ? scale : bias;
    if (!context.HasInput(input)) continue;
    TENON_ASSIGN_OR_RETURN(const Operand given, context.Input(input));
    TENON_ASSIGN_OR_RETURN(const Operand operand, OverAxes(b, given, shape, axis));
    options.push_back({kNames[i], operand});
  }
  return b.Call("layerNormalization", {{"input", x}}, std::move(options), {b.TypeOf(x), shape});
}

// x / sqrt(mean(x^2) + epsilon) * scale
Result<Operand> RmsNormalized(NodeContext& context, Operand x, int64_t axis, size_t scale,
                              double epsilon) {
  ProgramBuilder& b = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand square, b.Binary("mul", x, x));
  TENON_ASSIGN_OR_RETURN(const Operand mean,
                         b.Reduce("reduceMean", square, AxesFrom(axis, b.RankOf(x)), true));
  TENON_ASSIGN_OR_RETURN(const Operand least, b.Scalar(b.TypeOf(x), epsilon));
  TENON_ASSIGN_OR_RETURN(const Operand sum, b.Binary("add", mean, least));
  TENON_ASSIGN_OR_RETURN(const Operand root, b.Unary("sqrt", sum));
  TENON_ASSIGN_OR_RETURN(const Operand y, b.Binary("div", x, root));
  TENON_ASSIGN_OR_RETURN(const Operand factor, context.Input(scale));
  return b.Binary("mul", y, factor);
}

// LayerNormalization, RMSNormalization and SimplifiedLayerNormalization, their one output.
Status EmitLayer(NodeContext& context) {
  TENON_RETURN_IF_ERROR(context.RefuseOutput(1));
  TENON_RETURN_IF_ERROR(context.RefuseOutput(2));
  const Node& node = context.node();
  ProgramBuilder& builder = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const int64_t axis,
                         context.Axis(node.GetInt("axis", -1), builder.RankOf(x)));
  const double epsilon = node.GetFloat("epsilon", 1e-5F);
  TENON_ASSIGN_OR_RETURN(const Operand y, node.op_type == "LayerNormalization"
                                              ? LayerNormalized(context, x, axis, 1, 2, epsilon)
                                              : RmsNormalized(context, x, axis, 1, epsilon));
  return context.SetOutput(0, y);
}

// The sum of two tensors and a bias, then normalized over the last axis; the sum is output 3.
Status EmitSkip(NodeContext& context) {
  TENON_RETURN_IF_ERROR(context.RefuseOutput(1));
  TENON_RETURN_IF_ERROR(context.RefuseOutput(2));
  const Node& node = context.node();
  ProgramBuilder& b = context.builder();
  const bool is_layer = node.op_type == "SkipLayerNormalization";
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const Operand skip, context.Input(1));
  TENON_ASSIGN_OR_RETURN(Operand sum, b.Binary("add", x, skip));
  const size_t bias = is_layer ? 4 : 3;
  if (context.HasInput(bias)) {
    TENON_ASSIGN_OR_RETURN(const Operand added, context.Input(bias));
    TENON_ASSIGN_OR_RETURN(sum, b.Binary("add", sum, added));
  }
  const auto axis = static_cast<int64_t>(b.RankOf(sum)) - 1;
  const double epsilon = node.GetFloat("epsilon", 1e-5F);
  TENON_ASSIGN_OR_RETURN(const Operand y, is_layer
                                              ? LayerNormalized(context, sum, axis, 2, 3, epsilon)
                                              : RmsNormalized(context, sum, axis, 2, epsilon));
  if (context.HasOutput(3)) TENON_RETURN_IF_ERROR(context.SetOutput(3, sum));
  return context.SetOutput(0, y);
}

// Each group of channels is normalized as one row; scale and bias are per channel.
Status EmitGroup(NodeContext& context) {
  const Node& node = context.node();
  ProgramBuilder& b = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  const Shape shape = b.ShapeOf(x);
  const int64_t groups = node.GetInt("num_groups", 1);
  const int64_t channels = shape[1];
  constexpr int32_t kScaledByChannel = 21;
  if (node.opset < kScaledByChannel) return NotImplemented("a scale for each group");
  if (groups < 1 || channels % groups != 0) {
    return NotImplemented("{} channels in {} groups", channels, groups);
  }
  const Shape rows = Shape({shape[0], groups, shape.NumElements() / (shape[0] * groups)});
  TENON_ASSIGN_OR_RETURN(const Operand grouped, b.Reshape(x, rows));
  const double epsilon = node.GetFloat("epsilon", 1e-5F);
  TENON_ASSIGN_OR_RETURN(const Operand normalized,
                         b.Call("layerNormalization", {{"input", grouped}},
                                {{"axes", Numbers{2}}, {"epsilon", epsilon}}, {b.TypeOf(x), rows}));
  TENON_ASSIGN_OR_RETURN(Operand y, b.Reshape(normalized, shape));
  Shape by_channel(shape.rank(), 1);
  by_channel[1] = channels;
  constexpr std::string_view kMethods[] = {"mul", "add"};
  for (size_t i = 0; i < 2; ++i) {
    TENON_ASSIGN_OR_RETURN(const Operand given, context.Input(i + 1));
    TENON_ASSIGN_OR_RETURN(const Operand factor, b.Reshape(given, by_channel));
    TENON_ASSIGN_OR_RETURN(y, b.Binary(kMethods[i], y, factor));
  }
  return context.SetOutput(0, y);
}

// x / (bias + alpha / size * sum of squares of `size` channels around)^beta: the sum is an average
// pool over the channels as the height of an image.
Status EmitLrn(NodeContext& context) {
  const Node& node = context.node();
  ProgramBuilder& b = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  const Shape shape = b.ShapeOf(x);
  if (shape.rank() < 3) return NotImplemented("WebNN has no such normalization of {}", shape);
  const int64_t size = node.GetInt("size", 1);
  const DataType type = b.TypeOf(x);
  const int64_t channels = shape[1], inner = shape.Product(2, shape.rank());
  TENON_ASSIGN_OR_RETURN(const Operand square, b.Binary("mul", x, x));
  TENON_ASSIGN_OR_RETURN(const Operand image,
                         b.Reshape(square, Shape({shape[0], 1, channels, inner})));
  // Zeros around, which the average counts.
  const int64_t before = (size - 1) / 2, after = size - 1 - before;
  TENON_ASSIGN_OR_RETURN(
      const Operand padded,
      b.Call("pad",
             {{"input", image}, {"", Numbers{0, 0, before, 0}}, {"", Numbers{0, 0, after, 0}}},
             {{"mode", std::string_view("constant")}, {"value", 0.0}},
             {type, Shape({shape[0], 1, channels + size - 1, inner})}));
  TENON_ASSIGN_OR_RETURN(const Operand mean, b.Call("averagePool2d", {{"input", padded}},
                                                    {{"windowDimensions", Numbers{size, 1}},
                                                     {"layout", std::string_view("nchw")}},
                                                    {type, b.ShapeOf(image)}));
  TENON_ASSIGN_OR_RETURN(const Operand alpha, b.Scalar(type, node.GetFloat("alpha", 1e-4F)));
  TENON_ASSIGN_OR_RETURN(const Operand scaled, b.Binary("mul", mean, alpha));
  TENON_ASSIGN_OR_RETURN(const Operand bias, b.Scalar(type, node.GetFloat("bias", 1)));
  TENON_ASSIGN_OR_RETURN(const Operand sum, b.Binary("add", scaled, bias));
  TENON_ASSIGN_OR_RETURN(const Operand beta, b.Scalar(type, node.GetFloat("beta", 0.75F)));
  TENON_ASSIGN_OR_RETURN(const Operand divisor, b.Binary("pow", sum, beta));
  TENON_ASSIGN_OR_RETURN(const Operand shaped, b.Reshape(divisor, shape));
  TENON_ASSIGN_OR_RETURN(const Operand y, b.Binary("div", x, shaped));
  return context.SetOutput(0, y);
}

// x / max(norm, least), so that rows of norm 0 stay 0.
Status EmitLp(NodeContext& context) {
  const Node& node = context.node();
  ProgramBuilder& b = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const int64_t axis, context.Axis(node.GetInt("axis", -1), b.RankOf(x)));
  const std::string_view method = node.GetInt("p", 2) == 1 ? "reduceL1" : "reduceL2";
  TENON_ASSIGN_OR_RETURN(const Operand norm, b.Reduce(method, x, {axis}, true));
  const bool is_half = b.TypeOf(x) == DataType::kFloat16;
  TENON_ASSIGN_OR_RETURN(const Operand least, b.Scalar(b.TypeOf(x), is_half ? 6e-5 : 1.2e-38));
  TENON_ASSIGN_OR_RETURN(const Operand divisor, b.Binary("max", norm, least));
  TENON_ASSIGN_OR_RETURN(const Operand y, b.Binary("div", x, divisor));
  return context.SetOutput(0, y);
}

constexpr std::string_view kOneOutput = "one output";

constexpr Row kRows[] = {
    {"BatchNormalization", EmitBatch, "batchNormalization", "no training; one output", "", false,
     true},
    {"GroupNormalization", EmitGroup, "layerNormalization"},
    {"InstanceNormalization", EmitInstance, "instanceNormalization", "one or two spatial axes", "",
     false, true},
    {"LRN", EmitLrn, "averagePool2d", "3 axes or more"},
    {"LpNormalization", EmitLp, "reduceL2"},
    {"LayerNormalization", EmitLayer, "layerNormalization", kOneOutput},
    {"RMSNormalization", EmitLayer, "reduceMean"},
    {"SimplifiedLayerNormalization", EmitLayer, "reduceMean", kOneOutput},
    {"SkipLayerNormalization", EmitSkip, "layerNormalization", "no mean, no deviation", kMicrosoft},
    {"SkipSimplifiedLayerNormalization", EmitSkip, "reduceMean", "no mean, no deviation",
     kMicrosoft},
};

}  // namespace

TENON_WEBNN_FAMILY(Normalization, kRows);

}  // namespace tenon::webnn
