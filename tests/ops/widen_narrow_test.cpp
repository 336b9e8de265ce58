#include "ops/framework/widen_narrow.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "ir/graph_builder.h"
#include "ir/schema.h"
#include "kernels/gemm/gemm_bf16.h"
#include "ops/cpu_provider.h"
#include "runtime/kernel.h"
#include "runtime/test_provider.h"

namespace tenon {
namespace {

bool IsFast() { return kernels::IsBf16GemmFast(kernels::Bf16Parts::kOne); }

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
  EXPECT_EQ(WidenNarrow(graph, 0), 0u);
  graph.node(graph.value(graph.FindValue("y")).producer).provider = -1;
  EXPECT_EQ(WidenNarrow(graph, 0), 1u);
  EXPECT_EQ(graph.node_count(), 4u);
}

// Takes each convolution of a float image, whatever its weights are.
class ConvProvider final : public ExecutionProvider {
 public:
  explicit ConvProvider(std::vector<DataType>& weights) : weights_(weights) {}
  const std::string& name() const override { return name_; }
  Result<std::vector<Claim>> GetCapability(const Graph& graph) override {
    const auto type = [&](ValueId id) { return graph.value(id).type.element_type; };
    std::vector<Claim> claims;
    for (size_t i = 0; i < graph.node_capacity(); ++i) {
      const Node* const node = graph.FindNode(static_cast<NodeId>(i));
      if (node == nullptr || node->provider >= 0 || node->op_type != "Conv") continue;
      if (type(node->inputs[0]) != DataType::kFloat) continue;
      weights_.push_back(type(node->inputs[1]));
      claims.push_back({{node->id}});
    }
    return claims;
  }
  Result<std::unique_ptr<Kernel>> CreateKernel(KernelInfo& info) override {
    return cpu_->CreateKernel(info);
  }

 private:
  const std::string name_ = "ConvProvider";
  std::vector<DataType>& weights_;  // of the convolutions that it took
  const std::unique_ptr<ExecutionProvider> cpu_ = MakeCpuProvider();
};

TEST(WidenNarrowTest, OtherProvidersGetNoConvolutionOfAFloatImageWithHalfWeights) {
  constexpr int64_t kIn = 64, kPixels = 3;
  for (const int64_t out : {int64_t{2}, int64_t{1024}}) {  // many weights stay as they are
    SCOPED_TRACE(out);
    std::vector<float> x, w;
    for (int64_t i = 0; i < kIn * kPixels; ++i) x.push_back(static_cast<float>(i % 7) - 3);
    for (int64_t i = 0; i < out * kIn; ++i) w.push_back(static_cast<float>(i % 5) / 4);
    ModelBuilder b;
    b.Input("x", {Dim(1), Dim(kIn), Dim(1), Dim(kPixels)}, DataType::kFloat16);
    b.Constant("w", Halves(w).Reshaped({out, kIn, 1, 1}));
    b.Node("Conv", {"x", "w"}, {"y"}, "", 11).Output("y");
    Environment environment;
    std::vector<DataType> taken;
    std::vector<std::unique_ptr<ExecutionProvider>> providers;
    providers.push_back(std::make_unique<ConvProvider>(taken));
    auto session = MakeSession(environment, b.Build(), {}, std::move(providers));
    ASSERT_TRUE(session) << session.error().message();
    EXPECT_EQ(taken, std::vector<DataType>(out == 2 ? 1 : 0, DataType::kFloat));
    const std::string_view names[] = {"x"}, outputs[] = {"y"};
    const Value feeds[] = {Halves(x).Reshaped({1, kIn, 1, kPixels})};
    Value fetches[1];
    const Status status = (*session)->Run({}, names, feeds, outputs, fetches);
    ASSERT_TRUE(status.ok()) << status.message();
    for (int64_t o = 0; o < out; ++o) {
      for (int64_t p = 0; p < kPixels; ++p) {
        float sum = 0;  // exact
        for (int64_t c = 0; c < kIn; ++c) sum += x[c * kPixels + p] * w[o * kIn + c];
        EXPECT_EQ(fetches[0].tensor().data<Float16>()[o * kPixels + p].bits, Float16(sum).bits);
      }
    }
  }
}

// A product of bfloat16 numbers. `casts`: as under autocast, where operands are rounded for it and
// its result is widened again.
struct Product {
  GraphBuilder b;
  ValueId x, x16, y16;

  explicit Product(bool casts) {
    const auto input = [&](const char* name) {
      return b.Input(name, casts ? DataType::kFloat : DataType::kBfloat16,
                     SymbolicShape{Dim(3), Dim(3)});
    };
    x = input("x");
    const ValueId w = input("w");
    x16 = casts ? Cast(x, DataType::kBfloat16) : x;
    y16 = b.Op("MatMul", {x16, casts ? Cast(w, DataType::kBfloat16) : w});
    b.Shaped(y16, {Dim(3), Dim(3)}, DataType::kBfloat16);
    b.Output(casts ? b.Op("Relu", {Cast(y16, DataType::kFloat)}) : y16);
    for (size_t i = 0; i < b.graph->node_capacity(); ++i) {
      Node& node = b.graph->node(static_cast<NodeId>(i));
      node.schema = FindSchema("", node.op_type, node.opset);
    }
  }

  ValueId Cast(ValueId value, DataType type) {
    const ValueId cast =
        b.Op("Cast", {value}, MakeAttributes(Attr("to", static_cast<int64_t>(type))));
    return b.Shaped(cast, {Dim(3), Dim(3)}, type);
  }
  const Node& node() const { return b.graph->node(b.graph->value(y16).producer); }
};

TEST(WidenNarrowTest, AProductRoundsItsOperandsItself) {
  Product product(true);
  EXPECT_TRUE(IsBetterWide(*product.b.graph, product.node()));
  const NodeId id = product.node().id;
  WidenNarrow(*product.b.graph, 0);
  EXPECT_EQ(product.b.graph->node_count(), 2u) << GraphText(*product.b.graph);
  const Node& node = product.b.graph->node(id);
  EXPECT_EQ(node.inputs[0], product.x);
  EXPECT_EQ(node.GetInt(kFromBfloat16, 0), IsFast() ? 1 : 0);
}

TEST(WidenNarrowTest, CastsThatOthersReadStay) {
  Product product(true);
  product.b.Output(product.x16);
  WidenNarrow(*product.b.graph, 0);
  EXPECT_EQ(product.b.graph->node_count(), 3u) << GraphText(*product.b.graph);
}

TEST(WidenNarrowTest, AProductBetweenValuesOfBfloat16StaysNarrowWhereItIsFast) {
  const Product product(false);
  EXPECT_EQ(IsBetterWide(*product.b.graph, product.node()), !IsFast());
}

}  // namespace
}  // namespace tenon
