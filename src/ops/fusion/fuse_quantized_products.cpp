// Products and convolutions of quantized operands:
//
//   QuantizeLinear(Conv(DequantizeLinear(x), DequantizeLinear(w), b))  becomes  QLinearConv
//
// An element of a result may differ by one from what the float operators give: sums are exact, and
// rounded once. Products that are not quantized again are computed from integers, too.
#include <algorithm>

#include "ir/graph.h"
#include "ops/fusion/quantized_operands.h"

namespace tenon {
namespace {

constexpr const char* kMicrosoft = "com.microsoft";

// --- Bias ---

ValueId BiasConstant(Replacement& r, int64_t channels, double factor = 1) {
  if (r["bias"] == ValueId::kNone) return ValueId::kNone;
  const std::vector<int32_t> bias = *IntegerBias(r, channels, factor);
  return r.Constant("bias", Tensor::Of<int32_t>(Shape({channels}), bias));
}

int64_t SizeOfB(const Match& match, size_t axis) {
  return match.graph().StoredConstantOf(match[kB.integers])->shape()[axis];
}

// --- Conv ---

bool IsQuantizedConv(const Match& match) {
  return QuantizesOrBounds(match) && HasOneScale(match, kA) && HasLineScales(match, kB, 0) &&
         HasIntegerBias(match, SizeOfB(match, 0));
}

ValueId MakeQLinearConv(Replacement& r) {
  const ValueId y =
      r.Op("QLinearConv",
           {r[kA.integers], r[kA.scale], ZeroOf(r, kA), r[kB.integers], r[kB.scale], ZeroOf(r, kB),
            r[kY.scale], OutputZero(r), BiasConstant(r, SizeOfB(r, 0))},
           r.AttributesOf("conv"));
  return Bounded(r, y);
}

// --- Products ---

// Whether B is a matrix with one scale, or one for each column of the product.
bool IsWeightMatrix(const Match& match, bool is_transposed) {
  const Tensor* b = match.graph().StoredConstantOf(match[kB.integers]);
  return b && b->rank() == 2 && HasLineScales(match, kB, is_transposed ? 0 : 1);
}

bool IsQuantizedMatMul(const Match& match) {
  return QuantizesOrBounds(match) && HasOneScale(match, kA) &&
         (IsWeightMatrix(match, false) || HasOneScale(match, kB));
}

ValueId MakeQLinearMatMul(Replacement& r) {
  const ValueId y =
      r.Op("QLinearMatMul", {r[kA.integers], r[kA.scale], ZeroOf(r, kA), r[kB.integers],
                             r[kB.scale], ZeroOf(r, kB), r[kY.scale], OutputZero(r)});
  return Bounded(r, y);
}

// Whether the root's results are not quantized, as other rules would do better.
bool StaysFloat(const Match& match) {
  const std::vector<NodeId>& users = match.graph().value(match.root().outputs[0]).consumers;
  return std::none_of(users.begin(), users.end(), [&](NodeId user) {
    return match.graph().node(user).op_type == "QuantizeLinear";
  });
}

bool IsFloatProduct(const Match& match) {
  return HasOneScale(match, kA) && IsWeightMatrix(match, false) && StaysFloat(match);
}

ValueId MakeMatMulIntegerToFloat(Replacement& r) {
  return r.Op(
      "MatMulIntegerToFloat",
      {r[kA.integers], r[kB.integers], r[kA.scale], r[kB.scale], ZeroOf(r, kA), ZeroOf(r, kB)}, {},
      kMicrosoft);
}

bool IsTransposed(const Match& match) { return match.node("gemm").GetInt("transB", 0) != 0; }

bool IsQuantizedGemm(const Match& match) {
  const Node& gemm = match.node("gemm");
  const bool is_transposed = IsTransposed(match);
  return gemm.GetFloat("beta", 1) == 1 && HasOneScale(match, kA) &&
         IsWeightMatrix(match, is_transposed) &&
         HasIntegerBias(match, SizeOfB(match, is_transposed ? 0 : 1), gemm.GetFloat("alpha", 1));
}

// With an output scale, or without one, for floats.
ValueId MakeQGemm(Replacement& r, std::vector<ValueId> output) {
  std::vector<Attribute> attributes = r.AttributesOf("gemm");
  std::erase_if(attributes, [](const Attribute& attribute) { return attribute.name == "beta"; });
  std::vector<ValueId> inputs = {
      r[kA.integers],
      r[kA.scale],
      ZeroOf(r, kA),
      r[kB.integers],
      r[kB.scale],
      ZeroOf(r, kB),
      BiasConstant(r, SizeOfB(r, IsTransposed(r) ? 0 : 1), r.node("gemm").GetFloat("alpha", 1))};
  inputs.insert(inputs.end(), output.begin(), output.end());
  return r.Op("QGemm", std::move(inputs), std::move(attributes), kMicrosoft);
}

// --- Dynamic quantization ---

// Whether a, as DynamicQuantizeLinear makes it, has one scale.
bool IsDynamicProduct(const Match& match) {
  const Tensor* b = match.graph().StoredConstantOf(match["b"]);
  const Tensor* scales = match.constant("b scale");
  const SymbolicShape* a_scale = match.shape("a scale");
  if (!b || b->rank() != 2 || scales->type() != DataType::kFloat || !a_scale) return false;
  const bool has_columns = scales->rank() == 1 && scales->size() == b->shape()[1];
  return a_scale->NumElements() == Dim(1) && (scales->size() == 1 || has_columns);
}

ValueId MakeDynamicProduct(Replacement& r) {
  return r.Op("MatMulIntegerToFloat",
              {r["a"], r["b"], r["a scale"], r["b scale"], r["a zero"], r["b zero"]}, {},
              kMicrosoft);
}

// --- Bias of float results ---

bool HasFloatBias(const Match& match) {
  const Tensor* b = match.graph().StoredConstantOf(match.node("product").inputs[1]);
  const Tensor* bias = match.constant("bias");
  return b && b->rank() == 2 && bias->type() == DataType::kFloat && bias->rank() == 1 &&
         bias->size() == b->shape()[1];
}

ValueId AddFloatBias(Replacement& r) {
  std::vector<ValueId> inputs = r.node("product").inputs;
  inputs.resize(6, ValueId::kNone);
  inputs.push_back(r["bias"]);
  return r.Op("MatMulIntegerToFloat", std::move(inputs), {}, kMicrosoft);
}

}  // namespace

std::vector<Fusion> QuantizedProductFusions() {
  const Pattern a = Dequantized(kA), b = Dequantized(kB), bias = Maybe("bias");
  std::vector<Fusion> fusions;
  for (const Pattern& pattern : QuantizedOrActivated(Op("Conv", {a, b, bias}).As("conv"))) {
    fusions.push_back({"",
                       "QLinearConv",
                       {.name = "quantized conv",
                        .pattern = pattern,
                        .when = IsQuantizedConv,
                        .replace = MakeQLinearConv}});
  }
  for (const Pattern& pattern : QuantizedOrActivated(Op("MatMul", {a, b}))) {
    fusions.push_back({"",
                       "QLinearMatMul",
                       {.name = "quantized matmul",
                        .pattern = pattern,
                        .when = IsQuantizedMatMul,
                        .replace = MakeQLinearMatMul}});
  }
  for (const Pattern& pattern : QuantizedOrActivated(Op("Gemm", {a, b, bias}).As("gemm"))) {
    fusions.push_back(
        {kMicrosoft,
         "QGemm",
         {.name = "quantized gemm",
          .pattern = pattern,
          .when = [](const Match& m) { return QuantizesOrBounds(m) && IsQuantizedGemm(m); },
          .replace =
              [](Replacement& r) {
                return Bounded(r, MakeQGemm(r, {r[kY.scale], OutputZero(r)}));
              }}});
  }
  return fusions;
}

std::vector<Fusion> IntegerProductFusions() {
  const Pattern a = Dequantized(kA), b = Dequantized(kB);
  std::vector<Fusion> fusions;
  const auto add = [&](std::string_view op_type, Rule rule) {
    fusions.push_back({kMicrosoft, op_type, std::move(rule), false});
  };
  add("MatMulIntegerToFloat", {.name = "integer matmul",
                               .pattern = Op("MatMul", {a, b}),
                               .when = IsFloatProduct,
                               .replace = MakeMatMulIntegerToFloat});
  add("QGemm", {.name = "integer gemm",
                .pattern = Op("Gemm", {a, b, Maybe("bias")}).As("gemm"),
                .when = IsQuantizedGemm,
                .replace = [](Replacement& r) { return MakeQGemm(r, {}); }});
  const Pattern sums =
      Op("Cast", {Op("MatMulInteger", {Any("a"), Any("b"), Maybe("a zero"), Maybe("b zero")})})
          .With("to", static_cast<int64_t>(DataType::kFloat));
  add("MatMulIntegerToFloat",
      {.name = "dynamically quantized matmul",
       .pattern = Op("Mul", {sums, Op("Mul", {Any("a scale"), Constant("b scale")}).Shared()}),
       .when = IsDynamicProduct,
       .replace = MakeDynamicProduct});
  const Pattern product =
      Op("MatMulIntegerToFloat",
         {Any("a"), Any("b"), Any("a scale"), Any("b scale"), Maybe("a zero"), Maybe("b zero")})
          .In(kMicrosoft)
          .As("product");
  add("MatMulIntegerToFloat", {.name = "integer matmul bias",
                               .pattern = Op("Add", {product, Constant("bias")}),
                               .when = HasFloatBias,
                               .replace = AddFloatBias});
  return fusions;
}

}  // namespace tenon
