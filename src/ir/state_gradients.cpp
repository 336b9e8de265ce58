// The gradients of operators that pass a state from token to token, which are computed again by
// simpler ones: CausalConvWithState by Gather, LinearAttention by Scan.
#include <array>

#include "ir/gradient_rules.h"

namespace tenon {
namespace {

// Error: kNotImplemented if an attribute of com.microsoft's operator is not `expected`.
Status CheckAttribute(const Inputs& in, const char* name, int64_t expected) {
  const int64_t found = in.node.GetInt(name, expected);
  if (found == expected) return OkStatus();
  return NotImplemented("{}-{} ({}) has no gradient yet for {} {}: expected {}", in.node.op_type,
                        in.node.opset, in.node.Describe(), name, found, expected);
}

// ---- CausalConvWithState ------------------------------------------------------------------------

Result<Gradients> CausalConv(Builder& b, const Inputs& in) {
  enum Input : size_t { kX, kWeight, kBias, kPast };
  TENON_RETURN_IF_ERROR(CheckAttribute(in, "ndim", 1));
  TENON_RETURN_IF_ERROR(CheckAttribute(in, "channels_last", 0));
  TENON_RETURN_IF_ERROR(CheckAttribute(in, "state_window", 0));
  const int64_t dilation = in.node.GetInt("dilation", 1);
  return OfComposition(b, in, [&](const std::vector<ValueId>& inputs) {
    const auto input = [&](size_t i) { return i < inputs.size() ? inputs[i] : ValueId::kNone; };
    const ValueId x = inputs[kX], w = inputs[kWeight];
    const ValueId length = SizeOf(b, x, 2), taps = SizeOf(b, w, 2);
    ValueId past = input(kPast);
    if (past == ValueId::kNone) {
      const ValueId steps = Mul(b, Sub(b, taps, Integer(b, 1)), Integer(b, dilation));
      past = b.Op("Expand", {b.Scalar(0, x), Joined(b, {Sizes(b, x, 0, 2), steps}, 0)});
    }
    const ValueId all = Joined(b, {past, x}, 2);
    // What each tap sees, as a last axis.
    const ValueId starts = Unsqueezed(b, Numbers(b, x, 2), 1);
    const ValueId places = Add(b, starts, Mul(b, Numbers(b, w, 2), Integer(b, dilation)));
    const ValueId seen = b.Op("Gather", {all, places}, Attributes(Int("axis", 2)));
    const int64_t last[] = {-1};
    ValueId y = SumOver(b, Mul(b, seen, w), last, false);
    if (input(kBias) != ValueId::kNone) y = Add(b, y, AlongAxis(b, inputs[kBias], 0, 2));
    if (in.node.GetString("activation", "none") != "none") y = Mul(b, y, b.Op("Sigmoid", {y}));
    const ValueId ends[] = {all, length, SizeOf(b, all, 2), Integer(b, 2)};
    return Gradients{y, b.Op("Slice", ends, {})};
  });
}

// ---- LinearAttention ----------------------------------------------------------------------------

// A Scan over the tokens. Its state is a matrix for each key head, [batch, heads, d_k, d_v].
class StateScan {
 public:
  StateScan(Builder& b, const Node& node, const std::vector<ValueId>& inputs)
      : b_(b),
        inputs_(inputs),
        q_heads_(node.GetInt("q_num_heads", 1)),
        heads_(node.GetInt("kv_num_heads", 1)),
        scale_(node.GetFloat("scale", 0)),
        rule_(node.GetString("update_rule", "gated_delta")),
        body_(std::make_unique<Graph>()),
        // Names may not be those of outer values.
        token_(*body_, b.graph().UnusedName(b.prefix() + "token") + "/", b.opset(), false) {}

