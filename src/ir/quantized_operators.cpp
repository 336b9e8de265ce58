// Conv and MatMul between DequantizeLinear and QuantizeLinear become QLinearConv and QLinearMatMul,
// the standard's operators for them.
#include <algorithm>
#include <cmath>

#include "ir/passes.h"
#include "ir/quantized_patterns.h"

namespace tenon {
namespace {

constexpr OperandNames kBias = {"dequantize bias", "bias", "bias scale", "bias zero"};

// Of a, b and y, as a bytes' operator takes them: a and y have one type, and signed a has signed b.
bool HasTypes(const Match& match) {
  const DataType a = TypeOf(match, kA);
  return OutputType(match) == a && (a == DataType::kUint8 || TypeOf(match, kB) == DataType::kInt8);
}

// Whether the bias is absent, or of integers whose scales are those of the sums. QLinearConv has no
// others; the scale as it is stored may be rounded.
bool HasScaleOfSums(const Match& match) {
  constexpr double kRounding = 1e-6;
  if (match[kBias.integers] == ValueId::kNone) return true;
  const Tensor& scales = *match.constant(kBias.scale);
  const Tensor& b_scales = *match.constant(kB.scale);
  if (match.type(kBias.integers).element_type != DataType::kInt32 ||
      scales.type() != DataType::kFloat || scales.size() != b_scales.size()) {
    return false;
  }
  if (match[kBias.zero] != ValueId::kNone) {
    const Tensor* zero = match.constant(kBias.zero);
    if (zero == nullptr) return false;
    const auto zeros = zero->values<int32_t>();
    if (std::any_of(zeros.begin(), zeros.end(), [](int32_t z) { return z != 0; })) return false;
  }
  for (int64_t i = 0; i < scales.size(); ++i) {
    const double expected = match.scalar(kA.scale) * b_scales.data<float>()[i];
    // Also false for NaN.
    if (!(std::abs(scales.data<float>()[i] - expected) <= kRounding * expected)) return false;
  }
  return true;
}

bool IsQuantizedConv(const Match& match) {
  return QuantizesToInt8(match) && HasOneScale(match, kA) && HasLineScales(match, kB, 0) &&
         HasTypes(match) && HasScaleOfSums(match);
}

bool IsQuantizedMatMul(const Match& match) {
  return QuantizesToInt8(match) && HasOneScale(match, kA) && HasOneScale(match, kB) &&
         HasTypes(match);
}

std::vector<ValueId> QuantizedOperands(Replacement& r) {
  return {r[kA.integers], r[kA.scale],   ZeroOf(r, kA), r[kB.integers],
          r[kB.scale],    ZeroOf(r, kB), r[kY.scale],   OutputZero(r)};
}

ValueId MakeQLinearConv(Replacement& r) {
  std::vector<ValueId> inputs = QuantizedOperands(r);
  if (r[kBias.integers] != ValueId::kNone) inputs.push_back(r[kBias.integers]);
  return r.Op("QLinearConv", std::move(inputs), r.AttributesOf("conv"));
}

ValueId MakeQLinearMatMul(Replacement& r) { return r.Op("QLinearMatMul", QuantizedOperands(r)); }

std::vector<Rule> MakeRules() {
  const Pattern a = Dequantized(kA), b = Dequantized(kB);
  const auto conv = [&](std::string_view name, std::vector<Pattern> operands) {
    return Rule{.name = name,
                .pattern = Quantized(Op("Conv", std::move(operands)).As("conv")),
                .when = IsQuantizedConv,
                .replace = MakeQLinearConv};
  };
  return {conv("quantized conv with bias", {a, b, Dequantized(kBias)}),
          conv("quantized conv", {a, b}),
          {.name = "quantized matmul",
           .pattern = Quantized(Op("MatMul", {a, b})),
           .when = IsQuantizedMatMul,
           .replace = MakeQLinearMatMul}};
}

}  // namespace

const RuleSet& QuantizedOperatorRules() {
  static const auto* const rules = new RuleSet(MakeRules());
  return *rules;
}

}  // namespace tenon
