// The gradients of Attention, GroupQueryAttention and MultiHeadAttention.
// What ScaledDotProductAttentionGrad does not compute is computed again by simpler operators.
#include <array>
#include <cmath>
#include <optional>

#include "ir/gradient_rules.h"

namespace tenon {
namespace {

// ---- Attention ----------------------------------------------------------------------------------

enum AttentionInput : size_t { kQ, kK, kV, kMask, kPastKey, kPastValue, kKeyLengths };

constexpr int64_t kSwapped[] = {0, 2, 1, 3};  // the heads and the rows

std::vector<int64_t> Swapped() { return {std::begin(kSwapped), std::end(kSwapped)}; }

// [batch, heads, length, size]
ValueId HeadsFirst(Builder& b, ValueId value, int64_t rank, int64_t heads) {
  if (rank == 4) return value;
  const int64_t sizes[] = {0, 0, heads, -1};
  return Transposed(b, b.Op("Reshape", {value, b.Integers(sizes)}), Swapped());
}

// [batch, length, heads * size]
ValueId HeadsLast(Builder& b, ValueId value) {
  const int64_t sizes[] = {0, 0, -1};
  return b.Op("Reshape", {Transposed(b, value, Swapped()), b.Integers(sizes)});
}

bool IsBool(Builder& b, ValueId value) {
  return b.graph().value(value).type.element_type == DataType::kBool;
}

// softmax(scale Q K' + mask) V of heads, which come first.
struct HeadProduct {
  ValueId q, k, v;
  std::optional<float> scale;  // none: 1 / sqrt(size)
  float softcap = 0;
  int64_t left = -1, right = -1;      // how far a query sees from its position; -1: without limit
  ValueId position = ValueId::kNone;  // of the first query, [batch or 1, 1, 1, 1] or less
  ValueId key_lengths = ValueId::kNone;  // [batch]
  ValueId mask = ValueId::kNone;
  ValueId sinks = ValueId::kNone;  // [heads]: scores of one more key each, which has no value
};

class HeadProductMaker {
 public:
  HeadProductMaker(Builder& b, const HeadProduct& given) : b_(b), in_(given) {}

  ValueId Make() {
    ValueId scale;
    if (in_.scale) {
      scale = b_.Scalar(static_cast<double>(*in_.scale), in_.q);
    } else {
      scale = b_.Op("Reciprocal", {b_.Op("Sqrt", {b_.CastTo(Sizes(b_, in_.q, 3, 4), in_.q)})});
    }
    const ValueId turned = Transposed(b_, Unsqueezed(b_, in_.k, 2), {0, 1, 2, 4, 3});
    const ValueId all_scores = Joined(b_, {Sizes(b_, in_.q, 0, 3), Sizes(b_, in_.k, 2, 3)}, 0);
    ValueId scores =
        b_.Op("Reshape", {b_.Op("MatMul", {Grouped(Mul(b_, in_.q, scale)), turned}), all_scores});
    if (in_.softcap > 0) {
      const auto limit = static_cast<double>(in_.softcap);
      scores = Times(b_, b_.Op("Tanh", {Times(b_, scores, 1 / limit)}), limit);
    }
    key_ = Numbers(b_, in_.k, 2);
    const ValueId mask = WholeMask();
    if (mask != ValueId::kNone && IsBool(b_, mask)) {
      Also(mask);
    } else if (mask != ValueId::kNone) {
      scores = Add(b_, scores, mask);
    }
    SeePositions();
    constexpr double kVeryLow = -1e30;
    if (seen_ != ValueId::kNone) scores = Where(b_, seen_, scores, b_.Scalar(kVeryLow, in_.q));
    ValueId weights = Softmax(scores);
    if (seen_ != ValueId::kNone) weights = Where(b_, seen_, weights, b_.Scalar(0, in_.q));
    const ValueId product = b_.Op("MatMul", {Grouped(weights), Unsqueezed(b_, in_.v, 2)});
    return b_.Op("Reshape",
                 {product, Joined(b_, {Sizes(b_, in_.q, 0, 3), Sizes(b_, in_.v, 3, 4)}, 0)});
  }

