// Unicode data for the operators on strings, from tables of our own: the same bytes on every
// platform and in every locale. Strings are UTF-8.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/utf8.h"

namespace tenon {

// `text` in lower or upper case by Unicode's full mappings, which do not depend on the language or
// on the letters around; "ss" in upper case has as many letters as "SS" has, so the text may grow.
std::string ToLower(std::string_view text);
std::string ToUpper(std::string_view text);

// One code point in the other case; itself if it has none, or several code points there.
uint32_t LowerOf(uint32_t code_point);
uint32_t UpperOf(uint32_t code_point);

// A code point and its replacement if case is ignored.
struct CaseVariant {
  uint32_t folded = 0, code_point = 0;
};

// `code_point` by Unicode's simple case folding: equal for those that differ only in case.
uint32_t FoldCase(uint32_t code_point);
// All code points that are equal to others except for case, sorted; those with the same `folded`
// are equal.
std::span<const CaseVariant> CaseVariants();

// Unicode's White_Space, and the four separators 0x1C to 0x1F.
bool IsWhiteSpace(uint32_t code_point);

// Both ends belong to the range.
struct CodePointRange {
  uint32_t first, last;
};

// The code points of a general category such as "Lu", sorted; of one letter such as "L", in several
// groups. Empty if there is no such category.
std::span<const CodePointRange> CategoryRanges(std::string_view two_letters);
// The code points of a script such as "Greek", sorted. Empty if there is no such script.
std::span<const CodePointRange> ScriptRanges(std::string_view name);

}  // namespace tenon
