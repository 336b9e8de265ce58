// How operators of com.microsoft without a kernel are replaced: where each rule applies, what it
// makes, and where it must not apply.
#include <gtest/gtest.h>

#include "ir/rule_cases.h"
#include "ops/conv/channels_last.h"
#include "ops/framework/composites.h"

namespace tenon {
namespace {

using B = GraphBuilder;

constexpr const char* kMicrosoft = "com.microsoft";

// A node of com.microsoft with inputs of these names, of which an empty one is left out. "x" is the
// graph's input.
struct NodeOf {
  std::string op_type;
  std::vector<std::string> inputs;
  std::function<std::vector<Attribute>()> attributes = nullptr;
  std::string domain = kMicrosoft;

  ValueId operator()(B& b, ValueId x) const {
    std::vector<ValueId> ids;
    for (const std::string& name : inputs) {
      ids.push_back(name.empty()  ? ValueId::kNone
                    : name == "x" ? x
                                  : b.Input(name, DataType::kFloat));
    }
    return b.Op(op_type, std::move(ids), attributes ? attributes() : std::vector<Attribute>(),
                domain);
  }
};

template <class T>
std::function<std::vector<Attribute>()> With(const char* name, T value) {
  return [=] { return MakeAttributes(Attr(name, value)); };
}

TEST(CompositeRuleTest, EachRuleFiresWhereItMayAndNowhereElse) {
  const NodeOf ordered_attention = {
      "QOrderedAttention",
      {"x", "x_scale", "q_scale", "k_scale", "v_scale", "wq", "wk", "wv", "wq_scale", "wk_scale",
       "wv_scale", "bq", "bk", "bv", "scores", "weights", "y_scale"},
      [] {
        return MakeAttributes(Attr("num_heads", int64_t{2}), Attr("order_input", int64_t{1}),
                              Attr("order_weight", int64_t{0}), Attr("order_output", int64_t{1}));
      }};
  NodeOf attention_with_past = ordered_attention;
  for (const char* more : {"", "past"}) attention_with_past.inputs.emplace_back(more);
  const NodeOf longformer = {
      "QOrderedLongformerAttention",
      {"x", "x_scale", "w", "w_scale", "bias", "bias_scale", "qkv_scale", "mask", "global",
       "g_scale", "global_b", "global_scale", "number", "y_scale"},
      [] { return MakeAttributes(Attr("num_heads", int64_t{2}), Attr("window", int64_t{1})); }};
  NodeOf standard_longformer = longformer;
  standard_longformer.domain = "";
  const RuleCase cases[] = {
      {"MulInteger", true, NodeOf{"MulInteger", {"x", "", "w", "zero"}}},
      {"MulInteger", false, NodeOf{"MulInteger", {"x", "", "w"}, nullptr, ""}},
      {"QOrderedGelu", true, NodeOf{"QOrderedGelu", {"x", "s", "t"}}},
      {"QOrderedGelu", false, NodeOf{"QOrderedGelu", {"x", "s", "t"}, nullptr, ""}},
      {"QOrderedLayerNormalization", true,
       NodeOf{"QOrderedLayerNormalization", {"x", "s", "gamma", "beta", "t"}}},
      {"QOrderedLayerNormalization", true,
       NodeOf{"QOrderedLayerNormalization", {"x", "s", "gamma", "", "t"}}},
      {"QOrderedLayerNormalization", false,  // which is no operator
       NodeOf{"QOrderedLayerNormalization", {"x", "s", "gamma"}}},
      {"GemmFloat8", true, NodeOf{"GemmFloat8", {"x", "w", "c", "s", "t", "u"}}},
      {"GemmFloat8", true,
       NodeOf{"GemmFloat8", {"x", "w"}, With("activation", std::string("RELU"))}},
      {"GemmFloat8", false,
       NodeOf{"GemmFloat8", {"x", "w"}, With("activation", std::string("TANH"))}},
      {"QOrderedAttention", true, ordered_attention},
      {"QOrderedAttention", false, attention_with_past},
      {"QOrderedLongformerAttention", true, longformer},
      {"QOrderedLongformerAttention", false, standard_longformer},
      {"GemmFastGelu", true, NodeOf{"GemmFastGelu", {"x", "w", "bias"}}},
      {"GemmFastGelu", true, NodeOf{"GemmFastGelu", {"x", "w"}}},
      {"GemmFastGelu", false, NodeOf{"GemmFastGelu", {"x"}}},
      {"BiasSoftmax", true, NodeOf{"BiasSoftmax", {"x", "bias"}, With("axis", int64_t{1})}},
      {"BiasSoftmax", false, NodeOf{"BiasSoftmax", {"x"}, With("axis", int64_t{1})}},
      {"IsAllFinite", true, NodeOf{"IsAllFinite", {"x", "more"}}},
      {"IsAllFinite", true, NodeOf{"IsAllFinite", {"x"}, With("isinf_only", int64_t{1})}},
      {"IsAllFinite", false,  // which contradict each other
       NodeOf{"IsAllFinite",
              {"x"},
              [] {
                return MakeAttributes(Attr("isinf_only", int64_t{1}),
                                      Attr("isnan_only", int64_t{1}));
              }}},
      {"GatherND", true, NodeOf{"GatherND", {"x", "indices"}}},
      {"GatherND", false, NodeOf{"GatherND", {"x", "indices"}, nullptr, ""}},
      {"TorchEmbedding", true, NodeOf{"TorchEmbedding", {"x", "indices", "padding"}}},
      {"TorchEmbedding", false, NodeOf{"TorchEmbedding", {"x", "indices"}, nullptr, ""}},
  };
  CheckRules(CompositeRules(), cases);
}

TEST(ChannelsLastRuleTest, EachRuleFiresWhereItMayAndNowhereElse) {
  // The node for an image [1, 4, 5, 3], or one of unknown rank.
  const auto on_image = [](NodeOf node, bool is_known = true) {
    return [=](B& b, ValueId x) {
      const ValueId image = b.Op("Reshape", {x, b.Input("image_shape", DataType::kInt64)});
      return node(b, is_known ? b.Shaped(image, {Dim(1), Dim(4), Dim(5), Dim(3)}) : image);
    };
  };
  const NodeOf conv = {"NhwcConv", {"x", "w", "b"}};
  const NodeOf fused = {"NhwcFusedConv", {"x", "w", "b", "z"}};
  const auto quantized = [](int64_t channels_last) {
    return NodeOf{"QLinearConv",
                  {"x", "s", "z", "w", "ws", "wz", "ys", "yz"},
                  With("channels_last", channels_last)};
  };
  const RuleCase cases[] = {
      {"NhwcConv", true, on_image(conv)},
      {"NhwcConv", false, on_image(conv, false)},
      {"NhwcConv", false, conv},  // a matrix, which Conv takes neither way
      {"NhwcFusedConv", true, on_image(fused)},
      {"NhwcFusedConv", false, on_image(fused, false)},
      {"QLinearConv, channels first", true, on_image(quantized(0), false)},
      {"QLinearConv, channels first", false, on_image(quantized(1))},
      {"QLinearConv, channels last", true, on_image(quantized(1))},
      {"QLinearConv, channels last", false, on_image(quantized(1), false)},
      {"QLinearConv, channels last", false, on_image(quantized(0))},
  };
  CheckRules(ChannelsLastRules(), cases);
}

}  // namespace
}  // namespace tenon
