#include "ops/generation/token_rules.h"

#include <gtest/gtest.h>

#include <limits>

#include "ops/generation/token_model.h"

namespace tenon {
namespace {

using Tokens = std::vector<int32_t>;
using Floats = std::vector<float>;

constexpr float kNever = std::numeric_limits<float>::lowest();

Tokens RowOf(const TokenSequences& sequences, size_t i) {
  const auto row = sequences.Row(i);
  return {row.begin(), row.end()};
}

// The scores of 5 tokens after `sequence`.
Floats Scores(const TokenRules& rules, const Tokens& sequence, bool is_first = false,
              Floats scores = {1, -1, 2, -2, 0}) {
  const TokenSequences sequences(sequence, 1, 1, sequence.size() + 1);
  rules.Apply(sequences, 1, is_first, scores.size(), scores.data());
  return scores;
}

TEST(TokenSequencesTest, GoesOnFromOtherRows) {
  TokenSequences sequences(Tokens{1, 2, 3, 4}, 2, 2, 4);
  EXPECT_EQ(sequences.rows(), 4u);
  EXPECT_EQ(RowOf(sequences, 1), (Tokens{1, 2}));
  sequences.Append(Tokens{5, 6, 7, 8});
  sequences.Append(Tokens{1, 1, 3, 2}, Tokens{0, 1, 2, 3});
  EXPECT_EQ(RowOf(sequences, 0), (Tokens{1, 2, 6, 0}));
  EXPECT_EQ(RowOf(sequences, 1), (Tokens{1, 2, 6, 1}));
  EXPECT_EQ(RowOf(sequences, 2), (Tokens{3, 4, 8, 2}));
  EXPECT_EQ(RowOf(sequences, 3), (Tokens{3, 4, 7, 3}));
}

TEST(TokenModelTest, PicksRowsOfWholeBytesAlone) {
  const Tensor x = Tensor::Of<int16_t>({2, 1}, {3, 5});
  const Result<Tensor> y = RepeatRows(x, 2);
  ASSERT_TRUE(y);
  EXPECT_EQ(y->values<int16_t>()[2], 5);
  for (const DataType type : {DataType::kInt4, DataType::kString}) {
    const Result<Tensor> state = Tensor::Allocate(type, {3, 1});
    ASSERT_TRUE(state);
    EXPECT_FALSE(RepeatRows(*state, 3)) << DataTypeName(type);
  }
}

TEST(TokenRulesTest, PenalizesEachTokenOnce) {
  TokenRules rules;
  rules.repetition_penalty = 2;
  EXPECT_EQ(Scores(rules, {0, 1, 0, 99, -1}), (Floats{0.5f, -2, 2, -2, 0}));
}

TEST(TokenRulesTest, ForbidsRepeatedNGrams) {
  TokenRules rules;
  rules.ngram_size = 2;
  EXPECT_EQ(Scores(rules, {1, 2, 3, 1}), (Floats{1, -1, kNever, -2, 0}));
  EXPECT_EQ(Scores(rules, {1}), (Floats{1, -1, 2, -2, 0}));
  rules.ngram_size = 1;
  EXPECT_EQ(Scores(rules, {3, 77}), (Floats{1, -1, 2, kNever, 0}));
}

TEST(TokenRulesTest, ForbidsWhatMasksExclude) {
  const Tokens allowed = {1, 1, 1, 1, 0}, next = {0, 1, 1, 1, 1};
  TokenRules rules;
  rules.allowed = allowed;
  rules.allowed_next = next;
  EXPECT_EQ(Scores(rules, {3}, true), (Floats{kNever, -1, 2, -2, kNever}));
  EXPECT_EQ(Scores(rules, {3}, false), (Floats{1, -1, 2, -2, kNever}));
}

TEST(TokenRulesTest, KeepsShortSequencesGoing) {
  TokenRules rules;
  rules.min_length = 3;
  rules.eos_token = 2;
  EXPECT_EQ(Scores(rules, {0, 1}), (Floats{1, -1, kNever, -2, 0}));
  EXPECT_EQ(Scores(rules, {0, 1, 1}), (Floats{1, -1, 2, -2, 0}));
  rules.eos_token = 99;
  EXPECT_EQ(Scores(rules, {0}), (Floats{1, -1, 2, -2, 0}));
}

TEST(TokenRulesTest, DividesByTheTemperatureAndLowersPresentTokens) {
  const Tokens presence = {1, 0, 2, 0, 0};
  TokenRules rules;
  rules.temperature = 2;
  rules.presence = presence;
  rules.presence_penalty = 0.5f;
  EXPECT_EQ(Scores(rules, {0}), (Floats{0, -0.5f, 0, -1, 0}));
}

}  // namespace
}  // namespace tenon
