// Compiles the pattern to the program in one pass. An expression becomes a run of instructions that
// is entered at its first and left after its last, with relative jumps, so that a repeated one can
// be copied. Before a group and each of its alternatives an instruction is reserved for a later '*'
// or '|'.
#include <algorithm>
#include <map>
#include <span>

#include "ops/text/regex.h"
#include "ops/text/regex_cursor.h"

namespace tenon {
namespace {

using Instruction = RegexInstruction;
using Op = Instruction::Op;

// With more, the time for one code point would be too long.
constexpr size_t kMostInstructions = size_t{1} << 18;
constexpr size_t kMostRanges = size_t{1} << 20;  // of all classes together
constexpr size_t kMostDepth = 1000;              // of groups
constexpr int64_t kMostRepeats = 1000;           // of repetitions in each other, their product

// The code points that become `folded` if case is ignored.
std::span<const CaseVariant> VariantsOf(uint32_t folded) {
  const std::span<const CaseVariant> all = CaseVariants();
  const auto before = [](const CaseVariant& a, const CaseVariant& b) {
    return a.folded < b.folded;
  };
  const auto found = std::equal_range(all.begin(), all.end(), CaseVariant{folded}, before);
  return {found.first, found.second};
}

struct Flags {
  bool folds_case = false;     // i
  bool has_lines = false;      // m
  bool dot_takes_all = false;  // s
};

// The state of reading between two parentheses.
struct Group {
  size_t position = 0;       // of its parenthesis in the pattern
  size_t begin = 0;          // its first instruction, free for a repetition
  size_t branch = 0;         // the free instruction of the present alternative
  Flags outer;               // valid again after it
  std::vector<size_t> ends;  // of alternatives: jumps to the group's end
  // The last expression of this alternative, if there is one that can be repeated.
  std::optional<size_t> last;
  bool last_is_group = false;     // and begins with a free instruction
  bool last_is_repeated = false;  // by what stands just before
  int64_t last_repeats = 1;       // the most that repetitions inside of it multiply to
  int64_t repeats = 1;            // the same of all in the group
};

// {2}, {2,}, {2,5} and the shorter forms.
struct Repetition {
  int64_t least = 0;
  std::optional<int64_t> most;
};

class RegexCompiler {
 public:
  // Fills `program` and `classes`.
  RegexCompiler(std::string_view pattern, std::vector<Instruction>& program,
                std::vector<CodePointSet>& classes)
      : cursor_(pattern), program_(program), classes_(classes) {}

  Status Compile() {
    TENON_RETURN_IF_ERROR(OpenGroup(0, flags_));
    while (!cursor_.is_at_end()) TENON_RETURN_IF_ERROR(ParseNext());
    if (groups_.size() > 1) {
      return cursor_.ErrorAt(groups_.back().position, "missing ')' for '('");
    }
    CloseAlternatives();
    return Emit({Op::kMatch});
  }

 private:
  Group& group() { return groups_.back(); }

  Status CheckSize(size_t added) const {
    if (program_.size() + added <= kMostInstructions) return OkStatus();
    return cursor_.ErrorAt(cursor_.at(), "the pattern is too large: more than {} instructions",
                           kMostInstructions);
  }

  Status Emit(const Instruction& instruction) {
    TENON_RETURN_IF_ERROR(CheckSize(1));
    program_.push_back(instruction);
    return OkStatus();
  }

  // An expression of one instruction.
  Status EmitSingle(const Instruction& instruction) {
    group().last = program_.size();
    group().last_is_group = group().last_is_repeated = false;
    group().last_repeats = 1;
    return Emit(instruction);
  }

  static int32_t Distance(size_t from, size_t to) {
    return static_cast<int32_t>(static_cast<int64_t>(to) - static_cast<int64_t>(from));
  }

  Status ParseNext() {
    const size_t at = cursor_.at();
    const bool was_repeated = group().last_is_repeated;
    group().last_is_repeated = false;
    const char c = cursor_.rest()[0];
    if (c == '(') return ParseOpening();
    if (c == '|' || c == ')' || c == '.' || c == '^' || c == '$') {
      cursor_.set_at(at + 1);
      return ParseSign(c, at);
    }
    TENON_ASSIGN_OR_RETURN(const auto repetition, ParseRepetition());
    if (repetition) return ParseRepeated(*repetition, at, was_repeated);
    if (cursor_.Skip("\\Q")) return ParseQuoted();
    if (c == '\\') {
      TENON_ASSIGN_OR_RETURN(const bool is_done, ParseAssertion());
      if (is_done) return OkStatus();
    }
    return ParseCodePoints();
  }