 private:
  // Query heads that share a key head, as an axis of their own.
  ValueId Grouped(ValueId value) {
    const ValueId shape =
        Joined(b_, {Sizes(b_, in_.k, 0, 2), Integer(b_, -1), Sizes(b_, value, 2, 4)}, 0);
    return b_.Op("Reshape", {value, shape});
  }

  void Also(ValueId condition) {
    seen_ = seen_ == ValueId::kNone ? condition : b_.Op("And", {seen_, condition});
  }

  // The mask for all keys: those after its end are not seen.
  ValueId WholeMask() {
    if (in_.mask == ValueId::kNone) return in_.mask;
    const SymbolicShape *mask = b_.ShapeOf(in_.mask), *k = b_.ShapeOf(in_.k);
    const bool is_whole = mask && k && mask->rank() > 0 && (*mask)[mask->rank() - 1] == (*k)[2];
    if (is_whole) return in_.mask;
    const ValueId count = SizeOf(b_, in_.mask, -1);
    Also(b_.Op("Less", {key_, count}));
    const ValueId inside = b_.Op("Min", {key_, Sub(b_, count, Integer(b_, 1))});
    return b_.Op("Gather", {in_.mask, inside}, Attributes(Int("axis", -1)));
  }

  // Which keys each query sees by its position.
  void SeePositions() {
    ValueId position = Unsqueezed(b_, Numbers(b_, in_.q, 2), 1);
    if (in_.position != ValueId::kNone) position = Add(b_, position, in_.position);
    if (in_.key_lengths != ValueId::kNone) {
      const int64_t axes[] = {1, 2, 3};
      const ValueId count = b_.Op("Unsqueeze", {in_.key_lengths, b_.Integers(axes)});
      Also(b_.Op("Less", {key_, count}));
      position = Add(b_, position, Sub(b_, count, Sizes(b_, in_.q, 2, 3)));
    }
    const auto moved = [&](int64_t by) { return Add(b_, position, b_.IntegerScalar(by)); };
    if (in_.right >= 0) Also(b_.Op("Less", {key_, moved(in_.right + 1)}));
    if (in_.left >= 0) Also(b_.Op("Greater", {key_, moved(-in_.left - 1)}));
  }

  ValueId Softmax(ValueId scores) {
    std::vector<Attribute> last = Attributes(Int("axis", -1));
    if (in_.sinks == ValueId::kNone) return b_.Op("Softmax", {scores}, std::move(last));
    const ValueId sinks = b_.Op(
        "Expand",
        {AlongAxis(b_, in_.sinks, 1, 4), Joined(b_, {Sizes(b_, in_.q, 0, 3), Integer(b_, 1)}, 0)});
    const ValueId weights =
        b_.Op("Softmax", {Joined(b_, {scores, b_.CastTo(sinks, scores)}, 3)}, std::move(last));
    const ValueId ends[] = {weights, Integer(b_, 0), Sizes(b_, in_.k, 2, 3), Integer(b_, 3)};
    return b_.Op("Slice", ends, {});
  }

