// The gradients of operators that are computed again by simpler ones, which a Gradient of their own
// then differentiates: Attention, GridSample and LRN.
#include <algorithm>
#include <array>

#include "base/function_ref.h"
#include "ir/gradient_rules.h"

namespace tenon {
namespace {

// The gradients of the inputs, if `compute` makes the first output of copies of them.
Gradients OfComposition(Builder& b, const Inputs& in,
                        FunctionRef<ValueId(const std::vector<ValueId>& inputs)> compute) {
  std::vector<ValueId> inputs = in.node.inputs, xs;
  std::vector<std::string> names;
  for (ValueId& input : inputs) {
    if (input == ValueId::kNone || !in.Needs(input)) continue;
    // What leads to dy is not differentiated.
    input = b.Op("Identity", {input});
    b.graph().value(input).type =
        b.graph().value(in.x(static_cast<size_t>(&input - inputs.data()))).type;
    xs.push_back(input);
    names.push_back(b.graph().value(input).name);
  }
  const ValueId loss =
      b.Op("ReduceSum", {Mul(b, compute(inputs), in.dy())}, Attributes(Int("keepdims", 0)));
  const std::string y = b.graph().value(loss).name;
  const Gradients found =
      b.Ops("Gradient", xs, xs.size(),
            Attributes(Attribute("xs", std::move(names)), Attribute("y", y)), kTraining);
  Gradients all(in.node.inputs.size(), ValueId::kNone);
  size_t next = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (in.x(i) == ValueId::kNone || !in.Needs(in.x(i))) continue;
    b.graph().value(found[next]).type = b.graph().value(in.x(i)).type;
    all[i] = found[next++];
  }
  return all;
}

// Sizes [first, last) of a value's shape.
ValueId Sizes(Builder& b, ValueId value, int64_t first, int64_t last) {
  return b.Op("Slice", {b.Op("Shape", {value}), Integer(b, first), Integer(b, last)});
}

ValueId Joined(Builder& b, std::initializer_list<ValueId> parts, int64_t axis) {
  return b.Op("Concat", parts, Attributes(Int("axis", axis)));
}

ValueId Transposed(Builder& b, ValueId value, std::vector<int64_t> order) {
  return b.Op("Transpose", {value}, Attributes(Attribute("perm", std::move(order))));
}

ValueId Unsqueezed(Builder& b, ValueId value, int64_t axis) {
  return b.Op("Unsqueeze", {value, Integer(b, axis)});
}

// ---- Attention ----------------------------------------------------------------------------------

enum AttentionInput : size_t { kQ, kK, kV, kMask, kPastKey, kPastValue, kKeyLengths };

// [batch, heads, length, size]
ValueId HeadsFirst(Builder& b, ValueId value, int64_t rank, int64_t heads) {
  if (rank == 4) return value;
  const int64_t sizes[] = {0, 0, heads, -1};
  return Transposed(b, b.Op("Reshape", {value, b.Integers(sizes)}), {0, 2, 1, 3});
}

// 0, 1, 2 ... as many as an axis of the value has.
ValueId Numbers(Builder& b, ValueId value, int64_t axis) {
  const ValueId count = b.Op("Gather", {b.Op("Shape", {value}), b.IntegerScalar(axis)});
  return b.Op("Range", {b.IntegerScalar(0), count, b.IntegerScalar(1)});
}

// Which keys each query sees, to be broadcast to the scores; kNone if all.
ValueId SeenKeys(Builder& b, const Inputs& in, ValueId q, ValueId keys) {
  ValueId seen = ValueId::kNone;
  const auto also = [&](ValueId condition) {
    seen = seen == ValueId::kNone ? condition : b.Op("And", {seen, condition});
  };
  const ValueId key = Numbers(b, keys, 2);
  ValueId position = Unsqueezed(b, Numbers(b, q, 2), 1);
  if (in.x(kPastKey) != ValueId::kNone) position = Add(b, position, Sizes(b, in.x(kPastKey), 2, 3));
  if (in.x(kKeyLengths) != ValueId::kNone) {
    const int64_t axes[] = {1, 2, 3};
    const ValueId count = b.Op("Unsqueeze", {in.x(kKeyLengths), b.Integers(axes)});
    also(b.Op("Less", {key, count}));
    position = Add(b, position, Sub(b, count, Sizes(b, q, 2, 3)));
  }
  const int64_t left = in.node.GetInt("left_window_size", -1);
  int64_t right = in.node.GetInt("right_window_size", -1);
  if (in.node.GetInt("is_causal", 0) != 0) right = 0;
  const auto moved = [&](int64_t by) { return Add(b, position, b.IntegerScalar(by)); };
  if (right >= 0) also(b.Op("Less", {key, moved(right + 1)}));
  if (left >= 0) also(b.Op("Greater", {key, moved(-left - 1)}));
  const ValueId mask = in.x(kMask);
  if (mask != ValueId::kNone && b.graph().value(mask).type.element_type == DataType::kBool) {
    also(mask);
  }
  return seen;
}

Result<Gradients> Attention(Builder& b, const Inputs& in) {
  TENON_RETURN_IF_ERROR(CheckOnlyFirst(in));
  TENON_ASSIGN_OR_RETURN(const int64_t rank, RankOf(b, in, in.x(kQ)));
  const int64_t q_heads = in.node.GetInt("q_num_heads", 0);
  const int64_t kv_heads = in.node.GetInt("kv_num_heads", 0);
  return OfComposition(b, in, [&](const std::vector<ValueId>& inputs) {
    const auto input = [&](size_t i) { return i < inputs.size() ? inputs[i] : ValueId::kNone; };
    const ValueId q = HeadsFirst(b, inputs[kQ], rank, q_heads);
    ValueId k = HeadsFirst(b, inputs[kK], rank, kv_heads);
    ValueId v = HeadsFirst(b, inputs[kV], rank, kv_heads);
    if (input(kPastKey) != ValueId::kNone) {
      k = Joined(b, {inputs[kPastKey], k}, 2);
      v = Joined(b, {inputs[kPastValue], v}, 2);
    }
    ValueId scale;
    if (in.node.FindAttribute("scale") != nullptr) {
      scale = b.Scalar(static_cast<double>(in.node.GetFloat("scale", 1)), q);
    } else {
      scale = b.Op("Reciprocal", {b.Op("Sqrt", {b.CastTo(Sizes(b, q, 3, 4), q)})});
    }
    // Query heads that share a key head, as an axis of their own.
    const ValueId any = Integer(b, -1),
                  all_scores = Joined(b, {Sizes(b, q, 0, 3), Sizes(b, k, 2, 3)}, 0);
    const auto grouped = [&](ValueId value) {
      const ValueId shape = Joined(b, {Sizes(b, k, 0, 2), any, Sizes(b, value, 2, 4)}, 0);
      return b.Op("Reshape", {value, shape});
    };
    const ValueId turned = Transposed(b, Unsqueezed(b, k, 2), {0, 1, 2, 4, 3});
    ValueId scores =
        b.Op("Reshape", {b.Op("MatMul", {grouped(Mul(b, q, scale)), turned}), all_scores});
    if (const float cap = in.node.GetFloat("softcap", 0); cap > 0) {
      const auto limit = static_cast<double>(cap);
      scores = Times(b, b.Op("Tanh", {Times(b, scores, 1 / limit)}), limit);
    }
    const ValueId seen = SeenKeys(b, in, q, k);
    const ValueId mask = input(kMask);
    if (mask != ValueId::kNone && b.graph().value(mask).type.element_type != DataType::kBool) {
      scores = Add(b, scores, mask);
    }
    constexpr double kVeryLow = -1e30;
    if (seen != ValueId::kNone) scores = Where(b, seen, scores, b.Scalar(kVeryLow, q));
    ValueId weights = b.Op("Softmax", {scores}, Attributes(Int("axis", -1)));
    if (seen != ValueId::kNone) weights = Where(b, seen, weights, b.Scalar(0, q));
    const ValueId product = b.Op("MatMul", {grouped(weights), Unsqueezed(b, v, 2)});
    const ValueId heads =
        b.Op("Reshape", {product, Joined(b, {Sizes(b, q, 0, 3), Sizes(b, v, 3, 4)}, 0)});
    if (rank == 4) return heads;
    const int64_t sizes[] = {0, 0, -1};
    return b.Op("Reshape", {Transposed(b, heads, {0, 2, 1, 3}), b.Integers(sizes)});
  });
}

// ---- GridSample ---------------------------------------------------------------------------------

// An element of each position along one axis, and what it counts.
struct AxisTap {
  ValueId index, weight;
};

// One axis of GridSample; positions are [N, spatial...].
class SampledAxis {
 public:
  SampledAxis(Builder& b, const Node& node, ValueId x, int64_t axis)
      : b_(b),
        size_(b.CastTo(b.Op("Gather", {b.Op("Shape", {x}), b.IntegerScalar(axis + 2)}), x)),
        last_(Plus(b, size_, -1)),
        padding_(node.GetString("padding_mode", "zeros")),
        is_aligned_(node.GetInt("align_corners", 0) != 0),
        is_nearest_(node.GetString("mode", "linear") == "nearest") {}

