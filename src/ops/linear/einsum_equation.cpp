#include "ops/linear/einsum_equation.h"

#include <algorithm>
#include <string>

namespace tenon {
namespace {

uint8_t LabelOf(char letter) {
  return static_cast<uint8_t>(letter <= 'Z' ? letter - 'A' : letter - 'a' + 26);
}

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace

Result<EinsumEquation::Term> EinsumEquation::ParseTerm(std::string_view text,
                                                       std::string_view equation) {
  Term term;
  while (!text.empty()) {
    if (text.starts_with("...")) {
      if (std::find(term.begin(), term.end(), kEllipsis) != term.end()) {
        return InvalidArgument("equation '{}': expected at most one ellipsis in a term", equation);
      }
      term.push_back(kEllipsis);
      text.remove_prefix(3);
    } else if (IsLetter(text[0])) {
      term.push_back(LabelOf(text[0]));
      text.remove_prefix(1);
    } else {
      return InvalidArgument("equation '{}': expected letters and ellipses, got '{}'", equation,
                             text.substr(0, 1));
    }
  }
  return term;
}

void EinsumEquation::FindSpareLabels() {
  std::array<bool, kEllipsis + 1> is_used{};
  for (const Term& term : terms_) {
    for (const uint8_t label : term) is_used[label] = true;
  }
  if (!is_used[kEllipsis]) return;
  for (size_t i = 0; i < kMostLabels; ++i) {
    const size_t label = (kLetters + i) % kMostLabels;
    if (!is_used[label]) spare_.push_back(static_cast<uint8_t>(label));
  }
}

// The labels that occur once, in order, after the ellipsis.
void EinsumEquation::MakeImplicitOutput() {
  std::array<int, kLetters> counts{};
  bool has_ellipsis = false;
  for (const Term& term : terms_) {
    for (const uint8_t label : term) {
      if (label == kEllipsis) {
        has_ellipsis = true;
      } else {
        ++counts[label];
      }
    }
  }
  if (has_ellipsis) output_.push_back(kEllipsis);
  for (uint8_t label = 0; label < kLetters; ++label) {
    if (counts[label] == 1) output_.push_back(label);
  }
}

Result<EinsumEquation> EinsumEquation::Parse(std::string_view equation) {
  std::string text;
  std::copy_if(equation.begin(), equation.end(), std::back_inserter(text),
               [](char c) { return c != ' '; });
  std::string_view rest = text;
  const size_t arrow = rest.find("->");
  std::string_view inputs = rest.substr(0, arrow);
  EinsumEquation parsed;
  for (bool more = true; more;) {
    const size_t comma = inputs.find(',');
    TENON_ASSIGN_OR_RETURN(Term term, ParseTerm(inputs.substr(0, comma), equation));
    parsed.terms_.push_back(std::move(term));
    more = comma != std::string_view::npos;
    if (more) inputs.remove_prefix(comma + 1);
  }
  parsed.FindSpareLabels();
  if (arrow == std::string_view::npos) {
    parsed.MakeImplicitOutput();
    return parsed;
  }
  TENON_ASSIGN_OR_RETURN(parsed.output_, ParseTerm(rest.substr(arrow + 2), equation));
  for (size_t i = 0; i < parsed.output_.size(); ++i) {
    const uint8_t label = parsed.output_[i];
    const bool is_known =
        std::any_of(parsed.terms_.begin(), parsed.terms_.end(), [label](const Term& term) {
          return std::find(term.begin(), term.end(), label) != term.end();
        });
    const bool is_repeated = std::count(parsed.output_.begin(), parsed.output_.end(), label) > 1;
    if ((!is_known && label != kEllipsis) || is_repeated) {
      return InvalidArgument(
          "equation '{}': expected each label of the output once, and in an "
          "input",
          equation);
    }
  }
  return parsed;
}

Result<Labels> EinsumEquation::LabelsOf(size_t operand, size_t rank) const {
  const Term& term = terms_[operand];
  const bool has_ellipsis = std::find(term.begin(), term.end(), kEllipsis) != term.end();
  const size_t named = term.size() - (has_ellipsis ? 1 : 0);
  if (has_ellipsis ? rank < named : rank != named) {
    return InvalidArgument("input {}: expected rank {}{}, got {}", operand, named,
                           has_ellipsis ? " or more" : "", rank);
  }
  if (rank - named > spare_.size()) {
    return NotImplemented("an ellipsis of {} axes; at most {} are served", rank - named,
                          spare_.size());
  }
  return Expanded(term, rank - named);
}

Labels EinsumEquation::OutputLabels(size_t ellipsis_rank) const {
  return Expanded(output_, ellipsis_rank);
}

Labels EinsumEquation::Expanded(const Term& term, size_t ellipsis_rank) const {
  Labels labels;
  for (const uint8_t label : term) {
    if (label == kEllipsis) {
      labels.insert(labels.end(), spare_.rend() - static_cast<ptrdiff_t>(ellipsis_rank),
                    spare_.rend());
    } else {
      labels.push_back(label);
    }
  }
  return labels;
}

size_t EinsumEquation::EllipsisRank(std::span<const size_t> ranks) const {
  size_t most = 0;
  for (size_t i = 0; i < terms_.size(); ++i) {
    const Term& term = terms_[i];
    if (std::find(term.begin(), term.end(), kEllipsis) == term.end()) continue;
    most = std::max(most, ranks[i] + 1 - term.size());
  }
  return most;
}

Result<SymbolicShape> EinsumEquation::OutputShape(std::span<const SymbolicShape> operands) const {
  std::array<std::optional<Dim>, kMostLabels> sizes;
  PooledVector<size_t> ranks;
  for (size_t i = 0; i < operands.size(); ++i) {
    ranks.push_back(operands[i].rank());
    TENON_ASSIGN_OR_RETURN(const Labels labels, LabelsOf(i, operands[i].rank()));
    for (size_t axis = 0; axis < labels.size(); ++axis) {
      std::optional<Dim>& size = sizes[labels[axis]];
      const Dim& dim = operands[i][axis];
      if (!size) {
        size = dim;
        continue;
      }
      if (size->is_number() && dim.is_number() && !(*size == dim) && !(*size == Dim(1)) &&
          !(dim == Dim(1))) {
        return InvalidArgument("input {}: expected size {} of axis {} as before, got {}", i, *size,
                               axis, operands[i]);
      }
      size = Broadcast(*size, dim);
    }
  }
  SymbolicShape shape;
  for (const uint8_t label : OutputLabels(EllipsisRank(ranks))) {
    shape.Append(sizes[label].value_or(Dim(1)));
  }
  return shape;
}

}  // namespace tenon