  Builder& b_;
  const HeadProduct& in_;
  ValueId key_ = ValueId::kNone;   // 0, 1, 2 ...
  ValueId seen_ = ValueId::kNone;  // to be broadcast to the scores; kNone if all are
};

// The mask as addends of rank 4; kNone if it is not known to have all `keys`.
ValueId Addends(Builder& b, ValueId mask, const Dim& keys, ValueId like) {
  const SymbolicShape* shape = b.ShapeOf(mask);
  const size_t rank = shape ? shape->rank() : 0;
  if (rank == 0 || rank > 4 || !((*shape)[rank - 1] == keys)) return ValueId::kNone;
  if (IsBool(b, mask)) mask = Where(b, mask, b.Scalar(0, like), b.Scalar(-INFINITY, like));
  if (rank == 4) return mask;
  return b.Op("Unsqueeze", {mask, b.Integers(AxesBetween(0, static_cast<int64_t>(4 - rank)))});
}

bool MayUseKernels(const Builder& b, std::initializer_list<ValueId> values) {
  return std::all_of(values.begin(), values.end(),
                     [&](ValueId value) { return b.MayUseKernels(value); });
}

struct HeadCounts {
  int64_t q = 0, kv = 0;  // 0: unknown
};

// The product without a matrix of all scores in memory, [batch, queries, heads * size]; kNone if
// the operator does not compute it. `mask_varies`: whether the mask is to have a gradient.
ValueId ByOperator(Builder& b, const HeadProduct& in, HeadCounts heads, bool mask_varies) {
  const bool is_plain = in.softcap == 0 && in.left < 0 && in.right <= 0 && !mask_varies &&
                        in.position == ValueId::kNone && in.key_lengths == ValueId::kNone &&
                        in.sinks == ValueId::kNone && heads.q > 0;
  if (!is_plain || !MayUseKernels(b, {in.q, in.k, in.v})) return ValueId::kNone;
  std::vector<ValueId> inputs = {HeadsLast(b, in.q), HeadsLast(b, in.k), HeadsLast(b, in.v)};
  if (in.mask != ValueId::kNone) {
    const SymbolicShape* k = b.ShapeOf(in.k);
    inputs.push_back(k ? Addends(b, in.mask, (*k)[2], in.q) : ValueId::kNone);
    if (inputs.back() == ValueId::kNone) return ValueId::kNone;
  }
  std::vector<Attribute> attributes = Attributes(
      Int("q_num_heads", heads.q), Int("kv_num_heads", heads.kv), Int("is_causal", in.right == 0));
  if (in.scale) attributes.emplace_back("scale", *in.scale);
  return b.Op("ScaledDotProductAttention", inputs, std::move(attributes), kMicrosoft);
}

// [batch, queries, heads * size]
ValueId ProductOf(Builder& b, const HeadProduct& in, HeadCounts heads, bool mask_varies) {
  const ValueId y = ByOperator(b, in, heads, mask_varies);
  return y != ValueId::kNone ? y : HeadsLast(b, HeadProductMaker(b, in).Make());
}

Result<Gradients> ScaledDotProduct(Builder& b, const Inputs& in) {
  if (!MayUseKernels(b, {in.x(kQ), in.x(kK), in.x(kV)})) return Gradients{};
  std::vector<ValueId> inputs = in.node.inputs;
  inputs.insert(inputs.begin(), in.dy());
  return b.Ops("ScaledDotProductAttentionGrad", inputs, 3, AttributesBut(in.node), kMicrosoft);
}

std::optional<float> ScaleOf(const Node& node) {
  if (node.FindAttribute("scale") == nullptr) return std::nullopt;
  return node.GetFloat("scale", 1);
}

HeadCounts HeadsOf(const Builder& b, const Inputs& in, int64_t rank) {
  if (rank == 3) return {in.node.GetInt("q_num_heads", 0), in.node.GetInt("kv_num_heads", 0)};
  const SymbolicShape *q = b.ShapeOf(in.x(kQ)), *k = b.ShapeOf(in.x(kK));
  if (!q || !k || !(*q)[1].is_number() || !(*k)[1].is_number()) return {};
  return {(*q)[1].value(), (*k)[1].value()};
}

Result<Gradients> Attention(Builder& b, const Inputs& in) {
  TENON_ASSIGN_OR_RETURN(const int64_t rank, RankOf(b, in, in.x(kQ)));
  const HeadCounts counts = HeadsOf(b, in, rank);
  return OfComposition(b, in, [&](const std::vector<ValueId>& inputs) {
    const auto input = [&](size_t i) { return i < inputs.size() ? inputs[i] : ValueId::kNone; };
    HeadProduct heads = {HeadsFirst(b, inputs[kQ], rank, counts.q),
                         HeadsFirst(b, inputs[kK], rank, counts.kv),
                         HeadsFirst(b, inputs[kV], rank, counts.kv)};
    if (input(kPastKey) != ValueId::kNone) {
      heads.k = Joined(b, {inputs[kPastKey], heads.k}, 2);
      heads.v = Joined(b, {inputs[kPastValue], heads.v}, 2);
      heads.position = Sizes(b, inputs[kPastKey], 2, 3);
    }
    heads.scale = ScaleOf(in.node);
    heads.softcap = in.node.GetFloat("softcap", 0);
    heads.left = in.node.GetInt("left_window_size", -1);
    const bool is_causal = in.node.GetInt("is_causal", 0) != 0;
    heads.right = is_causal ? 0 : in.node.GetInt("right_window_size", -1);
    heads.key_lengths = in.x(kKeyLengths);
    heads.mask = input(kMask);
    const ValueId y = ByOperator(b, heads, counts, in.Needs(in.x(kMask)));
    if (y != ValueId::kNone) {
      return Gradients{rank == 4 ? HeadsFirst(b, y, 3, counts.q) : y, heads.k, heads.v};
    }
    const ValueId made = HeadProductMaker(b, heads).Make();
    return Gradients{rank == 4 ? made : HeadsLast(b, made), heads.k, heads.v};
  });
}

// ---- GroupQueryAttention ------------------------------------------------------------------------

// Without a past every sequence begins with its first query, so that the lengths of sequences
// matter only where later keys are seen.
class GroupQuery {
 public:
  enum Input : size_t {
    kQuery,
    kKey,
    kValue,
    kPastKeys,
    kPastValues,
    kLastPositions,
    kTotal,
    kCos,
    kSin,
    kPositions,
    kScoreBias,
    kSinks,
    kQueryNorm = 14,
    kKeyNorm
  };

