#include <gtest/gtest.h>

#include "ir/passes.h"
#include "rule_cases.h"

namespace tenon {
namespace {

ValueId Dequantized(GraphBuilder& b, ValueId integers, float scale) {
  return b.Op("DequantizeLinear", {integers, b.Constant(Tensor::Of<float>({}, {scale}))});
}

ValueId Quantized(GraphBuilder& b, ValueId y, DataType type) {
  const ValueId zero = b.Constant(type == DataType::kInt8 ? Tensor::Of<int8_t>({}, {1})
                                                          : Tensor::Of<uint8_t>({}, {1}));
  const ValueId scale = b.Constant(Tensor::Of<float>({}, {0.5f}));
  return b.Shaped(b.Op("QuantizeLinear", {y, scale, zero}), SymbolicShape{1, 1, 2, 2}, type);
}

// A convolution of bytes [1, 1, 2, 2] by one weight, whose sums have the scale 0.25.
auto Conv(DataType output, float bias_scale = 0) {
  return [=](GraphBuilder& b, ValueId) {
    const ValueId x = b.Input("bytes", DataType::kUint8, SymbolicShape{1, 1, 2, 2});
    const ValueId w = b.Constant(Tensor::Of<int8_t>({1, 1, 1, 1}, {3}));
    std::vector<ValueId> operands = {Dequantized(b, x, 0.5f), Dequantized(b, w, 0.5f)};
    if (bias_scale != 0) {
      const ValueId bias = b.Constant(Tensor::Of<int32_t>({1}, {7}));
      operands.push_back(Dequantized(b, bias, bias_scale));
    }
    return Quantized(b, b.Op("Conv", operands), output);
  };
}

auto MatMul(DataType output) {
  return [=](GraphBuilder& b, ValueId) {
    const ValueId x = b.Input("bytes", DataType::kUint8, SymbolicShape{2, 2});
    const ValueId w = b.Constant(Tensor::Of<int8_t>({2, 2}, {3, 4, 5, 6}));
    return Quantized(b, b.Op("MatMul", {Dequantized(b, x, 0.5f), Dequantized(b, w, 0.5f)}), output);
  };
}

TEST(QuantizedOperatorRulesTest, ApplyWhereTheyShould) {
  const RuleCase cases[] = {
      {"quantized conv", true, Conv(DataType::kUint8)},
      {"quantized conv", false, Conv(DataType::kInt8)},
      {"quantized conv with bias", true, Conv(DataType::kUint8, 0.25f)},
      {"quantized conv with bias", false, Conv(DataType::kUint8, 0.125f)},
      {"quantized matmul", true, MatMul(DataType::kUint8)},
      {"quantized matmul", false, MatMul(DataType::kInt8)},
  };
  CheckRules(QuantizedOperatorRules(), cases);
}

}  // namespace
}  // namespace tenon
