// Compares models in channels-last layout with the original models. Requirements: plugin-ep,
// section 5 (PE-40, PE-49).
#include <gtest/gtest.h>

#include <cmath>

#include "ir/channels_last.h"
#include "runtime/kernel.h"
#include "runtime/kernel_info.h"
#include "runtime/test_provider.h"

namespace tenon {
namespace {

constexpr int kOpset = 21;
constexpr std::string_view kNetwork = "the network";  // has two outputs

// Prefers channels last, claims everything in that form, and in the end lets the CPU run it.
class TurningProvider final : public ExecutionProvider {
 public:
  explicit TurningProvider(std::vector<std::string>& seen) : seen_(seen) {}
  const std::string& name() const override { return name_; }
  Result<std::vector<Claim>> GetCapability(const Graph& graph) override {
    std::vector<Claim> claims;
    std::string operators;
    for (size_t i = 0; i < graph.node_capacity() && !has_turned_; ++i) {
      const Node* const node = graph.FindNode(static_cast<NodeId>(i));
      if (node == nullptr || node->provider >= 0) continue;
      claims.push_back({{node->id}});
      operators += (node->domain.empty() ? "" : "nhwc.") + node->op_type + " ";
    }
    seen_.push_back(std::move(operators));
    return claims;
  }
  Result<bool> PrefersChannelsLast() override { return true; }
  Status Rewrite(Graph& graph, int32_t index, PassRunner&) override {
    has_turned_ = true;
    ChannelLayout layout(graph, {});
    for (size_t i = 0, count = graph.node_capacity(); i < count; ++i) {
      Node* const node = graph.FindNode(static_cast<NodeId>(i));
      if (node == nullptr || node->provider != index) continue;
      node->provider = -1;
      if (MayPutChannelsFirst(graph, *node)) layout.PutChannelsFirst(node->id);
    }
    return OkStatus();
  }
  Result<std::unique_ptr<Kernel>> CreateKernel(KernelInfo&) override {
    return NotImplemented("it runs nothing");
  }

 private:
  const std::string name_ = "TurningExecutionProvider";
  std::vector<std::string>& seen_;
  bool has_turned_ = false;
};

Tensor Waves(const Shape& shape, float step = 0.37f) {
  std::vector<float> values(static_cast<size_t>(shape.NumElements()));
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(step * static_cast<float>(i + 1));
  return Tensor::Of<float>(shape, values);
}

class LayoutTest : public ::testing::Test {
 protected:
  using Attributes = std::vector<Attribute>;
  template <class... A>
  static Attributes With(A... attributes) {
    Attributes list;
    (list.push_back(std::move(attributes)), ...);
    return list;
  }
  static Attribute Ints(const char* name, std::vector<int64_t> values) {
    return Attribute(name, std::move(values));
  }
  static Attribute Int(const char* name, int64_t value) { return Attribute(name, value); }

  static void Add(ModelBuilder& b, const char* op, std::vector<std::string> inputs,
                  const std::string& output, Attributes attributes = {}) {
    b.Node(op, std::move(inputs), {output}, "", kOpset);
    Node& node = b.graph().node(static_cast<NodeId>(b.graph().node_capacity() - 1));
    node.attributes = std::move(attributes);
  }

  // Runs the model that `build` builds, unchanged and converted; seen_ has the provider's view.
  template <class Build>
  void Compare(std::string_view what, Build build, const Shape& shape) {
    seen_.clear();
    std::vector<Value> results[2];
    for (const bool turns : {false, true}) {
      ModelBuilder b;
      b.Input("x", {Dim::Symbol("n"), shape[1], shape[2], shape[3]});
      build(b);
      std::vector<std::unique_ptr<ExecutionProvider>> providers;
      if (turns) providers.push_back(std::make_unique<TurningProvider>(seen_));
      auto session = MakeSession(environment_, b.Build(), {}, std::move(providers));
      ASSERT_TRUE(session) << what << ": " << session.error().message();
      std::vector<std::string_view> names = {"y", "g"};
      if (what != kNetwork) names.pop_back();
      std::vector<Value> fetches(names.size());
      const std::string_view in = "x";
      const Value x = Waves(shape);
      const Status status = (*session)->Run({}, {&in, 1}, {&x, 1}, names, fetches);
      ASSERT_TRUE(status.ok()) << what << ": " << status.message();
      results[turns ? 1 : 0] = std::move(fetches);
    }
    for (size_t i = 0; i < results[0].size(); ++i) {
      const Tensor &plain = results[0][i].tensor(), &turned = results[1][i].tensor();
      ASSERT_EQ(plain.shape(), turned.shape()) << what;
      for (size_t e = 0; e < plain.values<float>().size(); ++e) {
        ASSERT_NEAR(plain.values<float>()[e], turned.values<float>()[e], 2e-5) << what << " " << e;
      }
    }
  }

