#include "ops/text/code_point_set.h"

#include <algorithm>

namespace tenon {
namespace {

bool IsIn(std::span<const CodePointRange> ranges, uint32_t code_point) {
  const auto range =
      std::lower_bound(ranges.begin(), ranges.end(), code_point,
                       [](const CodePointRange& r, uint32_t value) { return r.last < value; });
  return range != ranges.end() && range->first <= code_point;
}

}  // namespace

void CodePointSet::Normalize() {
  std::sort(ranges_.begin(), ranges_.end(),
            [](const CodePointRange& a, const CodePointRange& b) { return a.first < b.first; });
  size_t count = 0;
  for (const CodePointRange range : ranges_) {
    if (count > 0 && range.first <= ranges_[count - 1].last + 1) {
      ranges_[count - 1].last = std::max(ranges_[count - 1].last, range.last);
    } else {
      ranges_[count++] = range;
    }
  }
  ranges_.resize(count);
  ascii_ = {};
  for (uint32_t c = 0; c < 128; ++c) {
    if (IsIn(ranges_, c)) ascii_[c / 64] |= uint64_t{1} << c % 64;
  }
}

void CodePointSet::Negate() {
  Normalize();
  std::vector<CodePointRange> others;
  uint32_t next = 0;
  for (const CodePointRange range : ranges_) {
    if (range.first > next) others.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLastCodePoint) others.push_back({next, kLastCodePoint});
  ranges_ = std::move(others);
  Normalize();
}

void CodePointSet::FoldCase() {
  Normalize();
  const std::span<const CaseVariant> all = CaseVariants();
  std::vector<CodePointRange> added;
  for (size_t begin = 0, end = 0; begin < all.size(); begin = end) {
    bool has_member = false;
    for (end = begin; end < all.size() && all[end].folded == all[begin].folded; ++end) {
      has_member = has_member || IsIn(ranges_, all[end].code_point);
    }
    if (!has_member) continue;
    for (size_t i = begin; i < end; ++i) added.push_back({all[i].code_point, all[i].code_point});
  }
  Add(added);
  Normalize();
}

bool CodePointSet::Contains(uint32_t code_point) const {
  if (code_point < 128) return (ascii_[code_point / 64] >> code_point % 64 & 1) != 0;
  return IsIn(ranges_, code_point);
}

}  // namespace tenon
