// Regular expressions in the syntax of RE2 (https://github.com/google/re2/wiki/Syntax), by which
// RegexFullMatch and Tokenizer are defined. Texts are UTF-8; an invalid byte matches nothing. The
// time of matching is proportional to the text and to the pattern.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ops/text/code_point_set.h"

namespace tenon {

// A compiled pattern: a machine that is in several of its states at once. Operands of jumps are
// relative to their own instruction.
struct RegexInstruction {
  enum class Op : uint8_t {
    kNothing,    // goes on
    kJump,       // to `x`
    kSplit,      // to `x` and to `y`
    kAssert,     // goes on where one of the assertions `x` holds
    kCodePoint,  // takes the code point `x`
    kClass,      // takes a code point of class `x`
    kMatch,
  };
  Op op = Op::kNothing;
  int32_t x = 0, y = 0;
};

// Bits of RegexInstruction::x: assertions about a position in the text.
enum RegexAssertion : int32_t {
  kTextBegins = 1,
  kTextEnds = 2,
  kLineBegins = 4,
  kLineEnds = 8,
  kAtWordBoundary = 16,
  kNotAtWordBoundary = 32,
};

// A compiled pattern. Immutable; may be used from several threads.
class Regex {
 public:
  // Errors: kInvalidArgument for a pattern that is not in RE2's syntax or that would need more than
  // 2^18 instructions; the text names the position. \C, a single byte, is refused: texts are UTF-8.
  static Result<Regex> Compile(std::string_view pattern);

 private:
  friend class RegexMatcher;
  std::vector<RegexInstruction> program_;
  std::vector<CodePointSet> classes_;
};

// Begins and ends of a match in bytes.
struct RegexMatch {
  size_t begin = 0, end = 0;
};

// Matches texts with a pattern, which must outlive it. It has the memory for matching, so each
// thread needs its own.
class RegexMatcher {
 public:
  explicit RegexMatcher(const Regex& regex);

  // Whether the whole text matches.
  bool FullMatch(std::string_view text);
  // The first match in `text` that begins at `from` or later; of several the longest. Assertions
  // about line and word ends also use the text before `from`.
  std::optional<RegexMatch> FindLongest(std::string_view text, size_t from = 0);

 private:
  // A state that consumes a code point, and the beginning of its match.
  struct Thread {
    uint32_t state = 0;
    size_t begin = 0;
  };

  std::optional<RegexMatch> Run(std::string_view text, size_t from, bool is_full);
  void Enter(uint32_t state, size_t begin, int32_t assertions, std::vector<Thread>& threads);
  bool Takes(const RegexInstruction& instruction, uint32_t code_point) const;

  const Regex& regex_;
  std::vector<Thread> threads_, next_;
  std::vector<uint32_t> stack_;
  std::vector<uint32_t> entered_;  // by state: the round in which it was entered last
  uint32_t round_ = 0;
  std::optional<size_t> matched_;  // the beginning of the match of this round
};

}  // namespace tenon
