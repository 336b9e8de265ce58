#include "ops/token_rules.h"

#include <algorithm>
#include <limits>

namespace tenon {
namespace {

constexpr float kNever = std::numeric_limits<float>::lowest();

bool IsIn(int32_t token, std::span<float> scores) {
  return token >= 0 && static_cast<size_t>(token) < scores.size();
}

void Penalize(std::span<const int32_t> sequence, float penalty, std::span<float> scores) {
  std::vector<bool> is_done(scores.size(), false);
  for (const int32_t token : sequence) {
    if (!IsIn(token, scores) || is_done[static_cast<size_t>(token)]) continue;
    is_done[static_cast<size_t>(token)] = true;
    float& score = scores[static_cast<size_t>(token)];
    score = score < 0 ? score * penalty : score / penalty;
  }
}

void ForbidRepetition(std::span<const int32_t> sequence, size_t ngram, std::span<float> scores) {
  if (ngram == 0 || ngram > sequence.size()) return;
  const auto last = sequence.last(ngram - 1);
  for (size_t i = 0; i + ngram <= sequence.size(); ++i) {
    const int32_t next = sequence[i + ngram - 1];
    if (!std::equal(last.begin(), last.end(), sequence.begin() + static_cast<ptrdiff_t>(i))) {
      continue;
    }
    if (IsIn(next, scores)) scores[static_cast<size_t>(next)] = kNever;
  }
}

void Forbid(std::span<const int32_t> allowed, std::span<float> scores) {
  for (size_t i = 0; i < allowed.size(); ++i) {
    if (allowed[i] == 0) scores[i] = kNever;
  }
}

}  // namespace

TokenSequences::TokenSequences(std::span<const int32_t> tokens, size_t rows, size_t copies,
                               size_t most_tokens)
    : rows_(rows * copies),
      most_(most_tokens),
      length_(rows == 0 ? 0 : tokens.size() / rows),
      tokens_(rows_ * most_),
      before_(tokens_.size()) {
  for (size_t i = 0; i < rows_; ++i) {
    std::copy_n(tokens.data() + i / copies * length_, length_, tokens_.data() + i * most_);
  }
}

void TokenSequences::Append(std::span<const int32_t> tokens) {
  for (size_t i = 0; i < rows_; ++i) tokens_[i * most_ + length_] = tokens[i];
  ++length_;
}

void TokenSequences::Append(std::span<const int32_t> sources, std::span<const int32_t> tokens) {
  tokens_.swap(before_);
  for (size_t i = 0; i < rows_; ++i) {
    const auto source = static_cast<size_t>(sources[i]);
    std::copy_n(before_.data() + source * most_, length_, tokens_.data() + i * most_);
  }
  Append(tokens);
}

void TokenRules::ApplyToRow(std::span<const int32_t> sequence, std::span<float> scores) const {
  if (repetition_penalty != 1) Penalize(sequence, repetition_penalty, scores);
  ForbidRepetition(sequence, ngram_size, scores);
  Forbid(allowed, scores);
}

void TokenRules::Apply(const TokenSequences& sequences, size_t batch, bool is_first,
                       size_t vocabulary, float* scores) const {
  const size_t rows_per_batch = batch == 0 ? 1 : sequences.rows() / batch;
  for (size_t row = 0; row < sequences.rows(); ++row) {
    const std::span<float> row_scores(scores + row * vocabulary, vocabulary);
    ApplyToRow(sequences.Row(row), row_scores);
    if (is_first && !allowed_next.empty()) {
      Forbid(allowed_next.subspan(row / rows_per_batch * vocabulary, vocabulary), row_scores);
    }
    if (sequences.length() < min_length && IsIn(eos_token, row_scores)) {
      row_scores[static_cast<size_t>(eos_token)] = kNever;
    }
    for (size_t i = 0; i < vocabulary; ++i) {
      if (temperature > 0 && temperature != 1) row_scores[i] /= temperature;
      if (!presence.empty()) {
        row_scores[i] -= static_cast<float>(presence[row * vocabulary + i]) * presence_penalty;
      }
    }
  }
}

}  // namespace tenon