  Environment environment_;
  std::vector<std::string> seen_;
};

TEST_F(LayoutTest, ANetworkGivesTheSameResults) {
  const auto build = [](ModelBuilder& b) {
    b.Constant("w1", Waves({6, 4, 3, 3})).Constant("w2", Waves({6, 6, 1, 1}, 0.7f));
    b.Constant("scale", Waves({6})).Constant("shift", Waves({6}, 0.9f));
    b.Constant("mean", Waves({6}, 1.3f));
    b.Constant("variance", Tensor::Of<float>({6}, {1, 2, 3, 4, 5, 6}));
    b.Constant("by_channel", Waves({6, 1, 1}));
    b.Constant("scales", Tensor::Of<float>({4}, {1, 1, 2, 2}));
    Add(b, "Conv", {"x", "w1"}, "a", With(Ints("pads", {1, 1, 1, 1})));
    Add(b, "BatchNormalization", {"a", "scale", "shift", "mean", "variance"}, "c");
    Add(b, "Relu", {"c"}, "d");
    Add(b, "MaxPool", {"d"}, "e", With(Ints("kernel_shape", {2, 2}), Ints("strides", {2, 2})));
    Add(b, "Conv", {"e", "w2"}, "f");
    Add(b, "Add", {"f", "e"}, "g");
    Add(b, "Mul", {"by_channel", "g"}, "h");
    Add(b, "Resize", {"h", "", "scales"}, "i");
    Add(b, "Concat", {"i", "d"}, "j", With(Int("axis", 1)));
    Add(b, "GlobalAveragePool", {"j"}, "k");
    Add(b, "Sigmoid", {"k"}, "l");
    Add(b, "Mul", {"j", "l"}, "m");
    Add(b, "Transpose", {"m"}, "o", With(Ints("perm", {0, 2, 3, 1})));
    Add(b, "Softmax", {"o"}, "y");
    b.Output("y").Output("g");
  };
  Compare(kNetwork, build, {2, 4, 12, 10});
  ASSERT_GE(seen_.size(), 2u);
  const auto count = [&](const std::string& op) {
    size_t found = 0;
    for (size_t at = 0; (at = seen_[1].find(op, at)) != std::string::npos; at += op.size()) ++found;
    return found;
  };
  EXPECT_EQ(count("nhwc."), 6u) << seen_[1];
  EXPECT_EQ(count("Transpose "), 2u) << "of the input and of the output g: " << seen_[1];
}

TEST_F(LayoutTest, EveryOperatorGivesTheSameResult) {
  const auto none = [](ModelBuilder&) {};
  const auto weights = [](ModelBuilder& b) { b.Constant("w", Waves({4, 3, 2, 2})); };
  const auto parameters = [](ModelBuilder& b) {
    b.Constant("w", Waves({4})).Constant("v", Waves({4}, 0.2f));
  };
  const auto grid = [](ModelBuilder& b) { b.Constant("w", Waves({1, 3, 5, 2})); };
  const auto sizes = [](ModelBuilder& b) {
    b.Constant("w", Tensor::Of<int64_t>({4}, {1, 4, 3, 13}));
  };
  const auto scales = [](ModelBuilder& b) {
    b.Constant("w", Tensor::Of<float>({2}, {1.5f, 0.5f}));
  };
  const struct {
    const char* op;
    std::vector<std::string> inputs;
    std::function<void(ModelBuilder&)> constants;
    std::function<Attributes()> attributes;
  } cases[] = {
      {"AveragePool",
       {"x"},
       none,
       [] {
         return With(Ints("kernel_shape", {3, 2}));
       }},
      {"ConvTranspose",
       {"x", "w"},
       weights,
       [] {
         return With(Ints("strides", {2, 1}));
       }},
      {"DepthToSpace", {"x"}, none, [] { return With(Int("blocksize", 2)); }},
      {"SpaceToDepth", {"x"}, none, [] { return With(Int("blocksize", 2)); }},
      {"GlobalMaxPool", {"x"}, none, [] { return Attributes(); }},
      {"GlobalLpPool", {"x"}, none, [] { return Attributes(); }},
      {"GridSample", {"x", "w"}, grid, [] { return Attributes(); }},
      {"InstanceNormalization", {"x", "w", "v"}, parameters, [] { return Attributes(); }},
      {"LRN", {"x"}, none, [] { return With(Int("size", 3)); }},
      {"LpPool",
       {"x"},
       none,
       [] {
         return With(Ints("kernel_shape", {2, 2}));
       }},
      {"Resize", {"x", "", "", "w"}, sizes, [] { return Attributes(); }},
      {"Resize",
       {"x", "", "w"},
       scales,
       [] {
         return With(Ints("axes", {3, -2}));
       }},
  };
  for (const auto& c : cases) {
    const auto build = [&](ModelBuilder& b) {
      c.constants(b);
      Add(b, c.op, c.inputs, "y", c.attributes());
      b.Output("y");
    };
    Compare(c.op, build, {1, 4, 6, 8});
    ASSERT_GE(seen_.size(), 2u) << c.op;
    EXPECT_NE(seen_[1].find(std::string("nhwc.") + c.op), std::string::npos) << c.op;
  }
}

}  // namespace
}  // namespace tenon
