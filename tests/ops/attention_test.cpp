#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/product_reference.h"
#include "ops/run_op.h"

namespace tenon {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct AttentionCase {
  const char* name;
  int64_t batch = 2, heads = 4, kv_heads = 4, queries = 5, keys = 7, size = 8, value_size = 6;
  int64_t past = 0;
  bool is_rank_3 = false, is_causal = false;
  Shape mask = {0};  // {0}: none
  bool is_bool_mask = false;
  std::vector<int64_t> key_lengths = {};
  float scale = 0, softcap = 0;
  int64_t left = -1, right = -1;
  int32_t opset = 24;
};

struct Inputs {
  Tensor q, k, v, mask, past_key, past_value;
};

struct Expected {
  std::vector<double> y;          // [batch, heads, queries, value_size]
  std::vector<double> scores[4];  // [batch, heads, queries, past + keys] in each mode
};

double Element(const Tensor& x, int64_t at) {
  return x.type() == DataType::kDouble ? x.data<double>()[at] : x.data<float>()[at];
}

// Element [b, h, i, p] of a tensor of rank 4, or of rank 3 with its heads in the last axis.
double At(const Tensor& x, int64_t heads, int64_t b, int64_t h, int64_t i, int64_t p) {
  const Shape& s = x.shape();
  const int64_t at = s.rank() == 4 ? ((b * s[1] + h) * s[2] + i) * s[3] + p
                                   : (b * s[1] + i) * s[2] + h * (s[2] / heads) + p;
  return Element(x, at);
}

class Reference {
 public:
  Reference(const AttentionCase& c, const Inputs& in) : c_(c), in_(in) {}

  Expected Compute() const {
    Expected out;
    for (int64_t b = 0; b < c_.batch; ++b) {
      for (int64_t h = 0; h < c_.heads; ++h) {
        for (int64_t i = 0; i < c_.queries; ++i) AddRow(b, h, i, &out);
      }
    }
    return out;
  }

 private:
  void AddRow(int64_t b, int64_t h, int64_t i, Expected* out) const {
    const int64_t total = c_.past + c_.keys, kv_head = h / (c_.heads / c_.kv_heads);
    std::vector<double> weights;
    double most = -kInfinity, sum = 0;
    for (int64_t j = 0; j < total; ++j) {
      double dot = 0;
      for (int64_t p = 0; p < c_.size; ++p) {
        dot += At(in_.q, c_.heads, b, h, i, p) * Key(b, kv_head, j, p);
      }
      const double product = dot * (c_.scale != 0 ? c_.scale : 1 / std::sqrt(double(c_.size)));
      const double capped = c_.softcap > 0 ? c_.softcap * std::tanh(product / c_.softcap) : product;
      const double masked = capped + Bias(b, h, i, j);
      out->scores[0].push_back(product);
      out->scores[1].push_back(capped);
      out->scores[2].push_back(masked);
      weights.push_back(masked);
      most = std::max(most, masked);
    }
    for (double& w : weights) {
      w = most == -kInfinity ? 0 : std::exp(w - most);
      sum += w;
    }
    for (double& w : weights) w = sum == 0 ? 0 : w / sum;
    out->scores[3].insert(out->scores[3].end(), weights.begin(), weights.end());
    for (int64_t p = 0; p < c_.value_size; ++p) {
      double y = 0;
      for (int64_t j = 0; j < total; ++j) {
        y += weights[static_cast<size_t>(j)] * Value(b, kv_head, j, p);
      }
      out->y.push_back(y);
    }
  }

  double Key(int64_t b, int64_t h, int64_t j, int64_t p) const {
    return j < c_.past ? At(in_.past_key, 0, b, h, j, p)
                       : At(in_.k, c_.kv_heads, b, h, j - c_.past, p);
  }
  double Value(int64_t b, int64_t h, int64_t j, int64_t p) const {
    return j < c_.past ? At(in_.past_value, 0, b, h, j, p)
                       : At(in_.v, c_.kv_heads, b, h, j - c_.past, p);
  }

