// Tokens generated so far, and the rules that change the scores of the next ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tenon {

// Rows of tokens that grow together.
class TokenSequences {
 public:
  // Each row of `tokens`, [rows, length], begins `copies` neighbouring sequences.
  TokenSequences(std::span<const int32_t> tokens, size_t rows, size_t copies, size_t most_tokens);

  size_t rows() const { return rows_; }
  size_t length() const { return length_; }
  std::span<const int32_t> Row(size_t i) const { return {tokens_.data() + i * most_, length_}; }

  void Append(std::span<const int32_t> tokens);
  // Row i becomes what row sources[i] was, and then tokens[i].
  void Append(std::span<const int32_t> sources, std::span<const int32_t> tokens);

 private:
  size_t rows_, most_, length_;
  std::vector<int32_t> tokens_, before_;
};

// Whisper's timestamps: tokens from `first` on. They come in pairs, which do not decrease, and one
// is chosen if together they are likelier than any text.
struct TimestampRules {
  int32_t first = 0, no_timestamps = -1, start_of_lm = -1;
  int32_t start = -1, translate = -1, transcribe = -1;  // not after the first timestamp
  int32_t eos_token = 0;

  void Apply(std::span<const int32_t> sequence, std::span<float> scores) const;
};

// Tokens that come before any that is chosen, [batch][count]; a negative one ends those of its
// batch.
struct ForcedTokens {
  std::span<const int32_t> tokens;
  size_t count = 0;

  // Leaves one choice for the token `step` to come: changes `scores`, [rows][vocabulary] of
  // neighbouring rows of `batch` batches.
  void Apply(size_t step, size_t batch, size_t vocabulary, std::span<float> scores) const;
};

// The changes that com.microsoft's generation operators make to scores, in this order.
struct TokenRules {
  float repetition_penalty = 1;
  size_t ngram_size = 0;                  // n-grams of this size appear once; 0: no rule
  std::span<const int32_t> allowed;       // by token, 0: never; empty: all
  std::span<const int32_t> allowed_next;  // [batch][token], for the first token to be generated
  size_t min_length = 0;                  // eos_token only in sequences that are as long
  int32_t eos_token = 0;
  float temperature = 1;
  std::span<const int32_t> presence;  // [row][token]
  float presence_penalty = 0;
  std::optional<TimestampRules> timestamps;

  // Changes `scores`, [sequences.rows()][vocabulary], of `batch` batches of neighbouring rows.
  // Tokens of the sequences may lie outside the vocabulary.
  void Apply(const TokenSequences& sequences, size_t batch, bool is_first, size_t vocabulary,
             float* scores) const;

 private:
  void ApplyToRow(std::span<const int32_t> sequence, std::span<float> scores) const;
};

}  // namespace tenon
