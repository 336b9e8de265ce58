#include "base/json_writer.h"

#include <cmath>

#include "base/text.h"
#include "base/utf8.h"

namespace tenon {

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
  Literal(Format("{}", value));  // std::to_chars would bring tables of 100 KB into a page's module
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
    const CodePoint next = DecodeUtf8(value);
    const char c = value.front();
    if (next.value >= kInvalidByte) {
      text_ += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      text_ += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      text_ += Format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      text_ += value.substr(0, next.bytes);
    }
    value.remove_prefix(next.bytes);
  }
  text_ += '"';
}

}  // namespace tenon
