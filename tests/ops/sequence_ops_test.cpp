// RotaryEmbedding, CausalConvWithState, LinearAttention.
#include <cmath>

#include "ops/op_cases.h"
#include "ops/reference.h"

namespace tenon {
namespace {

TEST(RotaryEmbeddingTest, TurnsPairs) {
  for (const bool heads_first : {false, true}) {
    for (const bool interleaved : {false, true}) {
      for (const bool by_position : {false, true}) {
        for (const int64_t turned : {0, 4, 2}) {
          const int64_t pairs = turned == 0 ? 3 : turned / 2;
          const Tensor x = Scattered(heads_first ? Shape{2, 3, 5, 6} : Shape{2, 5, 18});
          const Shape cache = by_position ? Shape{7, pairs} : Shape{2, 5, pairs};
          const Tensor cosines = Scattered(cache, 2), sines = Scattered(cache, 3);
          Tensor ids = Iota<int64_t>({2, 5});
          for (int64_t i = 0; i < 10; ++i) ids.data<int64_t>()[i] = i * 3 % 7;
          const Tensor y = RunTensorOp(
              {"RotaryEmbedding",
               23,
               {x, cosines, sines, by_position ? Value(ids) : Value()},
               MakeAttributes(Attr("num_heads", int64_t{3}), Attr("rotary_embedding_dim", turned),
                              Attr("interleaved", int64_t{interleaved}))});
          ExpectElements(y, x.shape(), 1e-6, [&](int64_t i) {
            const int64_t e = i % 6, row = i / 6, batch = row / 15;
            const int64_t position = heads_first ? row % 5 : row / 3 % 5;
            if (e >= 2 * pairs) return static_cast<double>(x.data<float>()[i]);
            const int64_t pair = interleaved ? e / 2 : e % pairs;
            const bool second = interleaved ? e % 2 == 1 : e >= pairs;
            const int64_t step = interleaved ? 1 : pairs;
            const int64_t first = second ? i - step : i;
            const int64_t token = batch * 5 + position;
            const int64_t angle = (by_position ? ids.data<int64_t>()[token] : token) * pairs + pair;
            const double a = x.data<float>()[first], b = x.data<float>()[first + step];
            const double cosine = cosines.data<float>()[angle], sine = sines.data<float>()[angle];
            return second ? sine * a + cosine * b : cosine * a - sine * b;
          });
        }
      }
    }
  }
}

TEST(RotaryEmbeddingTest, RefusesHostileValues) {
  const Tensor x = Scattered({1, 1, 2, 4}), cache = Scattered({3, 2});
  for (const int64_t id : {int64_t{3}, int64_t{-1}, INT64_MIN, INT64_MAX}) {
    EXPECT_NE(
        ErrorOf({"RotaryEmbedding", 23, {x, cache, cache, Tensor::Of<int64_t>({1, 2}, {0, id})}}),
        "no error");
  }
  const Tensor ids = Tensor::Of<int64_t>({1, 2}, {0, 1});
  for (const int64_t turned : {int64_t{3}, int64_t{6}, INT64_MAX}) {
    EXPECT_NE(ErrorOf({"RotaryEmbedding",
                       23,
                       {x, cache, cache, ids},
                       MakeAttributes(Attr("rotary_embedding_dim", turned))}),
              "no error");
  }
}

TEST(CausalConvTest, LooksBack) {
  for (const int64_t length : {0, 1, 2, 9, 40}) {
    for (const int64_t kernel : {1, 2, 4}) {
      for (const bool has_past : {false, true}) {
        for (const bool silu : {false, true}) {
          const Tensor x = Scattered({2, 3, length}), weight = Scattered({3, 1, kernel}, 2);
          const Tensor bias = Scattered({3}, 3), past = Scattered({2, 3, kernel - 1}, 4);
          OpCall call{"CausalConvWithState",
                      27,
                      {x, weight, bias, has_past ? Value(past) : Value()},
                      MakeAttributes(Attr("activation", std::string(silu ? "silu" : "none"))),
                      2};
          const auto outputs = RunOp(std::move(call));
          ASSERT_TRUE(outputs) << outputs.error().message();
          // Element t of a channel, where t < 0 is the past.
          const auto at = [&](int64_t row, int64_t t) -> double {
            if (t >= 0) return x.data<float>()[row * length + t];
            return has_past ? past.data<float>()[row * (kernel - 1) + kernel - 1 + t] : 0;
          };
          ExpectElements((*outputs)[0].tensor(), {2, 3, length}, 1e-5, [&](int64_t i) {
            const int64_t row = i / length, t = i % length;
            double sum = bias.data<float>()[row % 3];
            for (int64_t k = 0; k < kernel; ++k) {
              sum += weight.data<float>()[row % 3 * kernel + k] * at(row, t - kernel + 1 + k);
            }
            return silu ? sum / (1 + std::exp(-sum)) : sum;
          });
          ExpectElements((*outputs)[1].tensor(), {2, 3, kernel - 1}, 0, [&](int64_t i) {
            return at(i / (kernel - 1), length - kernel + 1 + i % (kernel - 1));
          });
        }
      }
    }
  }
}

TEST(CausalConvTest, RefusesWhatDoesNotFit) {
  const Tensor x = Scattered({1, 2, 5});
  EXPECT_NE(ErrorOf({"CausalConvWithState", 27, {x, Scattered({2, 2, 3})}}), "no error");
  EXPECT_NE(ErrorOf({"CausalConvWithState", 27, {x, Scattered({2, 1, 0})}}), "no error");
  EXPECT_NE(ErrorOf({"CausalConvWithState", 27, {x, Scattered({3, 1, 2})}}), "no error");
}

TEST(LinearAttentionTest, FollowsTheRecurrence) {
  constexpr int64_t kBatch = 2, kLength = 4, kQueries = 4, kKeys = 2, kDk = 3, kDv = 5;
  for (const std::string rule : {"linear", "gated", "delta", "gated_delta"}) {
    for (const bool per_head : {false, true}) {
      const bool gated = rule[0] == 'g', corrected = rule.ends_with("delta");
      const Tensor q = Scattered({kBatch, kLength, kQueries * kDk});
      const Tensor k = Scattered({kBatch, kLength, kKeys * kDk}, 2);
      const Tensor v = Scattered({kBatch, kLength, kKeys * kDv}, 3);
      const Tensor past = Scattered({kBatch, kKeys, kDk, kDv}, 4);
      const Tensor decay = Scattered({kBatch, kLength, per_head ? kKeys : kKeys * kDk}, 5);
      const Tensor beta = Scattered({kBatch, kLength, per_head ? kKeys : 1}, 6);
      const auto outputs =
          RunOp({"LinearAttention",
                 27,
                 {q, k, v, past, gated ? Value(decay) : Value(), corrected ? Value(beta) : Value()},
                 MakeAttributes(Attr("q_num_heads", kQueries), Attr("kv_num_heads", kKeys),
                                Attr("update_rule", rule)),
                 2});
      ASSERT_TRUE(outputs) << outputs.error().message();
      std::vector<double> state(past.data<float>(), past.data<float>() + past.size());
      std::vector<double> y(static_cast<size_t>(kBatch * kLength * kQueries * kDv));
      for (int64_t b = 0; b < kBatch; ++b) {
        for (int64_t h = 0; h < kKeys; ++h) {
          double* s = state.data() + (b * kKeys + h) * kDk * kDv;
          for (int64_t t = 0; t < kLength; ++t) {
            const int64_t token = b * kLength + t;
            const float* key = k.data<float>() + (token * kKeys + h) * kDk;
            for (int64_t i = 0; gated && i < kDk; ++i) {
              const double g =
                  decay.data<float>()[per_head ? token * kKeys + h : (token * kKeys + h) * kDk + i];
              for (int64_t j = 0; j < kDv; ++j) s[i * kDv + j] *= std::exp(g);
            }
            for (int64_t j = 0; j < kDv; ++j) {
              double update = v.data<float>()[(token * kKeys + h) * kDv + j];
              if (corrected) {
                for (int64_t i = 0; i < kDk; ++i) update -= s[i * kDv + j] * key[i];
                update *= beta.data<float>()[per_head ? token * kKeys + h : token];
              }
              for (int64_t i = 0; i < kDk; ++i) s[i * kDv + j] += key[i] * update;
            }
            for (int64_t head = h * 2; head < h * 2 + 2; ++head) {
              for (int64_t j = 0; j < kDv; ++j) {
                double sum = 0;
                for (int64_t i = 0; i < kDk; ++i) {
                  sum += q.data<float>()[(token * kQueries + head) * kDk + i] * s[i * kDv + j];
                }
                y[static_cast<size_t>((token * kQueries + head) * kDv + j)] = sum / std::sqrt(3.0);
              }
            }
          }
        }
      }
      ExpectElements((*outputs)[0].tensor(), {kBatch, kLength, kQueries * kDv}, 1e-4,
                     [&](int64_t i) { return y[static_cast<size_t>(i)]; });
      ExpectElements((*outputs)[1].tensor(), past.shape(), 1e-4,
                     [&](int64_t i) { return state[static_cast<size_t>(i)]; });
    }
  }
}

TEST(LinearAttentionTest, RefusesWhatDoesNotFit) {
  const Tensor q = Scattered({1, 2, 4}), gate = Scattered({1, 2, 2});
  const auto error = [&](int64_t queries, int64_t keys, const char* rule, Value decay) {
    return ErrorOf({"LinearAttention",
                    27,
                    {q, q, q, Value(), std::move(decay)},
                    MakeAttributes(Attr("q_num_heads", queries), Attr("kv_num_heads", keys),
                                   Attr("update_rule", std::string(rule)))});
  };
  EXPECT_EQ(error(2, 2, "linear", Value()), "no error");
  EXPECT_EQ(error(2, 2, "gated", gate), "no error");
  EXPECT_NE(error(2, 2, "gated", Value()), "no error");
  EXPECT_NE(error(2, 2, "linear", gate), "no error");
  EXPECT_NE(error(2, 2, "other", Value()), "no error");
  for (const int64_t heads : {int64_t{0}, int64_t{3}, int64_t{-1}, INT64_MIN, INT64_MAX}) {
    EXPECT_NE(error(heads, 2, "linear", Value()), "no error");
    EXPECT_NE(error(2, heads, "linear", Value()), "no error");
  }
}

}  // namespace
}  // namespace tenon
