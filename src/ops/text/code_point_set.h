// A set of code points, for character classes of regular expressions.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "ops/text/unicode.h"

namespace tenon {

class CodePointSet {
 public:
  // Adds first..last. The set is not sorted until Normalize.
  void Add(uint32_t first, uint32_t last) { ranges_.push_back({first, last}); }
  void Add(std::span<const CodePointRange> ranges) {
    ranges_.insert(ranges_.end(), ranges.begin(), ranges.end());
  }

  // These leave the ranges sorted and disjoint, without adjacent ones.
  void Normalize();
  void Negate();    // within 0..kLastCodePoint
  void FoldCase();  // adds code points that differ from a member only in case

  // For a normalized set; invalid UTF-8 bytes (kInvalidByte) are in none.
  bool Contains(uint32_t code_point) const;
  std::span<const CodePointRange> ranges() const { return ranges_; }

 private:
  std::vector<CodePointRange> ranges_;
  std::array<uint64_t, 2> ascii_{};  // a bit for each of the first 128
};

}  // namespace tenon