  GroupQuery(Builder& b, const Node& node, const std::vector<ValueId>& inputs)
      : b_(b),
        node_(node),
        inputs_(inputs),
        heads_(node.GetInt("num_heads", 1)),
        kv_heads_(node.GetInt("kv_num_heads", 1)) {}

  // The results, and with a past the present keys and values. `bias_varies`: whether the bias of
  // the scores is to have a gradient.
  Gradients Of(bool bias_varies) {
    HeadProduct heads;
    Split(&heads);
    const bool has_past = Given(kPastKeys) != ValueId::kNone;
    if (has_past) CountRows(heads.k);
    heads.q = Edited(heads.q, kQueryNorm);
    heads.k = Edited(heads.k, kKeyNorm);
    if (const float scale = node_.GetFloat("scale", 0); scale != 0) heads.scale = scale;
    heads.softcap = node_.GetFloat("softcap", 0);
    const bool is_causal = node_.GetInt("causal", 1) != 0;
    if (is_causal) heads.right = 0;
    if (const int64_t window = node_.GetInt("local_window_size", -1); window > 0) {
      heads.left = window - 1;
    }
    if (!is_causal) {
      heads.key_lengths = Lengths();
    } else if (has_past) {
      heads.position = AlongAxis(b_, past_, 0, 4);
    }
    if (has_past) {
      heads.k = Present(kPastKeys, heads.k);
      heads.v = Present(kPastValues, heads.v);
    }
    heads.mask = Given(kScoreBias);
    heads.sinks = Given(kSinks);
    if (heads.sinks == ValueId::kNone && node_.GetInt("smooth_softmax", -1) == 1) {
      heads.sinks = b_.Op("Expand", {b_.Scalar(0, heads.q), Integer(b_, heads_)});
    }
    Gradients made = {ProductOf(b_, heads, {heads_, kv_heads_}, bias_varies)};
    if (has_past) made.insert(made.end(), {heads.k, heads.v});
    return made;
  }

 private:
  ValueId Given(size_t i) const { return i < inputs_.size() ? inputs_[i] : ValueId::kNone; }

  ValueId Flat(size_t i) {
    const int64_t any[] = {-1};
    return b_.CastTo(b_.Op("Reshape", {Given(i), b_.Integers(any)}), Integer(b_, 1));
  }
  // How many keys each sequence has, [batch].
  ValueId Lengths() { return Add(b_, Flat(kLastPositions), Integer(b_, 1)); }

