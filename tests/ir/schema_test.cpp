#include "ir/schema.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <set>

namespace tenon {
namespace {

const OpSchema& SchemaOf(std::string_view domain, std::string_view name, int32_t version) {
  const OpSchema* schema = FindSchema(domain, name, version);
  static constexpr OpSchema kNone;
  EXPECT_NE(schema, nullptr) << name << "-" << version;
  return schema ? *schema : kNone;
}

TEST(SchemaTest, IsSortedAndUnique) {
  const auto schemas = AllSchemas();
  const auto is_standard = [](const OpSchema& s) { return s.domain == ""; };
  EXPECT_EQ(std::count_if(schemas.begin(), schemas.end(), is_standard), 647);
  const auto key = [](const OpSchema& s) { return std::tuple(s.domain, s.name, s.since); };
  for (size_t i = 1; i < schemas.size(); ++i) {
    EXPECT_LT(key(schemas[i - 1]), key(schemas[i])) << schemas[i].name;
  }
}

TEST(SchemaTest, EveryRowIsConsistent) {
  for (const OpSchema& schema : AllSchemas()) {
    SCOPED_TRACE(schema.name);
    EXPECT_LE(schema.min_inputs, schema.max_inputs);
    EXPECT_LE(schema.min_outputs, schema.max_outputs);
    EXPECT_EQ(FindSchema(schema.domain, schema.name, schema.since), &schema);
    EXPECT_LE(schema.since, NewestOpset(schema.domain));
    EXPECT_TRUE(std::is_sorted(schema.attributes.begin(), schema.attributes.end(),
                               [](const auto& a, const auto& b) { return a.name < b.name; }));
    for (const auto formals : {schema.inputs, schema.outputs}) {
      for (const OpFormal& formal : formals) {
        // A type is a constraint's name or a type's own.
        EXPECT_NE(schema.FindConstraint(formal.type) != nullptr,
                  formal.type.find('(') != std::string_view::npos)
            << formal.type;
        EXPECT_TRUE(formal.kind != FormalKind::kVariadic || &formal == &formals.back());
      }
    }
    for (const OpAttribute& attribute : schema.attributes) {
      EXPECT_EQ(schema.FindAttribute(attribute.name), &attribute);
      EXPECT_FALSE(attribute.required && attribute.has_default) << attribute.name;
    }
  }
}

struct VersionCase {
  std::string_view domain;
  std::string_view name;
  int32_t version;
  int32_t since;  // 0: there is no schema
};

constexpr VersionCase kVersionCases[] = {
    {"", "Softmax", 1, 1},
    {"", "Softmax", 12, 11},
    {"", "Softmax", 13, 13},
    {"", "Softmax", 1000, 13},
    {"", "LayerNormalization", 16, 0},
    {"", "LayerNormalization", 17, 17},
    {"", "Upsample", 9, 9},
    {"", "Upsample", 13, 10},
    {"", "Softmax", 0, 0},
    {"", "softmax", 13, 0},
    {"", "", 13, 0},
    {"ai.onnx", "Softmax", 13, 0},
    {"ai.onnx.ml", "TreeEnsembleClassifier", 2, 1},
    {"ai.onnx.ml", "TreeEnsembleClassifier", 4, 3},
    {"ai.onnx.ml", "TreeEnsemble", 5, 5},
    {"ai.onnx.preview.training", "Adam", 1, 1},
    {"", "SimplifiedLayerNormalization", 20, 1},
    {"", "Affine", 9, 1},
    {"", "ThresholdedRelu", 9, 1},
    {"com.microsoft", "Attention", 1, 1},
    {"com.microsoft", "Conv", 1, 0},
    {"com.ms.internal.nhwc", "Conv", 10, 1},
    {"com.ms.internal.nhwc", "Conv", 11, 11},
    {"com.ms.internal.nhwc", "QLinearAveragePool", 11, 1},
    {"com.ms.internal.nhwc", "Abs", 13, 0},
    {"no.such.domain", "Abs", 1, 0},
};

TEST(SchemaTest, FindsTheVersionThatAnOpsetMeans) {
  for (const VersionCase& c : kVersionCases) {
    const OpSchema* schema = FindSchema(c.domain, c.name, c.version);
    EXPECT_EQ(schema ? schema->since : 0, c.since) << c.name << "-" << c.version;
  }
}

TEST(SchemaTest, FindsAllVersionsOfEveryOperator) {
  const auto all = AllSchemas();
  for (size_t i = 0, end = 0; i < all.size(); i = end) {
    const auto is_other = [&](const OpSchema& schema) {
      return schema.domain != all[i].domain || schema.name != all[i].name;
    };
    end = static_cast<size_t>(
        std::find_if(all.begin() + static_cast<std::ptrdiff_t>(i), all.end(), is_other) -
        all.begin());
    const auto found = SchemasOf(all[i].domain, all[i].name);
    EXPECT_EQ(found.data(), &all[i]) << all[i].name;
    EXPECT_EQ(found.size(), end - i) << all[i].name;
  }
  EXPECT_TRUE(SchemasOf("", "NoOperator").empty());
  EXPECT_TRUE(SchemasOf("no.domain", "Add").empty());
}

TEST(SchemaTest, KnowsTheNewestOpsetOfEachDomain) {
  EXPECT_EQ(NewestOpset(""), 28);
  EXPECT_EQ(NewestOpset("ai.onnx.ml"), 5);
  EXPECT_EQ(NewestOpset("ai.onnx.preview.training"), 1);
  EXPECT_EQ(NewestOpset("com.microsoft"), 1);
  EXPECT_EQ(NewestOpset("com.ms.internal.nhwc"), 28);
  EXPECT_EQ(NewestOpset("com.example"), 0);
}

TEST(SchemaTest, HoldsAttributesWithDefaults) {
  const OpAttribute* axis = SchemaOf("", "Softmax", 13).FindAttribute("axis");
  ASSERT_NE(axis, nullptr);
  EXPECT_EQ(axis->type, AttributeType::kInt);
  EXPECT_TRUE(axis->has_default);
  EXPECT_EQ(axis->default_int, -1);
  EXPECT_EQ(SchemaOf("", "Softmax", 11).FindAttribute("axis")->default_int, 1);
  EXPECT_EQ(SchemaOf("", "Softmax", 13).FindAttribute("Axis"), nullptr);

  const OpSchema& conv = SchemaOf("", "Conv", 11);
  EXPECT_EQ(conv.FindAttribute("auto_pad")->default_string, "NOTSET");
  EXPECT_FALSE(conv.FindAttribute("pads")->has_default);
  EXPECT_EQ(conv.FindAttribute("pads")->type, AttributeType::kInts);

  EXPECT_TRUE(SchemaOf("", "Cast", 13).FindAttribute("to")->required);
  EXPECT_EQ(SchemaOf("", "LeakyRelu", 16).FindAttribute("alpha")->default_float, 0.01f);
  const auto activations = SchemaOf("", "RNN", 14).FindAttribute("activations")->default_strings;
  ASSERT_EQ(activations.size(), 2u);
  EXPECT_EQ(activations[1], "Tanh");
  const auto axes = SchemaOf("", "MeanVarianceNormalization", 13).FindAttribute("axes");
  EXPECT_EQ(std::vector<int64_t>(axes->default_ints.begin(), axes->default_ints.end()),
            (std::vector<int64_t>{0, 2, 3}));
}

TEST(SchemaTest, CountsTheEntriesThatContribOperatorsNeed) {
  const OpSchema& attention = SchemaOf("com.microsoft", "Attention", 1);
  EXPECT_EQ(attention.min_inputs, 2);
  EXPECT_EQ(attention.max_inputs, 7);
  EXPECT_EQ(attention.min_outputs, 1);
  EXPECT_EQ(attention.max_outputs, 2);
  EXPECT_TRUE(attention.FindAttribute("num_heads")->required);
  const OpSchema& context = SchemaOf("com.microsoft", "EPContext", 1);
  EXPECT_EQ(context.min_inputs, 0);
  EXPECT_EQ(context.max_inputs, INT32_MAX);
}

TEST(SchemaTest, HoldsFormalsAndTypeConstraints) {
  const OpSchema& conv = SchemaOf("", "Conv", 11);
  ASSERT_EQ(conv.inputs.size(), 3u);
  EXPECT_EQ(conv.min_inputs, 2);
  EXPECT_EQ(conv.max_inputs, 3);
  EXPECT_EQ(conv.inputs[2].name, "B");
  EXPECT_EQ(conv.inputs[2].kind, FormalKind::kOptional);
  EXPECT_TRUE(conv.inputs[0].differentiable);
  EXPECT_EQ(conv.FindConstraint("T")->tensors,
            (TypeSet{DataType::kFloat, DataType::kFloat16, DataType::kDouble}));
  EXPECT_EQ(SchemaOf("", "Conv", 22).FindConstraint("T")->tensors, kFloats);

  const OpSchema& concat = SchemaOf("", "Concat", 13);
  EXPECT_EQ(concat.max_inputs, INT_MAX);
  EXPECT_EQ(concat.inputs[0].kind, FormalKind::kVariadic);
  EXPECT_EQ(SchemaOf("", "Reshape", 13).inputs[1].type, "tensor(int64)");
  EXPECT_FALSE(SchemaOf("", "Reshape", 13).inputs[1].differentiable);
  EXPECT_FALSE(SchemaOf("", "Loop", 13).inputs[2].homogeneous);

  EXPECT_TRUE(
      SchemaOf("", "SequenceAt", 11).FindConstraint("S")->sequences.Contains(DataType::kString));
  const OpTypeConstraint* identity = SchemaOf("", "Identity", 16).FindConstraint("V");
  EXPECT_TRUE(identity->optional_sequences.Contains(DataType::kInt8));
  EXPECT_TRUE(identity->optional_tensors.Contains(DataType::kInt8));
  EXPECT_TRUE(identity->tensors.Contains(DataType::kInt8));
  const auto maps = SchemaOf("ai.onnx.ml", "CastMap", 1).constraints[0].others;
  EXPECT_NE(std::find(maps.begin(), maps.end(), "map(int64,tensor(float))"), maps.end());
}

TEST(SchemaTest, MarksDeprecatedRandomAndComposite) {
  EXPECT_TRUE(SchemaOf("", "Upsample", 10).deprecated);
  EXPECT_FALSE(SchemaOf("", "Upsample", 9).deprecated);
  EXPECT_TRUE(SchemaOf("", "RandomNormal", 1).non_deterministic);
  EXPECT_FALSE(SchemaOf("", "Add", 14).non_deterministic);
  EXPECT_FALSE(SchemaOf("", "MeanVarianceNormalization", 13).function_body.empty());
  EXPECT_TRUE(SchemaOf("", "Add", 14).function_body.empty());
  EXPECT_TRUE(SchemaOf("", "LayerNormalization", 17).has_context_dependent_function);
  EXPECT_FALSE(SchemaOf("", "Add", 14).has_context_dependent_function);
}

}  // namespace
}  // namespace tenon
