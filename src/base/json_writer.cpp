#include "base/json_writer.h"

#include <charconv>
#include <cmath>

#include "base/text.h"

namespace tenon {
namespace {

// Length of the UTF-8 sequence at the start of `text`, 0 if there is no valid one: overlong forms,
// surrogates and what lies beyond U+10FFFF are none.
size_t Utf8Length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first < 0xC2   ? 0
                        : first < 0xE0 ? 2
                        : first < 0xF0 ? 3
                        : first < 0xF5 ? 4
                                       : 0;
  if (length == 0 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xF0 && byte(1) < 0x90);
  const bool surrogate = first == 0xED && byte(1) >= 0xA0;
  const bool beyond = first == 0xF4 && byte(1) >= 0x90;
  return overlong || surrogate || beyond ? 0 : length;
}

}  // namespace

JsonWriter& JsonWriter::Key(std::string_view key) {
  Separate();
  Quote(key);
  text_ += ':';
  needs_comma_ = false;
  return *this;
}

void JsonWriter::Text(std::string_view value) {
  Separate();
  Quote(value);
  needs_comma_ = true;
}

void JsonWriter::Number(double value) {
  if (!std::isfinite(value)) return Null();
  char digits[32];
  const std::to_chars_result end = std::to_chars(digits, digits + sizeof(digits), value);
  Literal({digits, end.ptr});
}

void JsonWriter::Open(char bracket) {
  Separate();
  text_ += bracket;
  needs_comma_ = false;
}

void JsonWriter::Close(char bracket) {
  text_ += bracket;
  needs_comma_ = true;
}

void JsonWriter::Separate() {
  if (needs_comma_) text_ += ',';
}

void JsonWriter::Literal(std::string_view literal) {
  Separate();
  text_ += literal;
  needs_comma_ = true;
}

void JsonWriter::Quote(std::string_view value) {
  text_ += '"';
  while (!value.empty()) {
    const size_t length = Utf8Length(value);
    const char c = value.front();
    if (length == 0) {
      text_ += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      text_ += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      text_ += Format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      text_ += value.substr(0, length);
    }
    value.remove_prefix(length == 0 ? 1 : length);
  }
  text_ += '"';
}

}  // namespace tenon
