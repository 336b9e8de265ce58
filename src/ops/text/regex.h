// Regular expressions in the syntax of RE2 (https://github.com/google/re2/wiki/Syntax), with which
// RegexFullMatch and Tokenizer are defined. Texts are UTF-8; a byte that is none matches nothing.
// Matching takes time in proportion to the text and the pattern, whatever they are.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ops/text/code_point_set.h"

namespace tenon {

// What a pattern becomes: a machine that is in several of its states at once. Operands of jumps are
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

// Bits of RegexInstruction::x: what can be asserted of a place in the text.
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
  // 2^18 instructions; the text names the place. \C, a single byte, is refused: texts are UTF-8.
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

// Matches texts with a pattern, which must outlive it. Holds the memory that this needs, so each
// thread has its own.
class RegexMatcher {
 public:
  explicit RegexMatcher(const Regex& regex);

  // Whether the whole text matches.
  bool FullMatch(std::string_view text);
  // The first match in `text` that begins at `from` or later; of several the longest. What the
  // pattern asserts of line and word ends sees the text before `from` too.
  std::optional<RegexMatch> FindLongest(std::string_view text, size_t from = 0);

 private:
  // A state that takes a code point, and where its match began.
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
  std::optional<size_t> matched_;  // where the match of this round began
};

}  // namespace tenon
