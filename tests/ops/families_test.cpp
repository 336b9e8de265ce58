// A library for some models: TENON_OPERATOR_FAMILIES, here Binary,
// FusedElements and Unary.
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
[[gnu::weak]] extern const std::span<const OpRow> kConvFamily, kUnaryFamily;

namespace {

constexpr int32_t kOpset = 20;

class FamiliesTest : public testing::Test {
 protected:
  // A session of y = op_type(x + x).
  Result<std::unique_ptr<Session>> Open(const std::string& op_type, SymbolicShape shape,
                                        std::vector<Tensor> constants = {}) {
    GraphBuilder b(kOpset);
    const ValueId x = b.Input("x", DataType::kFloat, std::move(shape));
    std::vector<ValueId> inputs = {b.Op("Add", {x, x})};
    for (Tensor& constant : constants) inputs.push_back(b.Constant(std::move(constant)));
    b.Output(b.Op(op_type, inputs));
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

 private:
  Environment environment_{{.threads = {.threads = 1}}};
};

TEST_F(FamiliesTest, RunModelsOfTheirOperators) {
  const auto session = Open("Relu", {Dim(3)});
  ASSERT_TRUE(session) << session.error().message();
  const std::string output = (*session)->outputs()[0].name;
  const std::string_view names[] = {"x"}, outputs[] = {output};
  const Value feeds[] = {Tensor::Of<float>({3}, {-1, 0, 2})};
  Value fetches[1];
  const Status status = (*session)->Run({}, names, feeds, outputs, fetches);
  ASSERT_TRUE(status.ok()) << status.message();
  const float* const y = fetches[0].tensor().data<float>();
  EXPECT_EQ(std::vector<float>(y, y + 3), (std::vector<float>{0, 0, 4}));
}

TEST_F(FamiliesTest, RefuseModelsOfOthers) {
  const auto session =
      Open("Conv", {Dim(1), Dim(1), Dim(1), Dim(2)}, {Tensor::Of<float>({1, 1, 1, 1}, {3})});
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code(), StatusCode::kNotImplemented);
  EXPECT_EQ(session.error().message(),
            "Conv-11 node 'Conv1': no provider has a kernel for inputs of these types (node 1 of "
            "graph '', ai.onnx opset 20; inputs: 'v' tensor(float) [1, 1, 1, 2], 'c' tensor(float) "
            "[1, 1, 1, 1])");
}

TEST_F(FamiliesTest, AreAllThatIsLinked) {
  EXPECT_EQ(&kConvFamily, nullptr);
  EXPECT_NE(&kUnaryFamily, nullptr);
  EXPECT_EQ(OpFamilies().size(), 3u);
}

}  // namespace
}  // namespace tenon
