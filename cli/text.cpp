#include "text.h"

// The only file with fmt's formatting code.
#define FMT_HEADER_ONLY
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace tenon::cli {
namespace {

// Levenshtein distance.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substituted = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string FormatV(fmt::string_view format, fmt::format_args args) {
  return fmt::vformat(format, args);
}

void Note(const std::string& text) { std::fprintf(stderr, "tenon: %s\n", text.c_str()); }

std::string BytesText(double bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? Format("{:.0f} B", bytes) : Format("{:.1f} {}", bytes, kUnits[unit]);
}

std::string DurationText(double milliseconds) {
  if (milliseconds < 1) return Format("{:.1f} us", milliseconds * 1e3);
  if (milliseconds < 1e3) return Format("{:.2f} ms", milliseconds);
  return Format("{:.2f} s", milliseconds / 1e3);
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::vector<std::string> dims;
  for (const int64_t dim : shape) dims.push_back(std::to_string(dim));
  return Format("[{}]", Join(dims, ", "));
}

std::string Join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (&part != parts.data()) text += separator;
    text += part;
  }
  return text;
}

std::string DidYouMean(std::string_view name, const std::vector<std::string>& candidates) {
  constexpr size_t kLongestName = 256;  // the distance costs the product of the lengths
  if (name.size() > kLongestName) return "";
  size_t best_distance = name.size() / 3 + 2;
  const std::string* best = nullptr;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kLongestName) continue;
    const size_t distance = EditDistance(name, candidate);
    if (distance >= best_distance) continue;
    best_distance = distance;
    best = &candidate;
  }
  return best ? Format(" (did you mean '{}'?)", *best) : "";
}

std::string TableText(const std::vector<std::vector<std::string>>& rows, std::string_view indent) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    text += indent;
    for (size_t i = 0; i < row.size(); ++i) {
      text += row[i];
      if (i + 1 < row.size()) text.append(widths[i] - row[i].size() + 2, ' ');
    }
    text += '\n';
  }
  return text;
}

}  // namespace tenon::cli
