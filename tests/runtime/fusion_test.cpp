// Providers that fuse nodes. Requirements: plugin-ep, section 5.
#include <gtest/gtest.h>

#include <map>

#include "runtime/kernel.h"
#include "runtime/kernel_info.h"
#include "runtime/test_provider.h"

namespace tenon {
namespace {

// Interprets a body of Add and Scale.
class BodyKernel final : public Kernel {
 public:
  explicit BodyKernel(const Graph& body) : body_(body) {}
  KernelTraits traits() const override { return {.allocates_outputs = true}; }
  Status InferShapes(ShapeContext&) const override { return OkStatus(); }
  Status Run(KernelContext& context) const override {
    std::map<ValueId, std::vector<float>> values;
    for (size_t i = 0; i < body_.inputs.size(); ++i) {
      const auto input = context.Input(i).values<float>();
      values[body_.inputs[i]].assign(input.begin(), input.end());
    }
    TENON_ASSIGN_OR_RETURN(const std::vector<NodeId> order, body_.TopologicalOrder());
    for (const NodeId id : order) {
      const Node& node = body_.node(id);
      std::vector<float> x = ValuesOf(values, node.inputs[0]);
      const std::vector<float> z = node.op_type == "Add" ? ValuesOf(values, node.inputs[1]) : x;
      for (size_t i = 0; i < x.size(); ++i) x[i] += z[i];
      values[node.outputs[0]] = std::move(x);
    }
    for (size_t i = 0; i < body_.outputs().size(); ++i) {
      const std::vector<float>& result = values[body_.outputs()[i].value];
      TENON_ASSIGN_OR_RETURN(
          Tensor * output,
          context.AllocateOutput(i, DataType::kFloat, {static_cast<int64_t>(result.size())}));
      std::copy(result.begin(), result.end(), output->data<float>());
    }
    return OkStatus();
  }

 private:
  std::vector<float> ValuesOf(std::map<ValueId, std::vector<float>>& values, ValueId id) const {
    if (const Tensor* constant = body_.ConstantOf(id)) {
      const auto elements = constant->values<float>();
      return {elements.begin(), elements.end()};
    }
    return values[id];
  }

  const Graph& body_;
};

struct FusingOptions {
  // Names of the nodes of each group.
  std::vector<std::vector<std::string>> groups;
  bool drop_constants = false;
  bool fails_to_compile = false;
  bool fails_to_answer = false;
};

class FusingProvider final : public ExecutionProvider {
 public:
  FusingProvider(FusingOptions options, std::vector<std::string>& compiled)
      : options_(std::move(options)), compiled_(compiled) {}

  const std::string& name() const override { return name_; }
  Result<std::vector<Claim>> GetCapability(const Graph& graph) override {
    if (options_.fails_to_answer) return EpFail("cannot tell");
    std::vector<Claim> claims;
    for (const auto& group : options_.groups) {
      Claim claim{.fuse = true, .drop_constants = options_.drop_constants};
      for (size_t i = 0; i < graph.node_capacity(); ++i) {
        const Node* node = graph.FindNode(static_cast<NodeId>(i));
        if (node && std::count(group.begin(), group.end(), node->name)) {
          claim.nodes.push_back(node->id);
        }
      }
      if (!claim.nodes.empty()) claims.push_back(std::move(claim));
    }
    return claims;
  }
  Status Compile(const Graph& graph, std::vector<FusedNode> nodes) override {
    if (options_.fails_to_compile) return EpFail("no code for this");
    for (FusedNode& node : nodes) {
      const Node& call = graph.node(node.id);
      compiled_.push_back(Format("{}({} inputs, {} nodes)", call.name, call.inputs.size(),
                                 node.body->node_count()));
      bodies_[call.name] = std::move(node.body);
    }
    return OkStatus();
  }
  Result<std::unique_ptr<Kernel>> CreateKernel(KernelInfo& info) override {
    return std::make_unique<BodyKernel>(*bodies_.at(info.node().name));
  }

 private:
  const std::string name_ = "FusingExecutionProvider";
  const FusingOptions options_;
  std::vector<std::string>& compiled_;
  std::map<std::string, std::unique_ptr<Graph>> bodies_;
};

class FusionTest : public ::testing::Test {
 protected:
  // a = 2x, b = a + c, y = 2b
  Result<std::unique_ptr<Session>> Open(FusingOptions options) {
    messages_.clear();
    compiled_.clear();
    ResetRuns();
    ModelBuilder b;
    b.Input("x", {Dim::Symbol("n")}).Constant("c", Tensor::Of<float>({2}, {10, 20}));
    b.Node("Scale", {"x"}, {"a"}).Node("Add", {"a", "c"}, {"b"}).Node("Scale", {"b"}, {"y"});
    b.Output("y");
    std::vector<std::unique_ptr<ExecutionProvider>> providers;
    providers.push_back(std::make_unique<FusingProvider>(std::move(options), compiled_));
    return MakeSession(environment_, b.Build(), {}, std::move(providers));
  }

