// Which operators of the schema table have a gradient (TR-1 of the users' needs): every one that
// has inputs and outputs of floats, but those that are listed here with the reason. What the
// gradients are is checked in tests/conformance and tests/torch_backend.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "ir/gradient.h"
#include "ir/schema.h"

namespace tenon {
namespace {

bool MayBeFloats(const OpSchema& schema, const OpFormal& formal) {
  constexpr TypeSet kFloats = {DataType::kFloat, DataType::kDouble, DataType::kFloat16,
                               DataType::kBfloat16};
  const OpTypeConstraint* const constraint = schema.FindConstraint(formal.type);
  if (constraint == nullptr) return formal.type == "tensor(float)";
  for (int i = 1; i < kDataTypeCount; ++i) {
    const auto type = static_cast<DataType>(i);
    if (kFloats.Contains(type) && constraint->tensors.Contains(type)) return true;
  }
  return false;
}

bool MapsFloatsToFloats(const OpSchema& schema) {
  const auto may_be = [&](const OpFormal& formal) { return MayBeFloats(schema, formal); };
  return std::any_of(schema.inputs.begin(), schema.inputs.end(), may_be) &&
         std::any_of(schema.outputs.begin(), schema.outputs.end(), may_be);
}

// The newest version of each operator of a domain that maps floats to floats.
std::map<std::string, const OpSchema*> OperatorsOfFloats(std::string_view domain) {
  std::map<std::string, const OpSchema*> found;
  for (const OpSchema& schema : AllSchemas()) {
    if (schema.domain != domain) continue;
    found.erase(std::string(schema.name));
    if (!schema.deprecated && MapsFloatsToFloats(schema)) {
      found[std::string(schema.name)] = &schema;
    }
  }
  return found;
}

// Whether there is a rule, or a function of other operators that is differentiated instead.
bool HasGradient(const OpSchema& schema) {
  Node node;
  node.op_type = schema.name;
  node.domain = schema.domain;
  node.opset = schema.since;
  return FindGradientRule(node) != nullptr || !schema.function_body.empty();
}

std::set<std::string> WithoutGradient(std::string_view domain) {
  std::set<std::string> names;
  for (const auto& [name, schema] : OperatorsOfFloats(domain)) {
    if (!HasGradient(*schema)) names.insert(name);
  }
  return names;
}

TEST(GradientCoverageTest, OperatorsOfTheStandard) {
  // Not differentiable: their results are other bits, or are of lists and sizes.
  std::set<std::string> without = {"BitCast", "MelWeightMatrix", "OptionalGetElement", "Range",
                                   "Unique"};
  // Only made by gradients, which are then computed by other operators if they have one themselves.
  without.insert("MaxPoolGrad");
  EXPECT_EQ(WithoutGradient(""), without);
}

// The domain's other operators of floats are named by an error.
TEST(GradientCoverageTest, OperatorsOfMicrosoft) {
  const std::set<std::string> without = WithoutGradient("com.microsoft");
  std::set<std::string> with;
  for (const auto& [name, schema] : OperatorsOfFloats("com.microsoft")) {
    if (without.count(name) == 0) with.insert(name);
  }
  const std::set<std::string> known = {"BiasGelu",
                                       "CausalConvWithState",
                                       "ConvGrad",
                                       "DequantizeLinear",
                                       "FastGelu",
                                       "GRUTraining",
                                       "Gelu",
                                       "GroupQueryAttention",
                                       "GroupedMatMul",
                                       "Inverse",
                                       "LSTMTraining",
                                       "LinearAttention",
                                       "MatMulNBits",
                                       "MultiHeadAttention",
                                       "QuickGelu",
                                       "RoiAlignGrad",
                                       "RotaryEmbedding",
                                       "ScaledDotProductAttention",
                                       "SliceGrad",
                                       "SkipLayerNormalization",
                                       "SkipSimplifiedLayerNormalization"};
  EXPECT_EQ(with, known);
}

}  // namespace
}  // namespace tenon
