// A library for some models: TENON_OPERATOR_FAMILIES, here Binary, Conv, Pool,
// QuantizedConv, QuantizeLinear and Unary.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "ir/graph_builder.h"
#include "ir/schema.h"
#include "ops/cpu_provider.h"
#include "ops/framework/registry.h"
#include "runtime/environment.h"
#include "runtime/session.h"

namespace tenon {

// Null if the linker left them out.
[[gnu::weak]] extern const std::span<const OpRow> kSoftmaxFamily, kUnaryFamily;

namespace {

constexpr int32_t kOpset = 20;

Tensor Ones(DataType type, const Shape& shape) {
  Tensor ones = *Tensor::Allocate(type, shape);
  for (int64_t i = 0; i < ones.size(); ++i) {
    if (type == DataType::kFloat) {
      ones.data<float>()[i] = 1;
    } else {
      static_cast<uint8_t*>(ones.raw())[i] = 1;
    }
  }
  return ones;
}

class FamiliesTest : public testing::Test {
 protected:
  Result<std::unique_ptr<Session>> Open(GraphBuilder& b) {
    for (size_t i = 0; i < b.graph->node_capacity(); ++i) {
      Node* const node = b.graph->FindNode(static_cast<NodeId>(i));
      if (node != nullptr) node->schema = FindSchema(node->domain, node->op_type, node->opset);
    }
    Model model;
    model.ir_version = 9;
    model.opsets = {{"", kOpset}};
    model.graph = std::move(b.graph);
    SessionParts parts;
    parts.providers.push_back(MakeCpuProvider());
    parts.shape_functions = &OpShapeFunctions();
    return Session::Create(environment_, std::move(model), {}, std::move(parts));
  }

  // The output of the graph for the input x, as floats.
  std::vector<float> Run(GraphBuilder& b, Tensor x) {
    const auto session = Open(b);
    if (!session) {
      ADD_FAILURE() << session.error().message();
      return {};
    }
    const std::string output = (*session)->outputs()[0].name;
    const std::string_view names[] = {"x"}, outputs[] = {output};
    const Value feeds[] = {std::move(x)};
    Value fetches[1];
    const Status status = (*session)->Run({}, names, feeds, outputs, fetches);
    if (!status.ok()) {
      ADD_FAILURE() << status.message();
      return {};
    }
    const Tensor& y = fetches[0].tensor();
    std::vector<float> values;
    for (int64_t i = 0; i < y.size(); ++i) {
      values.push_back(y.type() == DataType::kFloat ? y.data<float>()[i] : y.data<uint8_t>()[i]);
    }
    return values;
  }

 private:
  Environment environment_{{.threads = {.threads = 1}}};
};

TEST_F(FamiliesTest, RefuseModelsOfOthers) {
  GraphBuilder b(kOpset);
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape{Dim(3)});
  b.Output(b.Op("Softmax", {b.Op("Add", {x, x})}));
  const auto session = Open(b);
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code(), StatusCode::kNotImplemented);
  EXPECT_EQ(
      session.error().message(),
      "Softmax-13 node 'Softmax1': no provider has a kernel of this operator (node 1 of graph "
      "'', ai.onnx opset 20; inputs: 'v' tensor(float) [3])");
}

TEST_F(FamiliesTest, FuseNoElementsWithoutFusedElements) {
  GraphBuilder b(kOpset);
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape{Dim(3)});
  b.Output(b.Op("Relu", {b.Op("Add", {x, x})}));
  EXPECT_EQ(Run(b, Tensor::Of<float>({3}, {-1, 0, 2})), (std::vector<float>{0, 0, 4}));
}

TEST_F(FamiliesTest, KeepTheLayoutOfFloatsWithoutNchwcConv) {
  GraphBuilder b(kOpset);
  const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape{Dim(1), Dim(16), Dim(8), Dim(8)});
  const ValueId w = b.Constant(Ones(DataType::kFloat, {16, 16, 3, 3}));
  const ValueId y =
      b.Op("Conv", {x, w}, MakeAttributes(Attr("pads", std::vector<int64_t>{1, 1, 1, 1})));
  b.Output(b.Op("MaxPool", {y}, MakeAttributes(Attr("kernel_shape", std::vector<int64_t>{8, 8}))));
  // All of a window's 3 x 3 x 16 elements.
  EXPECT_EQ(Run(b, Ones(DataType::kFloat, {1, 16, 8, 8})), std::vector<float>(16, 144));
}

TEST_F(FamiliesTest, KeepTheLayoutOfBytesWithoutNhwcQLinearConv) {
  GraphBuilder b(kOpset);
  const ValueId x =
      b.Input("x", DataType::kUint8, SymbolicShape{Dim(1), Dim(64), Dim(32), Dim(32)});
  const ValueId w = b.Constant(Ones(DataType::kInt8, {64, 64, 3, 3}));
  const ValueId one = b.Scalar(1), four = b.Scalar(4),
                zero = b.Constant(Tensor::Of<uint8_t>({}, {0})),
                signed_zero = b.Constant(Tensor::Of<int8_t>({}, {0}));
  b.Output(b.Op("QLinearConv", {x, one, zero, w, one, signed_zero, four, zero}));
  // 3 x 3 x 64 / 4.
  EXPECT_EQ(Run(b, Ones(DataType::kUint8, {1, 64, 32, 32})),
            std::vector<float>(size_t{64} * 30 * 30, 144));
}

TEST_F(FamiliesTest, MakeNoTablesWithoutQLinearElementwise) {
  GraphBuilder b(kOpset);
  const ValueId x = b.Input("x", DataType::kUint8, SymbolicShape{Dim(4)});
  const ValueId zero = b.Constant(Tensor::Of<uint8_t>({}, {0}));
  const ValueId root = b.Op("Sqrt", {b.Op("DequantizeLinear", {x, b.Scalar(0.5f), zero})});
  b.Output(b.Op("QuantizeLinear", {root, b.Scalar(1), zero}));
  EXPECT_EQ(Run(b, Tensor::Of<uint8_t>({4}, {0, 2, 8, 18})), (std::vector<float>{0, 1, 2, 3}));
}

TEST_F(FamiliesTest, AreAllThatIsLinked) {
  EXPECT_EQ(&kSoftmaxFamily, nullptr);
  EXPECT_NE(&kUnaryFamily, nullptr);
  EXPECT_EQ(OpFamilies().size(), 6u);
}

}  // namespace
}  // namespace tenon