  std::vector<AxisTap> Taps(ValueId normalized) {
    ValueId x = Plus(b_, normalized, 1);
    x = is_aligned_ ? Mul(b_, Times(b_, x, 0.5), last_)
                    : Times(b_, Plus(b_, Mul(b_, x, size_), -1), 0.5);
    if (is_nearest_) x = b_.Op("Round", {x});
    if (padding_ == "reflection") x = Reflected(x);
    if (padding_ != "zeros") x = Inside(x);
    const ValueId first = b_.Op("Floor", {x});
    if (is_nearest_) return {Tap(first, b_.Filled(1, first))};
    const ValueId ratio = Sub(b_, x, first);
    return {Tap(first, Plus(b_, b_.Op("Neg", {ratio}), 1)), Tap(Plus(b_, first, 1), ratio)};
  }

 private:
  ValueId Inside(ValueId x) {
    const ValueId zero = b_.Scalar(0, x);
    x = Where(b_, b_.Op("Less", {x, zero}), zero, x);
    return Where(b_, b_.Op("Less", {last_, x}), last_, x);
  }

  ValueId Reflected(ValueId x) {
    const ValueId range = is_aligned_ ? last_ : size_;
    const double least = is_aligned_ ? 0 : -0.5;
    const ValueId beyond = b_.Op("Mod", {b_.Op("Abs", {Plus(b_, x, -least)}), Times(b_, range, 2)},
                                 Attributes(Int("fmod", 1)));
    const ValueId back = Sub(b_, Times(b_, range, 2), beyond);
    return Plus(b_, Where(b_, b_.Op("Less", {beyond, range}), beyond, back), least);
  }

