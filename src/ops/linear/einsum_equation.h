// The equation of Einsum-28, parsed, and its labels bound to the shapes of the operands.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/block_pool.h"
#include "base/status.h"
#include "ir/dim.h"

namespace tenon {

// Labels are numbers: 0 to 51 for letters in ASCII order. Numbers of letters that are not in the
// equation, and higher ones, are for the axes of the ellipsis, which are counted from the last.
inline constexpr size_t kLetters = 52;
inline constexpr size_t kMostLabels = 64;

// The labels of a list of axes.
using Labels = PooledVector<uint8_t>;

class EinsumEquation {
 public:
  // Error: kInvalidArgument quoting the equation.
  static Result<EinsumEquation> Parse(std::string_view equation);

  size_t operand_count() const { return terms_.size(); }

  // The labels of an operand's axes. Error: kInvalidArgument if the rank does not fit the term.
  Result<Labels> LabelsOf(size_t operand, size_t rank) const;

  // The labels of the output's axes, when the ellipsis has `ellipsis_rank` of them.
  Labels OutputLabels(size_t ellipsis_rank) const;

  // The output's shape. Errors: kInvalidArgument if the sizes of a label differ and none is 1.
  Result<SymbolicShape> OutputShape(std::span<const SymbolicShape> operands) const;

  // How many axes the ellipsis has among operands of these ranks.
  size_t EllipsisRank(std::span<const size_t> ranks) const;

 private:
  static constexpr uint8_t kEllipsis = 255;
  using Term = std::vector<uint8_t>;  // labels, and kEllipsis at most once

  static Result<Term> ParseTerm(std::string_view text, std::string_view equation);
  void FindSpareLabels();
  void MakeImplicitOutput();
  // Of a term whose ellipsis has this many axes.
  Labels Expanded(const Term& term, size_t ellipsis_rank) const;

  std::vector<Term> terms_;
  Term output_;
  std::vector<uint8_t> spare_;  // the ellipsis's
};

}  // namespace tenon
