// A JSON document as a tree, for small texts.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

// One value. Members keep their order; of several with one name the first counts. Texts and names
// are UTF-8, their escapes decoded; a text may so hold NUL.
struct JsonValue {
  enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject };
  struct Member;

  Kind kind = Kind::kNull;
  bool is_true = false;
  double number = 0;
  std::string text;
  std::vector<JsonValue> elements;
  std::vector<Member> members;

  // Null if this is not an object, or has no such member.
  const JsonValue* Find(std::string_view name) const;
};

struct JsonValue::Member {
  std::string name;
  JsonValue value;
};

// Nothing for text that CompactJson (base/json_text.h) refuses.
std::optional<JsonValue> ParseJson(std::string_view text);

}  // namespace tenon