  // Elements outside count nothing.
  AxisTap Tap(ValueId x, ValueId weight) {
    const ValueId index = Inside(x);
    const ValueId is_inside = b_.CastTo(b_.Op("Equal", {x, index}), x);
    const auto type = static_cast<int64_t>(DataType::kInt64);
    const ValueId whole = b_.Op("Cast", {index}, Attributes(Int("to", type)));
    return {Unsqueezed(b_, whole, -1), Unsqueezed(b_, Mul(b_, weight, is_inside), -1)};
  }

  Builder& b_;
  ValueId size_, last_;
  std::string_view padding_;
  bool is_aligned_, is_nearest_;
};

Result<Gradients> GridSample(Builder& b, const Inputs& in) {
  TENON_ASSIGN_OR_RETURN(const int64_t rank, RankOf(b, in, in.x(0)));
  const std::string_view mode = in.node.GetString("mode", "linear");
  if (mode == "cubic" || mode == "bicubic") {
    return NotImplemented("{} has no gradient yet in mode {}", in.node.Describe(), mode);
  }
  return OfComposition(b, in, [&](const std::vector<ValueId>& inputs) {
    std::vector<int64_t> channels_last = AxesBetween(1, rank),
                         channels_first = AxesBetween(0, rank - 1);
    std::rotate(channels_last.begin(), channels_last.begin() + 1, channels_last.end());
    channels_last.insert(channels_last.begin(), 0);
    channels_first.insert(channels_first.begin() + 1, rank - 1);
    const ValueId x = Transposed(b, inputs[0], std::move(channels_last));
    const ValueId grid = b.CastTo(inputs[1], inputs[0]);
    // All combinations of the taps of the axes.
    std::vector<AxisTap> taps;
    for (int64_t axis = 0; axis < rank - 2; ++axis) {
      // The grid has the last axis first.
      const ValueId positions =
          b.Op("Gather", {grid, b.IntegerScalar(rank - 3 - axis)}, Attributes(Int("axis", -1)));
      const std::vector<AxisTap> own = SampledAxis(b, in.node, inputs[0], axis).Taps(positions);
      std::vector<AxisTap> all;
      for (const AxisTap& before : taps) {
        for (const AxisTap& tap : own) {
          all.push_back(
              {Joined(b, {before.index, tap.index}, -1), Mul(b, before.weight, tap.weight)});
        }
      }
      taps = axis == 0 ? own : std::move(all);
    }
    ValueId sum = ValueId::kNone;
    for (const AxisTap& tap : taps) {
      const ValueId picked = b.Op("GatherND", {x, tap.index}, Attributes(Int("batch_dims", 1)));
      const ValueId part = Mul(b, picked, tap.weight);
      sum = sum == ValueId::kNone ? part : Add(b, sum, part);
    }
    return Transposed(b, sum, std::move(channels_first));
  });
}

// ---- LRN ----------------------------------------------------------------------------------------

// x / (bias + alpha / size * the squares of neighbouring channels)^beta
Result<Gradients> Lrn(Builder& b, const Inputs& in) {
  TENON_ASSIGN_OR_RETURN(const int64_t rank, RankOf(b, in, in.x(0)));
  const int64_t size = in.node.GetInt("size", 1), before = (size - 1) / 2;
  const auto setting = [&](const char* name, float otherwise) {
    return static_cast<double>(in.node.GetFloat(name, otherwise));
  };
  std::vector<int64_t> pads(static_cast<size_t>(2 * rank), 0);
  pads[1] = before;
  pads[static_cast<size_t>(rank) + 1] = size - 1 - before;
  return OfComposition(b, in, [&](const std::vector<ValueId>& inputs) {
    const ValueId x = inputs[0], padded = b.Op("Pad", {Square(b, x), b.Integers(pads)});
    const ValueId count = Sizes(b, x, 1, 2);
    ValueId sum = ValueId::kNone;
    for (int64_t i = 0; i < size; ++i) {
      const ValueId end = Add(b, count, Integer(b, i));
      const ValueId part = b.Op("Slice", {padded, Integer(b, i), end, Integer(b, 1)});
      sum = sum == ValueId::kNone ? part : Add(b, sum, part);
    }
    const double alpha = setting("alpha", 1e-4f) / static_cast<double>(size);
    const ValueId base = Plus(b, Times(b, sum, alpha), setting("bias", 1));
    return Mul(b, x, b.Op("Pow", {base, b.Scalar(-setting("beta", 0.75f), x)}));
  });
}

constexpr NamedGradientRule kRules[] = {
    {"Attention", Attention, 23},
    {"GridSample", GridSample, 16},
    {"LRN", Lrn},
};

}  // namespace

std::span<const NamedGradientRule> ComposedGradients() { return kRules; }

}  // namespace tenon
