// Convolutions of dynamically quantized images, where floats are convolved faster than bytes:
//
//   Cast(ConvInteger(a, W, a zero, W zero)) * (a scale * W scale)
//     becomes  Conv(DequantizeLinear(a), DequantizeLinear(W))
//
// The weights are then folded, what follows goes into the convolution, and the image stays in the
// layout of its neighbours. Results differ by the rounding of float sums.
#include "ir/graph.h"
#include "kernels/conv/conv_int8.h"
#include "ops/fusion/fusion.h"

namespace tenon {
namespace {

constexpr const char* kTenon = "com.tenon";

// Whether the value is one number, which raises no rank.
bool IsOneElement(const SymbolicShape* shape) {
  return shape && shape->rank() <= 1 && shape->NumElements() == Dim(1);
}

// Whether there is no zero point or one for the whole tensor.
bool HasOneZero(const Match& match, std::string_view zero) {
  return match[zero] == ValueId::kNone || IsOneElement(match.shape(zero));
}

// Whether int32 addends, if there are some, are one for each output channel.
bool HasChannelAddends(const Match& match, const Shape& weights) {
  if (match["addend"] == ValueId::kNone) return true;
  const SymbolicShape* shape = match.shape("addend");
  const size_t rank = weights.rank();
  if (!shape || shape->rank() + 1 < rank || shape->rank() > rank) return false;
  const size_t channels = shape->rank() + 1 - rank;
  for (size_t i = 0; i < shape->rank(); ++i) {
    if (!((*shape)[i] == Dim(i == channels ? weights[0] : 1))) return false;
  }
  return true;
}

bool IsDynamicConv(const Match& match) {
  const Tensor* weights = match.graph().StoredConstantOf(match["W"]);
  const Tensor* scale = match.constant("W scale");
  const bool has_scales = scale && scale->type() == DataType::kFloat &&
                          IsOneElement(match.shape("W scale")) &&
                          IsOneElement(match.shape("a scale"));
  return !kernels::ConvolvesBytesFaster() && weights && weights->rank() >= 3 && has_scales &&
         HasOneZero(match, "a zero") && HasOneZero(match, "W zero") &&
         HasChannelAddends(match, weights->shape());
}

ValueId MakeFloatConv(Replacement& r) {
  const ValueId x = r.Op("DequantizeLinear", {r["a"], r["a scale"], r["a zero"]});
  r.TakeShape(x, r["a"]);
  const ValueId weights = r.Op("DequantizeLinear", {r["W"], r["W scale"], r["W zero"]});
  ValueId bias = ValueId::kNone;
  if (r["addend"] != ValueId::kNone) {
    std::vector<Attribute> to_float;
    to_float.emplace_back("to", static_cast<int64_t>(DataType::kFloat));
    const int64_t all[] = {-1};
    const ValueId vector = r.Constant("channels", Tensor::Of<int64_t>(Shape({1}), all));
    const ValueId addends =
        r.Op("Cast", {r.Op("Reshape", {r["addend"], vector})}, std::move(to_float));
    bias = r.Op("Mul", {addends, r.Op("Mul", {r["a scale"], r["W scale"]})});
  }
  return r.Op("Conv", {x, weights, bias}, r.AttributesOf("conv"));
}

}  // namespace

std::vector<Fusion> DynamicConvFusions() {
  const Pattern sums =
      Op("ConvInteger", {Any("a"), Constant("W"), Maybe("a zero"), Maybe("W zero")}).As("conv");
  const Pattern floats = Op("Cast", {OneOf({Op("Add", {sums, Any("addend")}), sums})})
                             .With("to", static_cast<int64_t>(DataType::kFloat));
  std::vector<Fusion> fusions;
  fusions.push_back(
      {"",
       "Conv",
       {.name = "dynamically quantized conv",
        .pattern = Op("Mul", {floats, Op("Mul", {Any("a scale"), Constant("W scale")}).Shared()}),
        .when = IsDynamicConv,
        .replace = MakeFloatConv}});
  const Pattern quantized = Op("DynamicQuantizeLinear", {Any("x")});
  fusions.push_back(
      {kTenon,
       "DynamicFakeQuantize",
       {.name = "dynamic fake quantization",
        .pattern = Op("DequantizeLinear", {quantized, quantized.Output(1), quantized.Output(2)}),
        .replace = [](Replacement& r) {
          return r.Op("DynamicFakeQuantize", {r["x"]}, {}, kTenon);
        }}});
  return fusions;
}

}  // namespace tenon
