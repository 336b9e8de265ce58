#include "ops/text/regex_cursor.h"

#include <algorithm>

namespace tenon {
namespace {

// Longer names are cut in an error's text.
constexpr size_t kExcerpt = 120;

constexpr CodePointRange kDigits[] = {{'0', '9'}};
constexpr CodePointRange kSpaces[] = {{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};
constexpr CodePointRange kWords[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
constexpr CodePointRange kAlnum[] = {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}};
constexpr CodePointRange kAlpha[] = {{'A', 'Z'}, {'a', 'z'}};
constexpr CodePointRange kAscii[] = {{0, 0x7F}};
constexpr CodePointRange kBlank[] = {{'\t', '\t'}, {' ', ' '}};
constexpr CodePointRange kCntrl[] = {{0, 0x1F}, {0x7F, 0x7F}};
constexpr CodePointRange kGraph[] = {{'!', '~'}};
constexpr CodePointRange kLower[] = {{'a', 'z'}};
constexpr CodePointRange kPrint[] = {{' ', '~'}};
constexpr CodePointRange kPunct[] = {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}};
constexpr CodePointRange kSpace[] = {{'\t', '\r'}, {' ', ' '}};
constexpr CodePointRange kUpper[] = {{'A', 'Z'}};
constexpr CodePointRange kXdigit[] = {{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
constexpr CodePointRange kEverything[] = {{0, kLastCodePoint}};

struct NamedClass {
  std::string_view name;
  std::span<const CodePointRange> ranges;
};

constexpr NamedClass kPosixClasses[] = {
    {"alnum", kAlnum}, {"alpha", kAlpha},   {"ascii", kAscii}, {"blank", kBlank},
    {"cntrl", kCntrl}, {"digit", kDigits},  {"graph", kGraph}, {"lower", kLower},
    {"print", kPrint}, {"punct", kPunct},   {"space", kSpace}, {"upper", kUpper},
    {"word", kWords},  {"xdigit", kXdigit},
};
constexpr NamedClass kPerlClasses[] = {{"d", kDigits}, {"s", kSpaces}, {"w", kWords}};

const NamedClass* FindClass(std::span<const NamedClass> classes, std::string_view name) {
  const auto found = std::find_if(classes.begin(), classes.end(),
                                  [&](const NamedClass& known) { return known.name == name; });
  return found == classes.end() ? nullptr : &*found;
}

// The members of a class that is part of another.
CodePointSet MakeClass(std::span<const CodePointRange> ranges, bool is_negated, bool folding) {
  CodePointSet set;
  set.Add(ranges);
  if (folding) set.FoldCase();
  if (is_negated) set.Negate();
  set.Normalize();
  return set;
}

std::optional<uint32_t> HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

std::optional<uint32_t> HexNumber(std::string_view digits) {
  uint32_t value = 0;
  for (const char c : digits) {
    const std::optional<uint32_t> digit = HexDigit(c);
    if (!digit) return std::nullopt;
    value = value * 16 + *digit;
    if (value > kLastCodePoint) return std::nullopt;
  }
  return digits.empty() ? std::nullopt : std::optional(value);
}

std::optional<uint32_t> ControlEscape(char c) {
  switch (c) {
    case 'a':
      return '\a';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'v':
      return '\v';
    default:
      return std::nullopt;
  }
}

bool IsOctal(char c) { return c >= '0' && c <= '7'; }

// \0, \012, \123; a single digit other than 0 would be a reference to a group, which RE2 does not
// have.
std::optional<uint32_t> OctalEscape(PatternCursor& cursor) {
  const std::string_view digits = cursor.rest();
  if (digits[0] != '0' && (digits.size() < 2 || !IsOctal(digits[1]))) return std::nullopt;
  uint32_t value = 0;
  size_t count = 0;
  for (; count < std::min<size_t>(3, digits.size()) && IsOctal(digits[count]); ++count) {
    value = value * 8 + static_cast<uint32_t>(digits[count] - '0');
  }
  cursor.set_at(cursor.at() + count);
  return value;
}

// \x7F, \x{10FFFF}; the cursor is after the x.
std::optional<uint32_t> HexEscape(PatternCursor& cursor) {
  if (cursor.Skip("{")) {
    const auto digits = cursor.SkipUntil("}");
    return digits ? HexNumber(*digits) : std::nullopt;
  }
  const auto value = HexNumber(cursor.rest().substr(0, 2));
  if (!value || cursor.rest().size() < 2) return std::nullopt;
  cursor.set_at(cursor.at() + 2);
  return value;
}

std::optional<uint32_t> EscapedCodePoint(PatternCursor& cursor) {
  if (cursor.is_at_end()) return std::nullopt;
  const char c = cursor.rest()[0];
  if (IsOctal(c)) return OctalEscape(cursor);
  const bool is_letter_or_digit =
      (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  if (static_cast<uint8_t>(c) >= 0x80) return std::nullopt;
  cursor.set_at(cursor.at() + 1);
  if (!is_letter_or_digit) return c;
  return c == 'x' ? HexEscape(cursor) : ControlEscape(c);
}

// A general category, a script or "Any".
std::optional<CodePointSet> UnicodeClass(std::string_view name) {
  CodePointSet set;
  if (name == "Any") {
    set.Add(kEverything);
    return set;
  }
  if (name == "Cs") return set;  // surrogates are not in UTF-8
  bool is_known = false;
  const auto add = [&](std::span<const CodePointRange> ranges) {
    is_known = is_known || !ranges.empty();
    set.Add(ranges);
  };
  add(ScriptRanges(name));
  add(CategoryRanges(name));
  if (name.size() == 1) {
    for (const char second : std::string_view("cdefiklmnopstu")) {
      const char both[] = {name[0], second};
      add(CategoryRanges({both, 2}));
    }
  }
  return is_known ? std::optional(std::move(set)) : std::nullopt;
}

// \pN, \PN, \p{Name}, \P{Name}, \p{^Name}; the cursor is at the backslash.
Result<CodePointSet> ParseUnicodeClass(PatternCursor& cursor, bool folding) {
  const size_t begin = cursor.at();
  bool is_negated = cursor.rest()[1] == 'P';
  cursor.set_at(begin + 2);
  std::string_view name;
  if (cursor.Skip("{")) {
    if (cursor.Skip("^")) is_negated = !is_negated;
    const auto inside = cursor.SkipUntil("}");
    if (!inside) return cursor.ErrorAt(begin, "missing '}}' for '\\p{{'");
    name = *inside;
  } else {
    const size_t letter = cursor.at();
    if (!cursor.is_at_end()) TENON_RETURN_IF_ERROR(cursor.NextCodePoint());
    name = cursor.From(letter);
  }
  const std::optional<CodePointSet> set = UnicodeClass(name);
  if (!set) {
    return cursor.ErrorAt(begin, "no category or script of Unicode '{}'", name.substr(0, kExcerpt));
  }
  return MakeClass(set->ranges(), is_negated, folding);
}

// \d, \pN, [:alpha:] and so on, which may be inside brackets and, except for the last, outside too.
Result<std::optional<CodePointSet>> ParseNamedClass(PatternCursor& cursor, bool folding) {
  const std::string_view rest = cursor.rest();
  if (rest.size() < 2 || rest[0] != '\\') return std::nullopt;
  if (rest[1] == 'p' || rest[1] == 'P') return ParseUnicodeClass(cursor, folding);
  const bool is_negated = rest[1] >= 'A' && rest[1] <= 'Z';
  const char name = is_negated ? static_cast<char>(rest[1] - 'A' + 'a') : rest[1];
  const NamedClass* perl = FindClass(kPerlClasses, {&name, 1});
  if (perl == nullptr) return std::nullopt;
  cursor.set_at(cursor.at() + 2);
  return MakeClass(perl->ranges, is_negated, folding);
}

// [:alpha:] or [:^alpha:], inside brackets.
Result<std::optional<CodePointSet>> ParsePosixClass(PatternCursor& cursor, bool folding) {
  const size_t begin = cursor.at();
  if (!cursor.Skip("[:")) return std::nullopt;
  const bool is_negated = cursor.Skip("^");
  const auto name = cursor.SkipUntil(":]");
  if (!name) {  // not a class: a bracket among the other characters
    cursor.set_at(begin);
    return std::nullopt;
  }
  const NamedClass* known = FindClass(kPosixClasses, *name);
  if (known == nullptr) {
    return cursor.ErrorAt(begin, "no class '[:{}:]'", name->substr(0, kExcerpt));
  }
  return MakeClass(known->ranges, is_negated, folding);
}

Result<uint32_t> ParseMember(PatternCursor& cursor) {
  return cursor.rest()[0] == '\\' ? ParseEscape(cursor) : cursor.NextCodePoint();
}

// A code point, or a range of them.
Status ParseRange(PatternCursor& cursor, size_t bracket, CodePointSet& set) {
  const size_t begin = cursor.at();
  TENON_ASSIGN_OR_RETURN(const uint32_t first, ParseMember(cursor));
  uint32_t last = first;
  const std::string_view rest = cursor.rest();
  if (rest.size() >= 2 && rest[0] == '-' && rest[1] != ']') {
    cursor.Skip("-");
    TENON_ASSIGN_OR_RETURN(last, ParseMember(cursor));
  } else if (rest == "-") {
    return cursor.ErrorAt(bracket, "missing ']' for '['");
  }
  if (last < first) return cursor.ErrorAt(begin, "the range '{}' is empty", cursor.From(begin));
  set.Add(first, last);
  return OkStatus();
}

// [...]; the cursor is at the bracket.
Result<CodePointSet> ParseBrackets(PatternCursor& cursor, bool folding) {
  const size_t bracket = cursor.at();
  cursor.Skip("[");
  const bool is_negated = cursor.Skip("^");
  CodePointSet set;
  for (bool is_first = true; is_first || !cursor.Skip("]"); is_first = false) {
    if (cursor.is_at_end()) return cursor.ErrorAt(bracket, "missing ']' for '['");
    TENON_ASSIGN_OR_RETURN(std::optional<CodePointSet> part, ParsePosixClass(cursor, folding));
    if (!part) {
      TENON_ASSIGN_OR_RETURN(part, ParseNamedClass(cursor, folding));
    }
    if (part) {
      set.Add(part->ranges());
    } else {
      TENON_RETURN_IF_ERROR(ParseRange(cursor, bracket, set));
    }
  }
  return MakeClass(set.ranges(), is_negated, folding);
}

}  // namespace

bool PatternCursor::Skip(std::string_view text) {
  if (rest().substr(0, text.size()) != text) return false;
  at_ += text.size();
  return true;
}

std::optional<std::string_view> PatternCursor::SkipUntil(std::string_view end) {
  if (end == missing_) return std::nullopt;
  const size_t found = pattern_.find(end, at_);
  if (found == std::string_view::npos) {
    missing_ = end;
    return std::nullopt;
  }
  const std::string_view before = pattern_.substr(at_, found - at_);
  at_ = found + end.size();
  return before;
}

Result<uint32_t> PatternCursor::NextCodePoint() {
  const CodePoint next = DecodeUtf8(rest());
  if (next.value >= kInvalidByte) return ErrorAt(at_, "expected UTF-8");
  at_ += next.bytes;
  return next.value;
}

Error PatternCursor::Wrong(size_t at, std::string_view what) const {
  const bool is_long = pattern_.size() > kExcerpt;
  return InvalidArgument("pattern '{}{}': {} at byte {}", pattern_.substr(0, kExcerpt),
                         is_long ? "..." : "", what, at);
}

Result<uint32_t> ParseEscape(PatternCursor& cursor) {
  const size_t begin = cursor.at();
  cursor.Skip("\\");
  const std::optional<uint32_t> code_point = EscapedCodePoint(cursor);
  if (!code_point) return cursor.ErrorAt(begin, "no such escape");
  return *code_point;
}

Result<std::optional<CodePointSet>> ParseClass(PatternCursor& cursor, bool folding) {
  if (!cursor.is_at_end() && cursor.rest()[0] == '[') return ParseBrackets(cursor, folding);
  return ParseNamedClass(cursor, folding);
}

}  // namespace tenon
