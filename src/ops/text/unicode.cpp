#include "ops/text/unicode.h"

#include <algorithm>
#include <vector>

namespace tenon {
namespace {

// Code points first, first + step, ..., last become others `distance` away.
struct CaseRun {
  uint32_t first, last;
  int32_t step, distance;
};

// A code point that becomes two or three; 0 ends the list.
struct CaseExpansion {
  uint32_t from;
  uint32_t to[3];
};

// A category or a script.
struct NamedRanges {
  std::string_view name;
  std::span<const CodePointRange> ranges;
};

#include "ops/text/unicode_scripts.inc"
#include "ops/text/unicode_tables.inc"

uint32_t Convert(uint32_t code_point, std::span<const CaseRun> runs) {
  const auto run =
      std::lower_bound(runs.begin(), runs.end(), code_point,
                       [](const CaseRun& r, uint32_t value) { return r.last < value; });
  const bool is_converted = run != runs.end() && code_point >= run->first &&
                            (code_point - run->first) % static_cast<uint32_t>(run->step) == 0;
  return is_converted ? code_point + static_cast<uint32_t>(run->distance) : code_point;
}

std::string ConvertText(std::string_view text, std::span<const CaseRun> runs,
                        std::span<const CaseExpansion> expansions) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const CodePoint next = DecodeUtf8(text);
    const auto expansion =
        std::lower_bound(expansions.begin(), expansions.end(), next.value,
                         [](const CaseExpansion& e, uint32_t value) { return e.from < value; });
    if (expansion != expansions.end() && expansion->from == next.value) {
      for (const uint32_t code_point : expansion->to) {
        if (code_point != 0) AppendUtf8(code_point, result);
      }
    } else {
      AppendUtf8(Convert(next.value, runs), result);
    }
    text.remove_prefix(next.bytes);
  }
  return result;
}

std::span<const CodePointRange> Find(std::span<const NamedRanges> all, std::string_view name) {
  for (const NamedRanges& named : all) {
    if (named.name == name) return named.ranges;
  }
  return {};
}

// Whether the languages with a dotless i fold it in another way: these code points are not folded
// with others.
bool IsTurkicI(uint32_t code_point) { return code_point == 0x130 || code_point == 0x131; }

std::vector<CaseVariant> MakeCaseVariants() {
  std::vector<CaseVariant> all;
  const auto add = [&](uint32_t code_point) {
    const uint32_t folded = FoldCase(code_point);
    all.push_back({folded, code_point});
    all.push_back({folded, folded});
  };
  for (const std::span<const CaseRun> runs :
       {std::span<const CaseRun>(kToLower), std::span<const CaseRun>(kToUpper)}) {
    for (const CaseRun& run : runs) {
      for (uint32_t c = run.first; c <= run.last; c += static_cast<uint32_t>(run.step)) add(c);
    }
  }
  const auto key = [](const CaseVariant& v) { return uint64_t{v.folded} << 32 | v.code_point; };
  std::sort(all.begin(), all.end(), [&](auto& a, auto& b) { return key(a) < key(b); });
  const auto equal = [&](auto& a, auto& b) { return key(a) == key(b); };
  all.erase(std::unique(all.begin(), all.end(), equal), all.end());
  return all;
}

}  // namespace

std::string ToLower(std::string_view text) { return ConvertText(text, kToLower, kToLowerSeveral); }
std::string ToUpper(std::string_view text) { return ConvertText(text, kToUpper, kToUpperSeveral); }
uint32_t LowerOf(uint32_t code_point) { return Convert(code_point, kToLower); }
uint32_t UpperOf(uint32_t code_point) { return Convert(code_point, kToUpper); }

uint32_t FoldCase(uint32_t code_point) {
  return IsTurkicI(code_point) ? code_point : LowerOf(UpperOf(code_point));
}

std::span<const CaseVariant> CaseVariants() {
  static const auto* const variants = new std::vector<CaseVariant>(MakeCaseVariants());
  return *variants;
}

bool IsWhiteSpace(uint32_t code_point) {
  if (code_point <= 0x20) return code_point >= 0x1C || (code_point >= 0x09 && code_point <= 0x0D);
  if (code_point >= 0x2000 && code_point <= 0x200A) return true;
  switch (code_point) {
    case 0x85:
    case 0xA0:
    case 0x1680:
    case 0x2028:
    case 0x2029:
    case 0x202F:
    case 0x205F:
    case 0x3000:
      return true;
    default:
      return false;
  }
}

std::span<const CodePointRange> CategoryRanges(std::string_view two_letters) {
  return Find(kCategories, two_letters);
}

std::span<const CodePointRange> ScriptRanges(std::string_view name) { return Find(kScripts, name); }

}  // namespace tenon
