// A position in the pattern of a regular expression, and the meaning of single characters and
// classes there.
#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "base/status.h"
#include "ops/text/code_point_set.h"

namespace tenon {

class PatternCursor {
 public:
  explicit PatternCursor(std::string_view pattern) : pattern_(pattern) {}

  size_t at() const { return at_; }
  void set_at(size_t at) { at_ = at; }
  bool is_at_end() const { return at_ == pattern_.size(); }
  std::string_view rest() const { return pattern_.substr(at_); }
  std::string_view From(size_t begin) const { return pattern_.substr(begin, at_ - begin); }
  // Steps over `text` if that comes next.
  bool Skip(std::string_view text);
  // Returns the text up to, not including, the literal `end`, and steps over both; nothing if `end`
  // does not occur.
  std::optional<std::string_view> SkipUntil(std::string_view end);
  // Error: invalid UTF-8.
  Result<uint32_t> NextCodePoint();

  // "pattern 'a(b': missing ')' for '(' at byte 1"
  template <class... Args>
  Error ErrorAt(size_t at, fmt::format_string<Args...> format, Args&&... args) const {
    return Wrong(at, FormatV(format, fmt::make_format_args(args...)));
  }

 private:
  Error Wrong(size_t at, std::string_view what) const;

  std::string_view pattern_;
  size_t at_ = 0;
  std::string_view missing_;  // what SkipUntil did not find, and need not search again
};

// The code point of an escape such as \n, \. or \x{263A}; the cursor is at its backslash.
Result<uint32_t> ParseEscape(PatternCursor& cursor);

// A class: [...], \d, \pN, \p{Greek} and so on. Nothing if the next is not a class. A `folding` one
// ignores case. Normalized.
Result<std::optional<CodePointSet>> ParseClass(PatternCursor& cursor, bool folding);

}  // namespace tenon