  Gradients Of() {
    const ValueId k = Heads(kKey, {0, 0, heads_, -1, 1});
    const ValueId v = Heads(kValue, {0, 0, heads_, 1, -1});
    ValueId state = Operand(Past(k, v));
    const ValueId key = Operand(k);
    ValueId update = Operand(v);
    if (rule_ == "gated" || rule_ == "gated_delta") {
      const ValueId decay = Operand(Heads(kDecay, {0, 0, heads_, -1, 1}));
      state = Mul(token_, state, token_.Op("Exp", {decay}));
    }
    if (rule_ == "delta" || rule_ == "gated_delta") {
      const ValueId beta = Operand(Heads(kBeta, {0, 0, -1, 1, 1}));
      const int64_t rows[] = {-2};
      update =
          Mul(token_, beta, Sub(token_, update, SumOver(token_, Mul(token_, state, key), rows)));
    }
    state = Add(token_, state, Mul(token_, key, update));
    const ValueId y = token_.Op("MatMul", {Operand(Queries()), state});
    body_->AddOutput(body_->value(state).name, state);
    body_->AddOutput(body_->value(y).name, y);
    const std::vector<int64_t> axes(operands_.size() - 1, 1);
    std::vector<Attribute> attributes;
    attributes.emplace_back("body", std::move(body_));
    attributes.push_back(Int("num_scan_inputs", static_cast<int64_t>(axes.size())));
    attributes.emplace_back("scan_input_axes", axes);
    attributes.emplace_back("scan_output_axes", std::vector<int64_t>{1});
    const Gradients found = b_.Ops("Scan", operands_, 2, std::move(attributes));
    const int64_t flat[] = {0, 0, -1};
    const ValueId rows = b_.Op("Reshape", {found[1], b_.Integers(flat)});
    return {Scaled(rows, k), found[0]};
  }

 private:
  enum Input : size_t { kQuery, kKey, kValue, kPast, kDecay, kBeta };

  ValueId Heads(size_t i, std::initializer_list<int64_t> sizes) {
    return b_.Op("Reshape", {inputs_[i], b_.Integers(std::span(sizes.begin(), sizes.size()))});
  }

  // [batch, length, heads, queries of a head, d_k]
  ValueId Queries() {
    if (q_heads_ >= heads_) {
      return Heads(kQuery, {0, 0, heads_, q_heads_ / heads_, -1});
    }
    // Key heads share a query.
    const ValueId all = Heads(kQuery, {0, 0, q_heads_, 1, -1});
    const int64_t repeats[] = {1, 1, 1, heads_ / q_heads_, 1}, sizes[] = {0, 0, heads_, 1, -1};
    return b_.Op("Reshape", {b_.Op("Tile", {all, b_.Integers(repeats)}), b_.Integers(sizes)});
  }

  ValueId Past(ValueId k, ValueId v) {
    if (inputs_.size() > kPast && inputs_[kPast] != ValueId::kNone) return inputs_[kPast];
    const ValueId sizes = Joined(b_, {Sizes(b_, k, 0, 1), Sizes(b_, k, 2, 4), SizeOf(b_, v, 4)}, 0);
    return b_.Op("Expand", {b_.Scalar(0, k), sizes});
  }

  // An operand of the Scan, and what the body sees of it.
  ValueId Operand(ValueId operand) {
    operands_.push_back(operand);
    ValueType type;
    type.element_type = b_.graph().value(operand).type.element_type;
    const ValueId inner = body_->AddValue(body_->UnusedName(token_.prefix() + "input"), type);
    body_->AddInput(inner);
    return inner;
  }

  ValueId Scaled(ValueId y, ValueId k) {
    if (scale_ != 0) return Times(b_, y, static_cast<double>(scale_));
    return Div(b_, y, b_.Op("Sqrt", {b_.CastTo(SizeOf(b_, k, 3), y)}));
  }

  Builder& b_;
  const std::vector<ValueId>& inputs_;
  const int64_t q_heads_, heads_;
  const float scale_;  // 0: 1 / sqrt(d_k)
  const std::string_view rule_;
  std::unique_ptr<Graph> body_;
  Builder token_;
  std::vector<ValueId> operands_;
};

Result<Gradients> LinearAttention(Builder& b, const Inputs& in) {
  TENON_RETURN_IF_ERROR(CheckAttribute(in, "state_window", 0));
  return OfComposition(b, in, [&](const std::vector<ValueId>& inputs) {
    return StateScan(b, in.node, inputs).Of();
  });
}

constexpr NamedGradientRule kRules[] = {
    {"CausalConvWithState", CausalConv, 27},
    {"CausalConvWithState", CausalConv, 1, kMicrosoft},
    {"LinearAttention", LinearAttention, 27},
    {"LinearAttention", LinearAttention, 1, kMicrosoft},
};

}  // namespace

std::span<const NamedGradientRule> StateGradients() { return kRules; }

}  // namespace tenon