  double Bias(int64_t b, int64_t h, int64_t i, int64_t j) const {
    int64_t position = i + c_.past;
    if (!c_.key_lengths.empty()) {
      const int64_t length = c_.key_lengths[static_cast<size_t>(b)];
      if (j >= length) return -kInfinity;
      position = i + length - c_.queries;
    }
    if (c_.is_causal && j > position) return -kInfinity;
    if (c_.left >= 0 && j < position - c_.left) return -kInfinity;
    if (c_.right >= 0 && j > position + c_.right) return -kInfinity;
    if (in_.mask.size() == 0) return 0;
    if (j >= c_.mask.back()) return -kInfinity;
    const int64_t index[] = {b, h, i, j};
    int64_t at = 0, stride = 1;
    for (size_t back = 1; back <= c_.mask.rank(); ++back) {
      const int64_t dim = c_.mask[c_.mask.rank() - back];
      if (dim != 1) at += index[4 - back] * stride;
      stride *= dim;
    }
    if (c_.is_bool_mask) return in_.mask.data<bool>()[at] ? 0 : -kInfinity;
    return in_.mask.data<float>()[at];
  }

  const AttentionCase& c_;
  const Inputs& in_;
};

Inputs MakeInputs(const AttentionCase& c) {
  const auto shape = [&](int64_t heads, int64_t length, int64_t size) {
    return c.is_rank_3 ? Shape{c.batch, length, heads * size} : Shape{c.batch, heads, length, size};
  };
  Inputs in;
  in.q = FilledWith<float>(shape(c.heads, c.queries, c.size), 1);
  in.k = FilledWith<float>(shape(c.kv_heads, c.keys, c.size), 2);
  in.v = FilledWith<float>(shape(c.kv_heads, c.keys, c.value_size), 3);
  in.past_key = FilledWith<float>({c.batch, c.kv_heads, c.past, c.size}, 4);
  in.past_value = FilledWith<float>({c.batch, c.kv_heads, c.past, c.value_size}, 5);
  in.mask = FilledWith<float>(c.mask, 6);
  if (c.is_bool_mask) {
    Tensor mask = Tensor::Allocate(DataType::kBool, c.mask).value();
    // The first row hides everything.
    for (int64_t i = 0; i < mask.size(); ++i) {
      mask.data<bool>()[i] = i >= c.mask.back() && in.mask.data<float>()[i] > 0;
    }
    in.mask = mask;
  }
  return in;
}

Tensor ToDouble(const Tensor& x) {
  if (x.type() != DataType::kFloat) return x;
  Tensor wide = Tensor::Allocate(DataType::kDouble, x.shape()).value();
  std::copy_n(x.data<float>(), x.size(), wide.data<double>());
  return wide;
}

OpCall MakeCall(const AttentionCase& c, const Inputs& in, int64_t mode) {
  OpCall call = {.op_type = "Attention", .opset = c.opset, .output_count = 4};
  call.inputs = {in.q,
                 in.k,
                 in.v,
                 in.mask.size() ? Value(in.mask) : Value(),
                 c.past ? Value(in.past_key) : Value(),
                 c.past ? Value(in.past_value) : Value()};
  if (!c.key_lengths.empty()) {
    call.inputs.push_back(Tensor::Of<int64_t>({c.batch}, std::span<const int64_t>(c.key_lengths)));
  }
  call.attributes =
      MakeAttributes(Attr("is_causal", int64_t{c.is_causal}), Attr("qk_matmul_output_mode", mode));
  const auto add = [&](const char* name, auto value, bool there) {
    if (there) call.attributes.push_back(Attr(name, value));
  };
  add("q_num_heads", c.heads, c.is_rank_3);
  add("kv_num_heads", c.kv_heads, c.is_rank_3);
  add("scale", c.scale, c.scale != 0);
  add("softcap", c.softcap, c.softcap != 0);
  add("left_window_size", c.left, c.left >= 0);
  add("right_window_size", c.right, c.right >= 0);
  return call;
}

// y is compared element by element, because rank 3 has another order than the reference.
void ExpectY(const AttentionCase& c, const Tensor& y, const std::vector<double>& expected,
             double tolerance) {
  ASSERT_EQ(y.shape(), c.is_rank_3 ? Shape({c.batch, c.queries, c.heads * c.value_size})
                                   : Shape({c.batch, c.heads, c.queries, c.value_size}));
  size_t at = 0;
  for (int64_t b = 0; b < c.batch; ++b) {
    for (int64_t h = 0; h < c.heads; ++h) {
      for (int64_t i = 0; i < c.queries; ++i) {
        for (int64_t p = 0; p < c.value_size; ++p, ++at) {
          ASSERT_NEAR(At(y, c.heads, b, h, i, p), expected[at], tolerance)
              << "batch " << b << " head " << h << " query " << i;
        }
      }
    }
  }
}

void CheckAttention(const AttentionCase& c, DataType type) {
  SCOPED_TRACE(c.name);
  const bool is_double = type == DataType::kDouble;
  const double tolerance = is_double ? 1e-12 : 1e-5;
  const Inputs in = MakeInputs(c);
  const Expected expected = Reference(c, in).Compute();
  for (int64_t mode = 0; mode < 4; ++mode) {
    SCOPED_TRACE(mode);
    OpCall call = MakeCall(c, in, mode);
    for (Value& input : call.inputs) {
      if (is_double && input.is_tensor()) input = ToDouble(input.tensor());
    }
    const auto outputs = RunOp(std::move(call));
    ASSERT_TRUE(outputs) << outputs.error().message();
    ExpectY(c, (*outputs)[0].tensor(), expected.y, tolerance);
    const Tensor& scores = (*outputs)[3].tensor();
    ASSERT_EQ(scores.shape(), Shape({c.batch, c.heads, c.queries, c.past + c.keys}));
    for (int64_t i = 0; i < scores.size(); ++i) {
      const double wanted = expected.scores[mode][static_cast<size_t>(i)];
      const double got = Element(scores, i);
      ASSERT_TRUE(got == wanted || std::abs(got - wanted) < tolerance) << got << " and " << wanted;
    }
    const Tensor& keys = (*outputs)[1].tensor();
    ASSERT_EQ(keys.shape(), Shape({c.batch, c.kv_heads, c.past + c.keys, c.size}));
    for (int64_t j = 0; j < c.past + c.keys; ++j) {
      const float wanted =
          static_cast<float>(j < c.past ? At(in.past_key, 0, c.batch - 1, 0, j, 1)
                                        : At(in.k, c.kv_heads, c.batch - 1, 0, j - c.past, 1));
      ASSERT_EQ(static_cast<float>(At(keys, 0, c.batch - 1, 0, j, 1)), wanted);
    }
  }
}

void CheckAttention(const AttentionCase& c) {
  for (const DataType type : {DataType::kFloat, DataType::kDouble}) CheckAttention(c, type);
}

TEST(AttentionTest, MatchesItsFormula) {
  const AttentionCase cases[] = {
      {.name = "plain"},
      {.name = "rank 3", .is_rank_3 = true},
      {.name = "scale and softcap", .scale = 0.5f, .softcap = 0.75f},
      {.name = "grouped heads", .kv_heads = 2},
      {.name = "one key head, rank 3", .kv_heads = 1, .is_rank_3 = true},
      {.name = "causal", .is_causal = true},
      {.name = "causal, more queries", .queries = 9, .keys = 4, .is_causal = true},
      {.name = "past", .past = 3},
      {.name = "past, causal, rank 3", .past = 3, .is_rank_3 = true, .is_causal = true},
      {.name = "mask", .mask = {2, 4, 5, 7}},
      {.name = "mask by query", .mask = {5, 7}},
      {.name = "mask by batch", .mask = {2, 1, 1, 7}},
      {.name = "mask by head", .mask = {4, 1, 7}},
      {.name = "mask, causal, past", .past = 3, .is_causal = true, .mask = {5, 10}},
      {.name = "short mask", .mask = {5, 4}},
      {.name = "bool mask", .mask = {5, 7}, .is_bool_mask = true},
      {.name = "bool mask, all axes", .mask = {2, 4, 5, 7}, .is_bool_mask = true},
      {.name = "bool mask, causal", .is_causal = true, .mask = {5, 7}, .is_bool_mask = true},
      {.name = "key lengths", .key_lengths = {7, 3}},
      {.name = "key lengths, causal", .is_causal = true, .key_lengths = {6, 2}},
      {.name = "one query", .queries = 1, .keys = 33, .size = 64, .value_size = 64},
      {.name = "several blocks",
       .batch = 1,
       .heads = 2,
       .kv_heads = 2,
       .queries = 70,
       .keys = 3000,
       .size = 5,
       .value_size = 3},
      {.name = "several blocks, causal",
       .batch = 1,
       .heads = 2,
       .kv_heads = 2,
       .queries = 600,
       .keys = 600,
       .size = 5,
       .value_size = 3,
       .is_causal = true},
      {.name = "no key", .keys = 0},
      {.name = "version 23", .is_causal = true, .mask = {5, 7}, .opset = 23},
  };
  for (const AttentionCase& c : cases) CheckAttention(c);
}

TEST(AttentionTest, WindowsBoundWhatAQuerySees) {
  for (const int64_t left : {-1, 0, 2}) {
    for (const int64_t right : {-1, 0, 1}) {
      CheckAttention({.name = "window", .past = 4, .left = left, .right = right, .opset = 25});
      CheckAttention(
          {.name = "causal window", .is_causal = true, .left = left, .right = right, .opset = 25});
    }
  }
}

// A task packs each part of the keys and values that some blocks of queries see together.
TEST(AttentionTest, SeveralBlocksInATask) {
  AttentionCase c = {.name = "all keys",
                     .batch = 1,
                     .heads = 32,
                     .queries = 140,
                     .keys = 700,
                     .size = 9,
                     .value_size = 3,
                     .opset = 25};
  CheckAttention(c, DataType::kFloat);
  c.is_causal = true;
  c.kv_heads = 4;
  c.name = "causal, grouped heads";
  CheckAttention(c, DataType::kFloat);
  c.past = 13;
  c.left = 60;
  c.name = "causal, past, window";
  CheckAttention(c, DataType::kFloat);
  c.past = 0;
  c.is_causal = false;
  c.right = 41;
  c.softcap = 0.75f;
  c.name = "window to both sides";
  CheckAttention(c, DataType::kFloat);
  c.key_lengths = {620};
  c.name = "window, key lengths";
  CheckAttention(c, DataType::kFloat);
  c.key_lengths = {};
  c.left = c.right = -1;
  c.mask = {140, 700};
  c.is_bool_mask = true;
  c.name = "bool mask";
  CheckAttention(c, DataType::kFloat);
}

TEST(AttentionTest, WindowsMayBeLongerThanAllKeys) {
  for (const int64_t window : {int64_t{6}, int64_t{100}, std::numeric_limits<int64_t>::max() / 2}) {
    CheckAttention({.name = "to the left", .queries = 9, .keys = 3, .left = window, .opset = 25});
    CheckAttention({.name = "to the right",
                    .queries = 9,
                    .keys = 3,
                    .key_lengths = {3, 1},
                    .right = window,
                    .opset = 25});
  }
}

TEST(AttentionTest, RefusesWhatDoesNotFit) {
  const auto message = [](const AttentionCase& c, void (*spoil)(OpCall*)) {
    OpCall call = MakeCall(c, MakeInputs(c), 0);
    spoil(&call);
    const auto outputs = RunOp(std::move(call));
    return outputs ? std::string("no error") : outputs.error().message();
  };
  const AttentionCase plain = {.name = "errors"};
  EXPECT_EQ(message(plain,
                    [](OpCall* c) {
                      c->inputs[1] = FilledWith<float>({2, 4, 7, 9}, 0);
                    }),
            "shapes of Q [2, 4, 5, 8], K [2, 4, 7, 9] and V [2, 4, 7, 6] do not fit together");
  EXPECT_EQ(message(plain,
                    [](OpCall* c) {
                      c->inputs[3] = FilledWith<float>({5, 8}, 0);
                    }),
            "input 3: expected a mask for scores [2, 4, 5, 7], got [5, 8]");
  EXPECT_EQ(message({.name = "heads", .kv_heads = 3}, [](OpCall*) {}),
            "expected a multiple of 3 query heads, got 4");
  EXPECT_EQ(message({.name = "past", .past = 2}, [](OpCall* c) { c->inputs[5] = Value(); }),
            "past_key and past_value are used together or not at all");
  const auto lengths = [&](std::vector<int64_t> lengths) {
    OpCall call = MakeCall(plain, MakeInputs(plain), 0);
    call.opset = 24;
    call.inputs.resize(7);
    const auto count = static_cast<int64_t>(lengths.size());
    call.inputs[6] = Tensor::Of<int64_t>({count}, lengths);
    const auto outputs = RunOp(std::move(call));
    return outputs ? std::string("no error") : outputs.error().message();
  };
  EXPECT_EQ(lengths({0, 7}), "no error");
  EXPECT_EQ(lengths({7, 8}), "input 6: expected lengths in [0, 7], got 8");
  EXPECT_EQ(lengths({7, -1}), "input 6: expected lengths in [0, 7], got -1");
  EXPECT_EQ(lengths({7}), "input 6: expected 2 lengths, got [1]");
}

}  // namespace
}  // namespace tenon
