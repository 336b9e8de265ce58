#include "base/json_text.h"

#include <cstdint>

#include "base/utf8.h"

namespace tenon {
namespace {

constexpr int kDeepest = 64;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Reads `in_` from the front. Each function returns false if the text is not what it reads.
class Compactor {
 public:
  explicit Compactor(std::string_view text) : in_(text) {}

  bool Document() {
    SkipSpace();
    const bool is_nest = !in_.empty() && (in_[0] == '{' || in_[0] == '[');
    return is_nest && Value(0) && in_.empty();
  }
  std::string TakeText() { return std::move(out_); }

 private:
  void SkipSpace() {
    const size_t space = in_.find_first_not_of(" \t\r\n");
    in_.remove_prefix(space == in_.npos ? in_.size() : space);
  }
  void Take(size_t bytes) {
    out_ += in_.substr(0, bytes);
    in_.remove_prefix(bytes);
  }
  bool Take(char c) {
    if (in_.empty() || in_[0] != c) return false;
    Take(size_t{1});
    return true;
  }
  bool TakeMark(char c) {
    SkipSpace();
    return Take(c);
  }

  // A value and the space after it.
  bool Value(int depth) {
    SkipSpace();
    if (in_.empty() || depth == kDeepest) return false;
    const bool is_value = in_[0] == '{'   ? Nest('}', true, depth)
                          : in_[0] == '[' ? Nest(']', false, depth)
                          : in_[0] == '"' ? String()
                                          : Name() || Number();
    SkipSpace();
    return is_value;
  }

  bool Nest(char end, bool has_keys, int depth) {
    Take(size_t{1});
    if (TakeMark(end)) return true;
    do {
      SkipSpace();
      if (has_keys && (in_.empty() || in_[0] != '"' || !String() || !TakeMark(':'))) return false;
      if (!Value(depth + 1)) return false;
    } while (Take(','));
    return Take(end);
  }

  bool Name() {
    for (const std::string_view name : {"true", "false", "null"}) {
      if (!in_.starts_with(name)) continue;
      Take(name.size());
      return true;
    }
    return false;
  }

  bool Digits() {
    size_t count = 0;
    while (count < in_.size() && IsDigit(in_[count])) ++count;
    Take(count);
    return count > 0;
  }

  bool Number() {
    (void)Take('-');
    if (!Take('0') && !Digits()) return false;
    if (Take('.') && !Digits()) return false;
    if (!Take('e') && !Take('E')) return true;
    if (!Take('+')) (void)Take('-');
    return Digits();
  }

  bool String() {
    Take(size_t{1});
    while (!in_.empty() && in_[0] != '"') {
      if (static_cast<unsigned char>(in_[0]) < 0x20) return false;
      if (in_[0] == '\\') {
        if (!Escape()) return false;
        continue;
      }
      const CodePoint next = DecodeUtf8(in_);
      if (next.value >= kInvalidByte) return false;
      Take(size_t{next.bytes});
    }
    return Take('"');
  }

  // A surrogate must be the first half of a pair.
  bool Escape() {
    if (in_.size() < 2) return false;
    if (in_[1] != 'u') {
      if (std::string_view("\"\\/bfnrt").find(in_[1]) == std::string_view::npos) return false;
      Take(size_t{2});
      return true;
    }
    const int32_t first = CodeUnit();
    if (first < 0 || (first >= 0xDC00 && first < 0xE000)) return false;
    if (first < 0xD800 || first >= 0xE000) return true;
    const int32_t second = CodeUnit();
    return second >= 0xDC00 && second < 0xE000;
  }

  // Of "\uXXXX"; -1 if there is none.
  int32_t CodeUnit() {
    if (in_.size() < 6 || !in_.starts_with("\\u")) return -1;
    int32_t unit = 0;
    for (const char c : in_.substr(2, 4)) {
      const char lower = static_cast<char>(c | 0x20);
      const bool is_letter = lower >= 'a' && lower <= 'f';
      if (!IsDigit(c) && !is_letter) return -1;
      unit = unit * 16 + (IsDigit(c) ? c - '0' : lower - 'a' + 10);
    }
    Take(size_t{6});
    return unit;
  }

  std::string_view in_;
  std::string out_;
};

}  // namespace

std::optional<std::string> CompactJson(std::string_view text) {
  Compactor compactor(text);
  if (!compactor.Document()) return std::nullopt;
  return compactor.TakeText();
}

}  // namespace tenon
