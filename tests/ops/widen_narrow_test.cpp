#include "ops/framework/widen_narrow.h"

#include <gtest/gtest.h>

#include <cmath>

#include "runtime/test_provider.h"

namespace tenon {
namespace {

Tensor Halves(const std::vector<float>& values) {
  std::vector<Float16> halves(values.begin(), values.end());
  return Tensor::Of<Float16>({static_cast<int64_t>(values.size())},
                             std::span<const Float16>(halves));
}

TEST(WidenNarrowTest, OperatorsWithoutHalfKernelsRunInFloat) {
  ModelBuilder b;
  b.Input("x", {Dim::Symbol("n")}, DataType::kFloat16).Constant("k", Halves({0.5f}));
  b.Node("Exp", {"x"}, {"e"}, "", 13).Node("Mul", {"e", "k"}, {"y"}, "", 14).Output("y");
  Environment environment;
  auto session = MakeSession(environment, b.Build());
  ASSERT_TRUE(session) << session.error().message();
  EXPECT_EQ((*session)->outputs()[0].type.element_type, DataType::kFloat16);
  const std::string_view names[] = {"x"}, outputs[] = {"y"};
  const std::vector<float> x = {0, 1, -2, 3.25f};
  const Value feeds[] = {Halves(x)};
  for (int run = 0; run < 2; ++run) {
    Value fetches[1];
    ASSERT_TRUE((*session)->Run({}, names, feeds, outputs, fetches).ok());
    ASSERT_EQ(fetches[0].tensor().type(), DataType::kFloat16);
    for (size_t i = 0; i < x.size(); ++i) {
      // Rounded once, at the end: exactly the half nearest to the float result.
      const auto expected = Float16(static_cast<float>(std::exp(double(x[i])) / 2));
      EXPECT_EQ(fetches[0].tensor().data<Float16>()[i].bits, expected.bits);
    }
  }
}

TEST(WidenNarrowTest, LeavesOwnedNodesAndOtherTypesAlone) {
  ModelBuilder b;
  b.Input("x", {Dim(2)}, DataType::kFloat16).Node("Exp", {"x"}, {"y"}, "", 13).Output("y");
  b.Input("z", {Dim(2)}).Node("Exp", {"z"}, {"w"}, "", 13).Output("w");
  Model model = b.Build();
  Graph& graph = *model.graph;
  graph.value(graph.FindValue("y")).type = ValueType::Tensor(DataType::kFloat16);
  graph.node(graph.value(graph.FindValue("y")).producer).provider = 0;
  EXPECT_EQ(WidenNarrow(graph), 0u);
  graph.node(graph.value(graph.FindValue("y")).producer).provider = -1;
  EXPECT_EQ(WidenNarrow(graph), 1u);
  EXPECT_EQ(graph.node_count(), 4u);
}

}  // namespace
}  // namespace tenon