  // How many rows each sequence has in the past, and where each row of the present comes from: the
  // past's rows of all sequences, and their new ones.
  void CountRows(ValueId keys) {
    const ValueId one = Integer(b_, 1), zero = Integer(b_, 0);
    const ValueId added = Sizes(b_, keys, 2, 3), total = Flat(kTotal);
    const ValueId stored = Sizes(b_, Given(kPastKeys), 2, 3);
    // A total of only the new rows says that the past is not to be read.
    past_ = Where(b_, b_.Op("Equal", {total, added}), zero, Sub(b_, Lengths(), added));
    const ValueId rows = b_.Op("Squeeze", {b_.Op("Max", {stored, total})});
    const ValueId row = Unsqueezed(b_, NumbersTo(b_, rows), 0);
    const ValueId count = Unsqueezed(b_, past_, 1), end = Add(b_, count, added);
    const ValueId source =
        Where(b_, b_.Op("Less", {row, count}), row, Add(b_, Sub(b_, row, count), stored));
    const ValueId last = Sub(b_, Add(b_, stored, added), one);
    const ValueId first = Mul(b_, Numbers(b_, keys, 0), Add(b_, stored, added));
    source_ = Add(b_, b_.Op("Min", {source, last}), Unsqueezed(b_, first, 1));
    // Rows after the new ones are zeros.
    const int64_t axes[] = {1, 3};
    is_there_ = b_.Op("Unsqueeze", {b_.Op("Less", {row, end}), b_.Integers(axes)});
  }

  // Rows of the past followed by those of a tensor, for each sequence. [batch, heads, rows, size]
  ValueId Present(size_t past, ValueId added) {
    const ValueId all = Transposed(b_, Joined(b_, {Given(past), added}, 2), Swapped());
    const int64_t rows[] = {-1};
    const ValueId lines =
        b_.Op("Reshape", {all, Joined(b_, {b_.Integers(rows), Sizes(b_, all, 2, 4)}, 0)});
    const ValueId found = Transposed(b_, b_.Op("Gather", {lines, source_}), Swapped());
    return Where(b_, is_there_, found, b_.Scalar(0, added));
  }

  void Split(HeadProduct* heads) {
    if (Given(kKey) != ValueId::kNone) {
      heads->q = HeadsFirst(b_, inputs_[kQuery], 3, heads_);
      heads->k = HeadsFirst(b_, inputs_[kKey], 3, kv_heads_);
      heads->v = HeadsFirst(b_, inputs_[kValue], 3, kv_heads_);
      return;
    }
    const int64_t counts[] = {heads_, kv_heads_, kv_heads_};
    const ValueId all = HeadsFirst(b_, inputs_[kQuery], 3, heads_ + 2 * kv_heads_);
    const auto parts =
        b_.Ops("Split", std::array{all, b_.Integers(counts)}, 3, Attributes(Int("axis", 1)));
    heads->q = parts[0];
    heads->k = parts[1];
    heads->v = parts[2];
  }

  // Normalized by the weights in an input, and rotated, if that is wanted.
  ValueId Edited(ValueId heads, size_t norm) {
    if (Given(norm) != ValueId::kNone) {
      const float epsilon = node_.GetFloat("qk_norm_epsilon", 1e-6f);
      heads = b_.Op("SimplifiedLayerNormalization", {heads, inputs_[norm]},
                    Attributes(Attribute("epsilon", epsilon)));
    }
    if (node_.GetInt("do_rotary", 0) == 0) return heads;
    // The angles may be those of the first elements alone.
    const ValueId rotated = Mul(b_, SizeOf(b_, inputs_[kCos], 1), Integer(b_, 2));
    const auto part = [&](ValueId first, ValueId end) {
      return b_.Op("Slice", {heads, first, end, Integer(b_, 3)});
    };
    const ValueId turned =
        b_.Op("RotaryEmbedding",
              {part(Integer(b_, 0), rotated), Positions(), inputs_[kCos], inputs_[kSin]},
              Attributes(Int("interleaved", node_.GetInt("rotary_interleaved", 0))), kMicrosoft);
    return Joined(b_, {turned, part(rotated, SizeOf(b_, heads, 3))}, 3);
  }

  // The positions of the queries: those after the past.
  ValueId Positions() {
    if (Given(kPositions) != ValueId::kNone) return Given(kPositions);
    if (past_ == ValueId::kNone) return Integer(b_, 0);
    return Add(b_, Unsqueezed(b_, past_, 1), Unsqueezed(b_, Numbers(b_, inputs_[kQuery], 1), 0));
  }

