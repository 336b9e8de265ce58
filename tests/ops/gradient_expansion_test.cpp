// How much work the expansion of Gradient is. What it adds is checked in tests/conformance.
#include <gtest/gtest.h>

#include "ir/gradient.h"
#include "ir/graph_builder.h"
#include "ops/framework/registry.h"

namespace tenon {
namespace {

// The operators' shape functions; counts the nodes whose function is looked for.
class CountedShapes final : public ShapeFunctionTable {
 public:
  ShapeFunction Find(const Node& node) const override {
    ++count;
    return OpShapeFunctions().Find(node);
  }
  mutable int64_t count = 0;
};

// The nodes whose shapes are inferred to differentiate a chain of LRNs, each of which is computed
// again by simpler operators with a Gradient of their own.
int64_t InferencesFor(int layers) {
  GraphBuilder b(17);
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape{Dim(1), Dim(8), Dim(2), Dim(2)});
  ValueId y = x;
  for (int i = 0; i < layers; ++i) {
    y = b.Op("LRN", {y}, MakeAttributes(Attr("size", int64_t{3})));
  }
  y = b.Op("ReduceSum", {y}, MakeAttributes(Attr("keepdims", int64_t{0})));
  std::vector<Attribute> attributes;
  attributes.emplace_back("xs", std::vector<std::string>{"x"});
  attributes.emplace_back("y", b.graph->value(y).name);
  b.Output(b.Op("Gradient", {x}, std::move(attributes), kTraining));
  const CountedShapes shapes;
  const Status status = ExpandGradients(*b.graph, shapes);
  EXPECT_TRUE(status.ok()) << status.message();
  return shapes.count;
}

TEST(GradientExpansionTest, InfersShapesInProportionToTheModel) {
  EXPECT_EQ(InferencesFor(24) - InferencesFor(16), InferencesFor(16) - InferencesFor(8));
}

}  // namespace
}  // namespace tenon
