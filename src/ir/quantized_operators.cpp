// Conv and MatMul between DequantizeLinear and QuantizeLinear become QLinearConv and QLinearMatMul,
// the standard's operators for them.
#include <algorithm>
#include <cmath>
#include <optional>

#include "ir/passes.h"
#include "ir/rewrite.h"
#include "tensor/shape.h"

namespace tenon {
namespace {

// What a rule calls the parts of an operand.
struct Names {
  std::string_view integers, scale, zero, node;
};
constexpr Names kX = {"x", "x scale", "x zero", "dequantized x"};
constexpr Names kW = {"w", "w scale", "w zero", "dequantized w"};
constexpr Names kBias = {"bias", "bias scale", "bias zero", "dequantized bias"};
constexpr Names kY = {"y", "y scale", "y zero", "quantized y"};

Pattern Dequantized(const Names& names) {
  return Op("DequantizeLinear", {Any(names.integers), Constant(names.scale), Maybe(names.zero)})
      .As(names.node)
      .Shared();
}

bool IsInt8(DataType type) { return type == DataType::kInt8 || type == DataType::kUint8; }

bool IsOneFloat(const Tensor& scale) {
  return scale.type() == DataType::kFloat && scale.size() == 1;
}

// Whether there is no zero point, or a known one for each scale.
bool FitsScale(const Match& match, const Names& names) {
  if (match[names.zero] == ValueId::kNone) return true;
  const Tensor* zero = match.constant(names.zero);
  return zero != nullptr && zero->size() == match.constant(names.scale)->size();
}

bool HasOneScale(const Match& match, const Names& names) {
  return IsOneFloat(*match.constant(names.scale)) && FitsScale(match, names);
}

// Whether the weights have one scale, or one for each of their output channels.
bool HasScalePerChannel(const Match& match) {
  const Tensor& scales = *match.constant(kW.scale);
  const SymbolicShape* shape = match.shape(kW.integers);
  if (scales.type() != DataType::kFloat || shape == nullptr || !FitsScale(match, kW)) return false;
  if (scales.size() == 1) return true;
  const Result<size_t> axis = NormalizeAxis(match.node(kW.node).GetInt("axis", 1), shape->rank());
  return scales.rank() == 1 && axis && *axis == 0 && (*shape)[0] == Dim(scales.size());
}

// Of x, w and y, as a bytes' operator takes them: x and y have one type, and signed x has signed w.
bool HasTypes(const Match& match) {
  const DataType x = match.type(kX.integers).element_type;
  const DataType w = match.type(kW.integers).element_type;
  return IsInt8(x) && IsInt8(w) && match.output_type().element_type == x &&
         (x == DataType::kUint8 || w == DataType::kInt8);
}

// Whether the bias is absent, or of integers whose scales are those of the sums. QLinearConv has no
// others; the scale as it is stored may be rounded.
bool HasScaleOfSums(const Match& match) {
  constexpr double kRounding = 1e-6;
  if (match[kBias.integers] == ValueId::kNone) return true;
  const Tensor& scales = *match.constant(kBias.scale);
  const Tensor& w_scales = *match.constant(kW.scale);
  if (match.type(kBias.integers).element_type != DataType::kInt32 ||
      scales.type() != DataType::kFloat || scales.size() != w_scales.size()) {
    return false;
  }
  if (match[kBias.zero] != ValueId::kNone) {
    const Tensor* zero = match.constant(kBias.zero);
    if (zero == nullptr) return false;
    const auto zeros = zero->values<int32_t>();
    if (std::any_of(zeros.begin(), zeros.end(), [](int32_t z) { return z != 0; })) return false;
  }
  for (int64_t i = 0; i < scales.size(); ++i) {
    const double expected = match.scalar(kX.scale) * w_scales.data<float>()[i];
    // Also false for NaN.
    if (!(std::abs(scales.data<float>()[i] - expected) <= kRounding * expected)) return false;
  }
  return true;
}

bool IsQuantizedConv(const Match& match) {
  return HasTypes(match) && HasOneScale(match, kX) && HasOneScale(match, kY) &&
         HasScalePerChannel(match) && HasScaleOfSums(match);
}

bool IsQuantizedMatMul(const Match& match) {
  return HasTypes(match) && HasOneScale(match, kX) && HasOneScale(match, kY) &&
         HasOneScale(match, kW);
}

// The zero point, which the operators cannot leave out.
ValueId ZeroOf(Replacement& r, const Names& names, DataType type) {
  const ValueId zero = r[names.zero];
  if (zero != ValueId::kNone) return zero;
  const Tensor& scale = *r.constant(names.scale);
  const std::vector<uint8_t> zeros(static_cast<size_t>(scale.size()));
  Tensor bytes = Tensor::Of<uint8_t>(scale.shape(), zeros);
  return r.Constant("zero_point", Tensor::View(type, bytes.shape(), bytes.raw(), bytes.owner()));
}

std::vector<ValueId> QuantizedOperands(Replacement& r) {
  const DataType x = r.type(kX.integers).element_type;
  return {r[kX.integers], r[kX.scale],     ZeroOf(r, kX, x),
          r[kW.integers], r[kW.scale],     ZeroOf(r, kW, r.type(kW.integers).element_type),
          r[kY.scale],    ZeroOf(r, kY, x)};
}

ValueId MakeQLinearConv(Replacement& r) {
  std::vector<ValueId> inputs = QuantizedOperands(r);
  if (r[kBias.integers] != ValueId::kNone) inputs.push_back(r[kBias.integers]);
  return r.Op("QLinearConv", std::move(inputs), r.AttributesOf("conv"));
}

ValueId MakeQLinearMatMul(Replacement& r) { return r.Op("QLinearMatMul", QuantizedOperands(r)); }

std::vector<Rule> MakeRules() {
  const auto quantized = [](const Pattern& y) {
    return Op("QuantizeLinear", {y, Constant(kY.scale), Maybe(kY.zero)});
  };
  const Pattern x = Dequantized(kX), w = Dequantized(kW);
  const auto conv = [&](std::string_view name, std::vector<Pattern> operands) {
    return Rule{.name = name,
                .pattern = quantized(Op("Conv", std::move(operands)).As("conv")),
                .when = IsQuantizedConv,
                .replace = MakeQLinearConv};
  };
  return {conv("quantized conv with bias", {x, w, Dequantized(kBias)}),
          conv("quantized conv", {x, w}),
          {.name = "quantized matmul",
           .pattern = quantized(Op("MatMul", {x, w})),
           .when = IsQuantizedMatMul,
           .replace = MakeQLinearMatMul}};
}

}  // namespace

const RuleSet& QuantizedOperatorRules() {
  static const auto* const rules = new RuleSet(MakeRules());
  return *rules;
}

}  // namespace tenon
