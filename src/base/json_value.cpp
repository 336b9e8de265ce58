#include "base/json_value.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>

#include "base/json_text.h"
#include "base/parse_double.h"
#include "base/utf8.h"

namespace tenon {
namespace {

// Reads text that is known to be valid and to have no space between its parts.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  JsonValue Read() {
    JsonValue value;
    switch (rest_.front()) {
      case '{':
        value.kind = JsonValue::Kind::kObject;
        ReadList('}', [&] {
          std::string name = ReadString();
          rest_.remove_prefix(1);  // the colon
          value.members.push_back({std::move(name), Read()});
        });
        break;
      case '[':
        value.kind = JsonValue::Kind::kArray;
        ReadList(']', [&] { value.elements.push_back(Read()); });
        break;
      case '"':
        value.kind = JsonValue::Kind::kString;
        value.text = ReadString();
        break;
      case 't':
      case 'f':
        value.kind = JsonValue::Kind::kBool;
        value.is_true = Word() == "true";
        break;
      case 'n':
        (void)Word();
        break;
      default:
        value.kind = JsonValue::Kind::kNumber;
        (void)ParseDouble(Word(), &value.number);
    }
    return value;
  }

 private:
  template <class ReadElement>
  void ReadList(char end, ReadElement read) {
    rest_.remove_prefix(1);
    while (rest_.front() != end) {
      read();
      if (rest_.front() == ',') rest_.remove_prefix(1);
    }
    rest_.remove_prefix(1);
  }

  std::string ReadString() {
    std::string text;
    rest_.remove_prefix(1);
    while (rest_.front() != '"') {
      const size_t plain = rest_.find_first_of("\"\\");
      text += rest_.substr(0, plain);
      rest_.remove_prefix(plain);
      if (rest_.front() == '\\') ReadEscape(text);
    }
    rest_.remove_prefix(1);
    return text;
  }

  void ReadEscape(std::string& text) {
    constexpr std::string_view kNames = "bfnrt";
    constexpr std::string_view kMeant = "\b\f\n\r\t";
    const char name = rest_[1];
    if (name == 'u') {
      uint32_t code_point = ReadCodeUnit();
      if (code_point >= 0xD800 && code_point < 0xE000) {  // the first half of a pair
        code_point = 0x10000 + ((code_point - 0xD800) << 10) + (ReadCodeUnit() - 0xDC00);
      }
      AppendUtf8(code_point, text);
      return;
    }
    const size_t known = kNames.find(name);
    text += known == kNames.npos ? name : kMeant[known];
    rest_.remove_prefix(2);
  }

  // "\uXXXX"
  uint32_t ReadCodeUnit() {
    uint32_t unit = 0;
    (void)std::from_chars(rest_.data() + 2, rest_.data() + 6, unit, 16);
    rest_.remove_prefix(6);
    return unit;
  }

  std::string_view Word() {
    const size_t end = std::min(rest_.find_first_of(",]}"), rest_.size());
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return word;
  }

  std::string_view rest_;
};

}  // namespace

const JsonValue* JsonValue::Find(std::string_view name) const {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const auto& member) { return member.name == name; });
  return found == members.end() ? nullptr : &found->value;
}

std::optional<JsonValue> ParseJson(std::string_view text) {
  const std::optional<std::string> compact = CompactJson(text);
  if (!compact) return std::nullopt;
  return Reader(*compact).Read();
}

}  // namespace tenon
