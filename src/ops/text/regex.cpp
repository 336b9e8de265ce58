#include "ops/text/regex.h"

#include <algorithm>

namespace tenon {
namespace {

using Op = RegexInstruction::Op;

bool IsWordByte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

// The assertions that hold before byte `at` of the text.
int32_t AssertionsAt(std::string_view text, size_t at) {
  int32_t held = 0;
  if (at == 0) held |= kTextBegins | kLineBegins;
  if (at == text.size()) held |= kTextEnds | kLineEnds;
  if (at > 0 && text[at - 1] == '\n') held |= kLineBegins;
  if (at < text.size() && text[at] == '\n') held |= kLineEnds;
  const bool before = at > 0 && IsWordByte(text[at - 1]);
  const bool after = at < text.size() && IsWordByte(text[at]);
  return held | (before != after ? kAtWordBoundary : kNotAtWordBoundary);
}

}  // namespace

RegexMatcher::RegexMatcher(const Regex& regex) : regex_(regex), entered_(regex.program_.size()) {}

bool RegexMatcher::FullMatch(std::string_view text) { return Run(text, 0, true).has_value(); }

std::optional<RegexMatch> RegexMatcher::FindLongest(std::string_view text, size_t from) {
  return Run(text, from, false);
}

// Threads are in the order of their beginnings: those of the last code point are continued in this
// order, and the one that begins here is the last. So the first to reach a state began first.
std::optional<RegexMatch> RegexMatcher::Run(std::string_view text, size_t from, bool is_full) {
  std::optional<RegexMatch> found;
  CodePoint taken;
  threads_.clear();
  for (size_t at = from;; at += taken.bytes) {
    if (++round_ == 0) {  // after 2^32 code points: forget the earlier rounds
      std::fill(entered_.begin(), entered_.end(), 0);
      round_ = 1;
    }
    matched_.reset();
    const int32_t assertions = AssertionsAt(text, at);
    next_.clear();
    for (const Thread& thread : threads_) {
      if (!Takes(regex_.program_[thread.state], taken.value)) continue;
      Enter(thread.state + 1, thread.begin, assertions, next_);
    }
    if (is_full ? at == from : !found) Enter(0, at, assertions, next_);
    std::swap(threads_, next_);
    if (matched_ && (!is_full || at == text.size())) {
      if (!found || *matched_ <= found->begin) found = {*matched_, at};
      const auto later = [&](const Thread& thread) { return thread.begin > found->begin; };
      threads_.erase(std::find_if(threads_.begin(), threads_.end(), later), threads_.end());
    }
    if (at == text.size() || (threads_.empty() && (is_full || found))) return found;
    taken = DecodeUtf8(text.substr(at));
  }
}

// Adds the states that are reached from `state` without consuming a code point.
void RegexMatcher::Enter(uint32_t state, size_t begin, int32_t assertions,
                         std::vector<Thread>& threads) {
  stack_.push_back(state);
  while (!stack_.empty()) {
    const uint32_t at = stack_.back();
    stack_.pop_back();
    if (entered_[at] == round_) continue;
    entered_[at] = round_;
    const RegexInstruction& instruction = regex_.program_[at];
    switch (instruction.op) {
      case Op::kNothing:
        stack_.push_back(at + 1);
        break;
      case Op::kJump:
        stack_.push_back(at + static_cast<uint32_t>(instruction.x));
        break;
      case Op::kSplit:
        stack_.push_back(at + static_cast<uint32_t>(instruction.y));
        stack_.push_back(at + static_cast<uint32_t>(instruction.x));
        break;
      case Op::kAssert:
        if ((assertions & instruction.x) != 0) stack_.push_back(at + 1);
        break;
      case Op::kCodePoint:
      case Op::kClass:
        threads.push_back({at, begin});
        break;
      case Op::kMatch:
        matched_ = begin;
        break;
    }
  }
}

bool RegexMatcher::Takes(const RegexInstruction& instruction, uint32_t code_point) const {
  if (instruction.op == Op::kCodePoint) return static_cast<uint32_t>(instruction.x) == code_point;
  return regex_.classes_[static_cast<size_t>(instruction.x)].Contains(code_point);
}

}  // namespace tenon
