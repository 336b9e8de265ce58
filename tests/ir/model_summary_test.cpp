#include "ir/model_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "ir/graph_builder.h"

namespace tenon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

Status SameAsInput(const Node&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  return context.SetOutput(0, std::move(shape));
}

// Knows Relu, Neg and Add (of equal shapes).
class Functions final : public ShapeFunctionTable {
 public:
  ShapeFunction Find(const Node& node) const override {
    const bool known = node.op_type == "Relu" || node.op_type == "Neg" || node.op_type == "Add";
    return known ? SameAsInput : nullptr;
  }
};

Model ModelOf(std::unique_ptr<Graph> graph) {
  Model model;
  model.ir_version = 10;
  model.opsets[""] = 20;
  model.graph = std::move(graph);
  return model;
}

// a = Relu(x [batch, 8]), b = Neg(a), c = Relu(b), y = Add(Add(a, c), w): while c is made, a, b and
// c are alive, and never more than three values.
Model Residual() {
  GraphBuilder b;
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape{Dim::Symbol("batch"), 8});
  const ValueId a = b.Op("Relu", {x});
  const ValueId c = b.Op("Relu", {b.Op("Neg", {a})});
  const ValueId w = b.Constant(Tensor::Of<float>({8}, {1, 2, 3, 4, 5, 6, 7, 8}));
  b.Output(b.Op("Add", {b.Op("Add", {a, c}), w}));
  return ModelOf(std::move(b.graph));
}

TEST(ModelSummaryTest, CountsNodesOperatorsAndParameters) {
  Model model = Residual();
  const Result<ModelSummary> summary = Summarize(model, Functions());
  ASSERT_TRUE(summary) << summary.error().message();
  EXPECT_TRUE(summary->problem.ok()) << summary->problem.message();
  EXPECT_EQ(summary->nodes, 5u);
  EXPECT_THAT(summary->operators, ElementsAre(Pair(Pair("", "Add"), 2u), Pair(Pair("", "Neg"), 1u),
                                              Pair(Pair("", "Relu"), 2u)));
  EXPECT_EQ(summary->parameters.tensors, 1u);
  EXPECT_EQ(summary->parameters.elements, 8);
  EXPECT_EQ(summary->parameters.bytes, 32u);
}

TEST(ModelSummaryTest, PeakIsOfTheValuesAliveAtOnce) {
  constexpr size_t kRow = 8 * sizeof(float);
  Model model = Residual();
  const Result<ModelSummary> assumed = Summarize(model, Functions());
  ASSERT_TRUE(assumed);
  EXPECT_EQ(assumed->activations.peak_bytes, 3 * kRow);
  EXPECT_THAT(assumed->activations.assumed_dims, ElementsAre("batch"));
  EXPECT_EQ(assumed->activations.unknown_values, 0u);

  const Result<ModelSummary> given = Summarize(model, Functions(), {{"batch", 5}});
  ASSERT_TRUE(given);
  EXPECT_EQ(given->activations.peak_bytes, 3 * 5 * kRow);
  EXPECT_THAT(given->activations.assumed_dims, ElementsAre());
  const ValueType& input = model.graph->value(model.graph->inputs[0]).type;
  EXPECT_EQ(input.ToString(), "tensor(float) [5, 8]");
}

TEST(ModelSummaryTest, ValuesOfUnknownShapeAreCountedAsSuch) {
  GraphBuilder b;
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape{Dim::Unknown(), 2});
  b.Output(b.Op("Exp", {b.Op("Relu", {x})}));
  Model model = ModelOf(std::move(b.graph));
  const Result<ModelSummary> summary = Summarize(model, Functions());
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->activations.unknown_values, 1u);
  EXPECT_THAT(summary->activations.assumed_dims, ElementsAre("x.0"));
  EXPECT_EQ(summary->activations.peak_bytes, 2 * 2 * sizeof(float));
}

TEST(ModelSummaryTest, HugeSizesAreUnknownNotWrong) {
  Model model = Residual();
  const Result<ModelSummary> summary =
      Summarize(model, Functions(), {{"batch", std::numeric_limits<int64_t>::max()}});
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->activations.peak_bytes, 0u);
  EXPECT_EQ(summary->activations.unknown_values, 6u);
}

TEST(ModelSummaryTest, ProblemIsReportedBesideTheCounts) {
  GraphBuilder b;
  b.Output(b.Op("Rellu", {b.Input("x")}));
  Model model = ModelOf(std::move(b.graph));
  const Result<ModelSummary> summary = Summarize(model, Functions());
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->nodes, 1u);
  EXPECT_THAT(summary->problem.message(), HasSubstr("Rellu"));
}

TEST(ModelSummaryTest, RejectsDimensionsThatTheModelDoesNotHave) {
  const struct {
    DimSizes sizes;
    const char* text;
  } kCases[] = {
      {{{"bach", 1}}, "the model has no dimension 'bach' (did you mean 'batch'?)"},
      {{{"batch", -1}}, "dimension 'batch': expected a size, got -1"},
  };
  for (const auto& [sizes, text] : kCases) {
    Model model = Residual();
    const Result<ModelSummary> summary = Summarize(model, Functions(), sizes);
    ASSERT_FALSE(summary) << text;
    EXPECT_EQ(summary.error().message(), text);
  }
}

}  // namespace
}  // namespace tenon
