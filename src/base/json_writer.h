// Writes JSON text (RFC 8259), piece by piece.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace tenon {

// Members of an object are a Key and a value each. The caller nests correctly; commas are written
// here. Not thread-safe.
//
//   JsonWriter json;
//   json.BeginObject();
//   json.Key("shape").BeginArray();
//   json.Integer(1);
//   json.Text("batch");
//   json.EndArray();
//   json.EndObject();
//   json.text();  // {"shape":[1,"batch"]}
class JsonWriter {
 public:
  void BeginObject() { Open('{'); }
  void EndObject() { Close('}'); }
  void BeginArray() { Open('['); }
  void EndArray() { Close(']'); }

  JsonWriter& Key(std::string_view key);

  // Any bytes; those that are not UTF-8 become U+FFFD each.
  void Text(std::string_view value);
  template <std::integral T>
  void Integer(T value) {
    Literal(std::to_string(value));
  }
  // The shortest text that reads back as the same number; null for NaN and infinities.
  void Number(double value);
  void Bool(bool value) { Literal(value ? "true" : "false"); }
  void Null() { Literal("null"); }
  // A value that is already JSON text.
  void Json(std::string_view value) { Literal(value); }

  const std::string& text() const { return text_; }

 private:
  void Open(char bracket);
  void Close(char bracket);
  void Separate();
  void Literal(std::string_view literal);
  void Quote(std::string_view value);

  std::string text_;
  bool needs_comma_ = false;
};

}  // namespace tenon