  Status ParseSign(char sign, size_t at) {
    switch (sign) {
      case '|':
        return NextAlternative();
      case ')':
        return CloseGroup(at);
      case '.':
        return EmitClass(flags_.dot_takes_all ? "(?s)." : ".", [&] {
          CodePointSet newline;
          if (!flags_.dot_takes_all) newline.Add('\n', '\n');
          newline.Negate();
          return newline;
        });
      case '^':
        return EmitSingle({Op::kAssert, flags_.has_lines ? kLineBegins : kTextBegins});
      default:
        return EmitSingle({Op::kAssert, flags_.has_lines ? kLineEnds : kTextEnds});
    }
  }

  // ---- groups ---------------------------------------------------------------------------------

  Status OpenGroup(size_t position, const Flags& outer) {
    if (groups_.size() > kMostDepth) {
      return cursor_.ErrorAt(position, "more than {} groups in each other", kMostDepth);
    }
    Group opened;
    opened.position = position;
    opened.outer = outer;
    opened.begin = program_.size();
    opened.branch = opened.begin + 1;
    groups_.push_back(std::move(opened));
    TENON_RETURN_IF_ERROR(Emit({}));
    return Emit({});
  }

  Status NextAlternative() {
    group().ends.push_back(program_.size());
    TENON_RETURN_IF_ERROR(Emit({Op::kJump}));
    const size_t next = program_.size();
    program_[group().branch] = {Op::kSplit, 1, Distance(group().branch, next)};
    group().branch = next;
    group().last.reset();
    return Emit({});
  }

  void CloseAlternatives() {
    for (const size_t end : group().ends) program_[end].x = Distance(end, program_.size());
  }

  Status CloseGroup(size_t at) {
    if (groups_.size() == 1) return cursor_.ErrorAt(at, "')' without '('");
    CloseAlternatives();
    const Group closed = std::move(group());
    groups_.pop_back();
    flags_ = closed.outer;
    group().last = closed.begin;
    group().last_is_group = true;
    group().last_repeats = closed.repeats;
    group().repeats = std::max(group().repeats, closed.repeats);
    return OkStatus();
  }

  // (, (?:, (?P<name>, (?<name>, (?i: or (?i)
  Status ParseOpening() {
    const size_t at = cursor_.at();
    const Flags outer = flags_;
    cursor_.Skip("(");
    bool is_group = true;
    if (cursor_.Skip("?P<") || cursor_.Skip("?<")) {
      TENON_RETURN_IF_ERROR(ParseName(at));
    } else if (cursor_.Skip("?")) {
      TENON_ASSIGN_OR_RETURN(is_group, ParseFlags(at));
    }
    return is_group ? OpenGroup(at, outer) : OkStatus();
  }

  Status ParseName(size_t at) {
    const auto name = cursor_.SkipUntil(">");
    if (!name || name->empty() || !IsName(*name)) {
      return cursor_.ErrorAt(at, "expected a name of letters, digits and '_', and '>'");
    }
    return OkStatus();
  }

  static bool IsName(std::string_view name) {
    for (; !name.empty(); name.remove_prefix(DecodeUtf8(name).bytes)) {
      if (!IsNameLetter(DecodeUtf8(name).value)) return false;
    }
    return true;
  }

  // As in RE2: letters, marks, decimal digits, letter-like numbers and connectors.
  static bool IsNameLetter(uint32_t code_point) {
    static const auto* const letters = [] {
      auto* set = new CodePointSet();
      for (const char* category : {"Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Mn", "Mc", "Nd", "Pc"}) {
        set->Add(CategoryRanges(category));
      }
      set->Normalize();
      return set;
    }();
    return letters->Contains(code_point);
  }

  // Whether a group with these flags follows: they may also be for the rest of the present one.
  Result<bool> ParseFlags(size_t at) {
    bool value = true, has_flag = false;
    while (!cursor_.is_at_end()) {
      const char c = cursor_.rest()[0];
      cursor_.set_at(cursor_.at() + 1);
      if (c == ')' || c == ':') {
        if (!value && !has_flag) break;
        return c == ':';
      }
      if (c == '-' && value) {
        value = has_flag = false;
      } else if (!SetFlag(c, value)) {
        break;
      } else {
        has_flag = true;
      }
    }
    return cursor_.ErrorAt(at, "no such group: expected '(?:', '(?P<name>' or flags of 'imsU'");
  }

