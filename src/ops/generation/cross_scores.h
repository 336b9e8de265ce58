// Collects the scores of a decoder's cross attention during WhisperBeamSearch, for the tokens of
// the resulting sequences.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "tensor/tensor.h"
#include "tensor/value.h"

namespace tenon {

class CrossScores {
 public:
  // `heads` are pairs of a layer and a head, [pairs, 2] of int32, or null for all; it outlives
  // this.
  explicit CrossScores(const Tensor* heads) : heads_(heads) {}

  size_t pairs() const { return pairs_.size(); }
  size_t runs() const { return scores_.size(); }
  size_t frames() const { return frames_; }

  // What a run of the decoder over `rows` sequences gave: for each layer [rows, heads, length,
  // frames] of float or float16, of which the last of `length` belongs to the newest token.
  // Errors: kInvalidArgument for other shapes, and for pairs that name no layer or head.
  Status Add(std::span<const Value> layers, size_t rows);
  // Row i goes on as row sources[i]; once for each token that the sequences grow by.
  void Move(std::span<const int32_t> sources);
  // The scores of the tokens of the sequence that came to be row `row` by its `tokens`th:
  // [pairs][runs][frames]. The part after its last token is not written.
  void Write(size_t row, size_t tokens, float* into) const;

 private:
  struct Pair {
    size_t layer, head;
  };
  Status FindPairs(std::span<const Value> layers);

  const Tensor* heads_;
  std::vector<Pair> pairs_;
  size_t frames_ = 0;
  std::vector<std::vector<float>> scores_;     // by run: [rows][pairs][frames]
  std::vector<std::vector<int32_t>> sources_;  // by token
};

}  // namespace tenon
