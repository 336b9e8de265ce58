#include "ops/generation/token_rules.h"

#include <algorithm>
#include <cmath>
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

void ForbidOne(int32_t token, std::span<float> scores) {
  if (IsIn(token, scores)) scores[static_cast<size_t>(token)] = kNever;
}

// Tokens [begin, end), as far as there are.
void ForbidRange(int64_t begin, int64_t end, std::span<float> scores) {
  const auto size = static_cast<int64_t>(scores.size());
  const int64_t first = std::clamp<int64_t>(begin, 0, size);
  const int64_t last = std::clamp<int64_t>(end, first, size);
  std::fill(scores.begin() + first, scores.begin() + last, kNever);
}

// The logarithm of the sum of probabilities; kNever if none is left.
float JointScore(std::span<const float> scores) {
  if (scores.empty()) return kNever;
  const float most = *std::max_element(scores.begin(), scores.end());
  float sum = 0;
  for (const float score : scores) sum += score > kNever ? std::exp(score - most) : 0;
  return sum > 0 ? std::log(sum) + most : kNever;
}

}  // namespace

void TimestampRules::Apply(std::span<const int32_t> sequence, std::span<float> scores) const {
  constexpr int64_t kMostInitial = 50;  // a second
  const auto is_time = [this](int32_t token) { return token >= first; };
  const auto found = std::find_if(sequence.begin(), sequence.end(), is_time);
  // The tokens up to the first timestamp, or all.
  const size_t begin = static_cast<size_t>(found - sequence.begin()) + (found != sequence.end());
  const size_t length = sequence.size();
  const auto vocabulary = static_cast<int64_t>(scores.size());
  ForbidOne(no_timestamps, scores);
  ForbidOne(start_of_lm, scores);
  if (length > begin) {
    for (const int32_t token : {start, translate, transcribe}) ForbidOne(token, scores);
  }
  const bool ends_with_time = length > 0 && is_time(sequence.back());
  const bool ends_with_pair = length <= begin || is_time(sequence[length - 2]);
  if (ends_with_time && ends_with_pair) ForbidRange(first, vocabulary, scores);
  if (ends_with_time && !ends_with_pair) ForbidRange(0, eos_token, scores);
  const auto last = std::find_if(sequence.rbegin(), sequence.rend(), is_time);
  if (last != sequence.rend()) {
    // The second of a pair may be the same time.
    const bool may_repeat = ends_with_time && !ends_with_pair;
    ForbidRange(first, int64_t{*last} + (may_repeat ? 0 : 1), scores);
  }
  if (length == begin) ForbidRange(first + kMostInitial + 1, vocabulary, scores);
  const auto texts = static_cast<size_t>(std::clamp<int64_t>(first, 0, vocabulary));
  const auto text = scores.first(texts);
  const float best = text.empty() ? kNever : *std::max_element(text.begin(), text.end());
  if (JointScore(scores.subspan(texts)) > best) std::fill(text.begin(), text.end(), kNever);
}

void ForcedTokens::Apply(size_t step, size_t batch, size_t vocabulary,
                         std::span<float> scores) const {
  if (step >= count || batch == 0) return;
  const size_t per_batch = scores.size() / batch;
  for (size_t b = 0; b < batch; ++b) {
    const auto ahead = tokens.subspan(b * count, step + 1);
    if (std::any_of(ahead.begin(), ahead.end(), [](int32_t token) { return token < 0; })) continue;
    const auto of_batch = scores.subspan(b * per_batch, per_batch);
    std::fill(of_batch.begin(), of_batch.end(), kNever);
    for (size_t i = static_cast<size_t>(ahead.back()); i < per_batch; i += vocabulary) {
      of_batch[i] = 0;
    }
  }
}

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
    if (timestamps) timestamps->Apply(sequences.Row(row), row_scores);
  }
}

}  // namespace tenon