  bool SetFlag(char name, bool value) {
    switch (name) {
      case 'i':
        flags_.folds_case = value;
        return true;
      case 'm':
        flags_.has_lines = value;
        return true;
      case 's':
        flags_.dot_takes_all = value;
        return true;
      default:
        return name == 'U';  // which of several matches is found; here it is the longest
    }
  }

  // ---- repetitions ----------------------------------------------------------------------------

  Result<std::optional<Repetition>> ParseRepetition() {
    if (cursor_.Skip("*")) return Repetition{0, std::nullopt};
    if (cursor_.Skip("+")) return Repetition{1, std::nullopt};
    if (cursor_.Skip("?")) return Repetition{0, 1};
    const size_t at = cursor_.at();
    std::optional<Repetition> counts;
    if (cursor_.Skip("{")) counts = ParseCounts();
    if (!counts) {  // a brace like other characters
      cursor_.set_at(at);
      return std::nullopt;
    }
    const int64_t most = counts->most.value_or(counts->least);
    if (most < counts->least || most > kMostRepeats || counts->least > kMostRepeats) {
      return cursor_.ErrorAt(at, "expected at most {} repetitions, no fewer than the least, got {}",
                             kMostRepeats, cursor_.From(at));
    }
    return counts;
  }

  // The rest of {2}, {2,} or {2,5}.
  std::optional<Repetition> ParseCounts() {
    Repetition counts;
    const std::optional<int64_t> least = ParseNumber();
    if (!least) return std::nullopt;
    counts.least = *least;
    if (!cursor_.Skip(",")) {
      counts.most = least;
    } else if (!cursor_.rest().empty() && cursor_.rest()[0] != '}') {
      counts.most = ParseNumber();
      if (!counts.most) return std::nullopt;
    }
    return cursor_.Skip("}") ? std::optional(counts) : std::nullopt;
  }

  // A number without leading zeros; one too large comes out as too large.
  std::optional<int64_t> ParseNumber() {
    const size_t begin = cursor_.at();
    int64_t value = 0;
    while (!cursor_.is_at_end() && cursor_.rest()[0] >= '0' && cursor_.rest()[0] <= '9') {
      value = std::min(value * 10 + (cursor_.rest()[0] - '0'), kMostRepeats + 1);
      cursor_.set_at(cursor_.at() + 1);
    }
    const std::string_view digits = cursor_.From(begin);
    if (digits.empty() || (digits.size() > 1 && digits[0] == '0')) return std::nullopt;
    return value;
  }

  Status ParseRepeated(const Repetition& repetition, size_t at, bool was_repeated) {
    if (was_repeated) {
      return cursor_.ErrorAt(at, "a repetition of a repetition, which needs a group");
    }
    if (!group().last) return cursor_.ErrorAt(at, "nothing to repeat");
    cursor_.Skip("?");  // the shortest first: which match is found, not whether there is one
    const bool is_counted = cursor_.From(at)[0] == '{';
    if (is_counted) {
      const int64_t times = std::max<int64_t>(1, repetition.most.value_or(repetition.least));
      group().last_repeats *= times;
      if (group().last_repeats > kMostRepeats) {
        return cursor_.ErrorAt(at, "expected at most {} repetitions in each other", kMostRepeats);
      }
      group().repeats = std::max(group().repeats, group().last_repeats);
    }
    TENON_RETURN_IF_ERROR(Repeat(repetition));
    group().last_is_group = false;
    group().last_is_repeated = true;
    return OkStatus();
  }

