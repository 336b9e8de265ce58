#include "base/text.h"

// The one translation unit that holds fmt's formatting code; no locale is consulted.
#define FMT_STATIC_THOUSANDS_SEPARATOR ','
#include <fmt/format-inl.h>

#include <algorithm>

namespace fmt {
inline namespace v9 {
namespace detail {
template thousands_sep_result<char> thousands_sep_impl(locale_ref);
template char decimal_point_impl(locale_ref);
}  // namespace detail
}  // namespace v9
}  // namespace fmt

namespace tenon {
namespace {

// Levenshtein distance between two short names.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitution = diagonal + (a[i - 1] != b[j - 1] ? 1 : 0);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substitution});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string FormatV(fmt::string_view format, fmt::format_args args) {
  return fmt::vformat(format, args);
}

std::string JoinNames(const std::vector<std::string>& names, size_t limit) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < limit; ++i) {
    if (i > 0) text += ", ";
    text += names[i];
  }
  if (names.size() > limit) text += Format(", ... ({} more)", names.size() - limit);
  return text;
}

std::string DidYouMean(std::string_view name, const std::vector<std::string>& candidates) {
  constexpr size_t kLongestName = 256;
  if (name.size() > kLongestName) return "";
  size_t best_distance = name.size() / 3 + 2;
  const std::string* best = nullptr;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestName) continue;
    const size_t distance = EditDistance(name, candidate);
    const bool has_a_letter_in_common = distance < std::max(name.size(), candidate.size());
    if (distance < best_distance && has_a_letter_in_common) {
      best_distance = distance;
      best = &candidate;
    }
  }
  return best ? Format(" (did you mean '{}'?)", *best) : "";
}

}  // namespace tenon