  Builder& b_;
  const Node& node_;
  const std::vector<ValueId>& inputs_;
  const int64_t heads_, kv_heads_;
  ValueId past_ = ValueId::kNone;  // [batch]; kNone without a past
  ValueId source_ = ValueId::kNone,
          is_there_ = ValueId::kNone;  // [batch, rows], [batch, 1, rows, 1]
};

Result<Gradients> GroupQueryAttention(Builder& b, const Inputs& in) {
  const ValueId key = in.x(GroupQuery::kKey);
  const SymbolicShape* shape = key == ValueId::kNone ? nullptr : b.ShapeOf(key);
  const bool is_shared = shape && shape->rank() > 1 && (*shape)[1] == Dim(0);
  const bool slides = in.node.GetInt("sliding_window_cache", 0) != 0;
  if (is_shared || slides || in.node.GetString("k_quant_type", "NONE") != "NONE" ||
      in.node.GetString("v_quant_type", "NONE") != "NONE") {
    return NotImplemented("{}-{} ({}) has no gradient yet with a cache that {}", in.node.op_type,
                          in.node.opset, in.node.Describe(),
                          is_shared ? "another one fills"
                          : slides  ? "slides"
                                    : "is quantized");
  }
  return OfComposition(b, in, [&](const std::vector<ValueId>& inputs) {
    return GroupQuery(b, in.node, inputs).Of(in.Needs(in.x(GroupQuery::kScoreBias)));
  });
}

// ---- MultiHeadAttention -------------------------------------------------------------------------

enum MultiHeadInput : size_t {
  kBias = 3,
  kPadding,
  kScoreBias,
  kPastKeys,
  kPastValues,
  kPastLength,
  kIndirection
};

// The heads of one of several tensors that are packed along an axis.
ValueId Part(Builder& b, ValueId packed, int64_t axis, int64_t index) {
  const ValueId rows =
      b.Op("Gather", {packed, b.IntegerScalar(index)}, Attributes(Int("axis", axis)));
  return Transposed(b, rows, Swapped());
}

struct MultiHeadRanks {
  int64_t q = 3, k = 3, padding = 0;
};

void SplitHeads(Builder& b, const std::vector<ValueId>& inputs, const MultiHeadRanks& ranks,
                int64_t heads, HeadProduct* found) {
  const bool has_key = inputs.size() > kK && inputs[kK] != ValueId::kNone;
  if (!has_key) {
    ValueId packed = inputs[kQ];
    if (ranks.q == 3) {
      const int64_t sizes[] = {0, 0, 3, heads, -1};
      packed = b.Op("Reshape", {packed, b.Integers(sizes)});
    }
    const int64_t axis = ranks.q == 3 ? 2 : 3;
    found->q = Part(b, packed, axis, 0);
    found->k = Part(b, packed, axis, 1);
    found->v = Part(b, packed, axis, 2);
    return;
  }
  found->q = HeadsFirst(b, inputs[kQ], 3, heads);
  if (ranks.k == 5) {
    found->k = Part(b, inputs[kK], 3, 0);
    found->v = Part(b, inputs[kK], 3, 1);
  } else {
    found->k = HeadsFirst(b, inputs[kK], ranks.k, heads);
    found->v = HeadsFirst(b, inputs[kV], ranks.k, heads);
  }
}

// Adds the bias of all heads of q, k and v. Keys and values that come as heads have none.
void AddBias(Builder& b, ValueId bias, bool are_heads, int64_t heads, HeadProduct* found) {
  const auto hidden = [&](ValueId value) {
    return Mul(b, Sizes(b, value, 3, 4), Integer(b, heads));
  };
  const ValueId sizes = Joined(b, {hidden(found->q), hidden(found->k), hidden(found->v)}, 0);
  const auto parts = b.Ops("Split", std::array{bias, sizes}, 3, Attributes(Int("axis", 0)));
  const int64_t shape[] = {heads, 1, -1};
  size_t next = 0;
  for (ValueId* part : {&found->q, &found->k, &found->v}) {
    const ValueId row = b.Op("Reshape", {parts[next++], b.Integers(shape)});
    if (part == &found->q || !are_heads) *part = Add(b, *part, row);
  }
}

// Addends for padding, as ops/attention/head_rows.h describes the mask, to be broadcast to the
// scores.
ValueId PaddingAddends(Builder& b, const HeadProduct& heads, ValueId mask, int64_t rank,
                       double filter) {
  const ValueId zero = Integer(b, 0), numbers = b.CastTo(mask, zero);
  ValueId is_key;
  if (rank == 1) {
    const int64_t column[] = {-1, 1, 1, 1};
    const auto columns = [&](ValueId x) { return b.Op("Reshape", {x, b.Integers(column)}); };
    const ValueId key = Numbers(b, heads.k, 2), batch = Sizes(b, heads.q, 0, 1);
    const ValueId size = b.Op("Shape", {mask}), twice = Add(b, batch, batch);
    // Beginnings follow the ends if there are two numbers for each sequence.
    const ValueId has_first = b.CastTo(b.Op("Equal", {size, twice}), zero);
    const ValueId ends = b.Op("Slice", {numbers, zero, batch});
    const ValueId last = b.Op("Slice", {numbers, Sub(b, size, batch), size});
    const ValueId before_end = b.Op("Less", {key, columns(ends)});
    const ValueId before_first = b.Op("Less", {key, columns(Mul(b, last, has_first))});
    is_key = b.Op("And", {before_end, b.Op("Not", {before_first})});
  } else {
    const std::vector<int64_t> axes =
        rank == 2 ? std::vector<int64_t>{1, 2} : std::vector<int64_t>{1};
    is_key = b.Op("Greater", {b.Op("Unsqueeze", {numbers, b.Integers(axes)}), zero});
  }
  return Where(b, is_key, b.Scalar(0, heads.q), b.Scalar(filter, heads.q));
}

Result<Gradients> MultiHeadAttention(Builder& b, const Inputs& in) {
  for (const size_t i : {kPastLength, kIndirection}) {
    TENON_RETURN_IF_ERROR(CheckWithout(b, in, i, "a cache of which a part is used"));
  }
  MultiHeadRanks ranks;
  TENON_ASSIGN_OR_RETURN(ranks.q, RankOf(b, in, in.x(kQ)));
  if (in.x(kK) != ValueId::kNone) {
    TENON_ASSIGN_OR_RETURN(ranks.k, RankOf(b, in, in.x(kK)));
  }
  if (in.x(kPadding) != ValueId::kNone) {
    TENON_ASSIGN_OR_RETURN(ranks.padding, RankOf(b, in, in.x(kPadding)));
  }
  const int64_t head_count = in.node.GetInt("num_heads", 1);
  return OfComposition(b, in, [&](const std::vector<ValueId>& inputs) {
    const auto input = [&](size_t i) { return i < inputs.size() ? inputs[i] : ValueId::kNone; };
    HeadProduct heads;
    SplitHeads(b, inputs, ranks, head_count, &heads);
    if (input(kBias) != ValueId::kNone) {
      AddBias(b, inputs[kBias], ranks.k == 4, head_count, &heads);
    }
    if (input(kPastKeys) != ValueId::kNone) {
      heads.k = Joined(b, {inputs[kPastKeys], heads.k}, 2);
      heads.v = Joined(b, {inputs[kPastValues], heads.v}, 2);
      heads.position = Sizes(b, inputs[kPastKeys], 2, 3);
    }
    heads.mask = input(kScoreBias);
    if (ranks.padding > 0) {
      const auto filter = static_cast<double>(in.node.GetFloat("mask_filter_value", -10000));
      const ValueId padding = PaddingAddends(b, heads, input(kPadding), ranks.padding, filter);
      heads.mask = heads.mask == ValueId::kNone ? padding : Add(b, heads.mask, padding);
    }
    heads.scale = ScaleOf(in.node);
    if (in.node.GetInt("unidirectional", 0) != 0) heads.right = 0;
    // Without a causal mask no position matters.
    if (heads.right < 0) heads.position = ValueId::kNone;
    return Gradients{ProductOf(b, heads, {head_count, head_count}, in.Needs(in.x(kScoreBias))),
                     heads.k, heads.v};
  });
}

constexpr NamedGradientRule kRules[] = {
    {"Attention", Attention, 23},
    {"GroupQueryAttention", GroupQueryAttention, 1, kMicrosoft},
    {"MultiHeadAttention", MultiHeadAttention, 1, kMicrosoft},
    {"ScaledDotProductAttention", ScaledDotProduct, 1, kMicrosoft},
};

}  // namespace

std::span<const NamedGradientRule> AttentionGradients() { return kRules; }

}  // namespace tenon