  Status Repeat(const Repetition& repetition) {
    const size_t begin = *group().last;
    if (!group().last_is_group) {
      TENON_RETURN_IF_ERROR(CheckSize(1));
      program_.insert(program_.begin() + static_cast<int64_t>(begin), Instruction{});
    }
    if (repetition.most == 0) {
      program_.resize(begin);
      return Emit({});
    }
    const size_t length = program_.size() - begin;
    const auto copies =
        static_cast<size_t>(repetition.most.value_or(std::max<int64_t>(repetition.least, 1)));
    TENON_RETURN_IF_ERROR(CheckSize((copies - 1) * length + 1));
    program_.reserve(program_.size() + (copies - 1) * length + 1);
    for (size_t i = 0; i < (copies - 1) * length; ++i) program_.push_back(program_[begin + i]);
    size_t last = begin + (copies - 1) * length;
    if (!repetition.most) {
      program_.push_back({Op::kSplit, Distance(program_.size(), last), 1});
    }
    for (size_t i = static_cast<size_t>(repetition.least); i < copies; ++i) {
      const size_t optional = begin + i * length;
      program_[optional] = {Op::kSplit, 1, Distance(optional, program_.size())};
    }
    return OkStatus();
  }

  // ---- what takes code points, and assertions -------------------------------------------------

  Status ParseQuoted() {
    while (!cursor_.is_at_end() && !cursor_.Skip("\\E")) {
      TENON_ASSIGN_OR_RETURN(const uint32_t code_point, cursor_.NextCodePoint());
      TENON_RETURN_IF_ERROR(EmitCodePoint(code_point));
    }
    return OkStatus();
  }

  Result<bool> ParseAssertion() {
    struct Named {
      std::string_view text;
      int32_t assertion;
    };
    constexpr Named kAll[] = {{"\\A", kTextBegins},
                              {"\\z", kTextEnds},
                              {"\\b", kAtWordBoundary},
                              {"\\B", kNotAtWordBoundary}};
    for (const Named& named : kAll) {
      if (!cursor_.Skip(named.text)) continue;
      TENON_RETURN_IF_ERROR(EmitSingle({Op::kAssert, named.assertion}));
      return true;
    }
    if (cursor_.rest().substr(0, 2) == "\\C") {
      return cursor_.ErrorAt(cursor_.at(), "\\C, a single byte, is not to be had of UTF-8");
    }
    return false;
  }

  Status ParseCodePoints() {
    const size_t begin = cursor_.at();
    TENON_ASSIGN_OR_RETURN(std::optional<CodePointSet> set, ParseClass(cursor_, flags_.folds_case));
    if (set) {
      const std::string key = Format("{}{}", flags_.folds_case ? 'i' : '-', cursor_.From(begin));
      return EmitClass(key, [&] { return *std::move(set); });
    }
    if (cursor_.rest()[0] == '\\') {
      TENON_ASSIGN_OR_RETURN(const uint32_t code_point, ParseEscape(cursor_));
      return EmitCodePoint(code_point);
    }
    TENON_ASSIGN_OR_RETURN(const uint32_t code_point, cursor_.NextCodePoint());
    return EmitCodePoint(code_point);
  }

  Status EmitCodePoint(uint32_t code_point) {
    if (flags_.folds_case) {
      const uint32_t folded = FoldCase(code_point);
      const auto variants = VariantsOf(folded);
      if (variants.size() > 1) {
        return EmitClass(Format("={}", folded), [&] {
          CodePointSet set;
          for (const CaseVariant& variant : variants) {
            set.Add(variant.code_point, variant.code_point);
          }
          set.Normalize();
          return set;
        });
      }
    }
    return EmitSingle({Op::kCodePoint, static_cast<int32_t>(code_point)});
  }

  // A class is made once however often it occurs in the pattern; `key` identifies it.
  template <class Make>
  Status EmitClass(const std::string& key, const Make& make) {
    const auto [entry, is_new] = class_of_.emplace(key, classes_.size());
    if (is_new) {
      classes_.push_back(make());
      ranges_ += classes_.back().ranges().size();
      if (ranges_ > kMostRanges) {
        return cursor_.ErrorAt(cursor_.at(), "the pattern is too large: classes of over {} ranges",
                               kMostRanges);
      }
    }
    return EmitSingle({Op::kClass, static_cast<int32_t>(entry->second)});
  }

  PatternCursor cursor_;
  std::vector<Instruction>& program_;
  std::vector<CodePointSet>& classes_;
  Flags flags_;
  std::vector<Group> groups_;
  std::map<std::string, size_t> class_of_;
  size_t ranges_ = 0;
};

}  // namespace

Result<Regex> Regex::Compile(std::string_view pattern) {
  Regex regex;
  TENON_RETURN_IF_ERROR(RegexCompiler(pattern, regex.program_, regex.classes_).Compile());
  return regex;
}

}  // namespace tenon