  void ExpectRuns(Session& session) {
    for (int repeat = 0; repeat < 3; ++repeat) {
      const std::string_view in = "x", out = "y";
      const Value x = Tensor::Of<float>({2}, {1, 2});
      Value y;
      const Status status = session.Run({}, {&in, 1}, {&x, 1}, {&out, 1}, {&y, 1});
      ASSERT_TRUE(status.ok()) << status.message();
      EXPECT_EQ(y.tensor().values<float>()[0], 24);
      EXPECT_EQ(y.tensor().values<float>()[1], 48);
    }
  }

  static LogSink SinkOf(std::vector<std::string>& messages) {
    LogSink sink;
    sink.write = [](void* param, Severity, const char*, const char*, const char*,
                    const char* text) {
      static_cast<std::vector<std::string>*>(param)->push_back(text);
    };
    sink.param = &messages;
    return sink;
  }

  std::vector<std::string> messages_, compiled_;
  Environment environment_{{.sink = SinkOf(messages_), .threads = {.threads = 1}}};
};

// PE-42, PE-44
TEST_F(FusionTest, AGroupBecomesOneNodeWithAStableName) {
  const auto session = Open({.groups = {{"node_a", "node_b"}}});
  ASSERT_TRUE(session) << session.error().message();
  ASSERT_EQ(compiled_.size(), 1u);
  EXPECT_TRUE(compiled_[0].starts_with("FusingExecutionProvider_"));
  EXPECT_TRUE(compiled_[0].ends_with("_0(2 inputs, 2 nodes)")) << compiled_[0];
  ExpectRuns(**session);
  EXPECT_EQ(RunsOf("Add"), 0);
  EXPECT_EQ(RunsOf("Scale"), 3);
  const std::string name = compiled_[0];
  const auto again = Open({.groups = {{"node_a", "node_b"}}});
  EXPECT_EQ(compiled_[0], name);
}

// PE-42: drop_constant_initializers
TEST_F(FusionTest, ConstantsMayGoWithTheBody) {
  const auto session = Open({.groups = {{"node_a", "node_b"}}, .drop_constants = true});
  ASSERT_TRUE(session);
  EXPECT_TRUE(compiled_[0].ends_with("_0(1 inputs, 2 nodes)")) << compiled_[0];
  ExpectRuns(**session);
}

TEST_F(FusionTest, SeveralGroupsAreCompiledTogether) {
  const auto session = Open({.groups = {{"node_a"}, {"node_b", "node_y"}}});
  ASSERT_TRUE(session);
  ASSERT_EQ(compiled_.size(), 2u);
  EXPECT_TRUE(compiled_[1].ends_with("_1(2 inputs, 2 nodes)"));
  ExpectRuns(**session);
}

// PE-41: the provider gets no node of the graph, and the session still works.
TEST_F(FusionTest, AGroupThatCannotBeFusedCostsAllGroups) {
  const auto session = Open({.groups = {{"node_b"}, {"node_a", "node_y"}}});
  ASSERT_TRUE(session) << session.error().message();
  EXPECT_TRUE(compiled_.empty());
  ASSERT_FALSE(messages_.empty());
  EXPECT_NE(messages_[0].find("FusingExecutionProvider could not say what it runs"),
            std::string::npos);
  EXPECT_NE(messages_[0].find("cannot be fused"), std::string::npos);
  ExpectRuns(**session);
  EXPECT_EQ(RunsOf("Add"), 3);
}

// PE-41
TEST_F(FusionTest, AProviderThatCannotAnswerGetsNothing) {
  const auto session = Open({.fails_to_answer = true});
  ASSERT_TRUE(session);
  EXPECT_NE(messages_.at(0).find("cannot tell"), std::string::npos);
  ExpectRuns(**session);
}

TEST_F(FusionTest, AFailureToCompileIsTheSessions) {
  const auto session = Open({.groups = {{"node_a"}}, .fails_to_compile = true});
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().code(), StatusCode::kEpFail);
  EXPECT_EQ(session.error().message(), "no code for this");
}

}  // namespace
}  // namespace tenon
