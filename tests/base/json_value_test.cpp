#include "base/json_value.h"

#include <gtest/gtest.h>

#include <string>

namespace tenon {
namespace {

TEST(JsonValueTest, KeepsKindsAndOrder) {
  const auto root = ParseJson(R"({"b": [1, -2.5e1, true, false, null], "a": {}, "b": 3})");
  ASSERT_TRUE(root);
  ASSERT_EQ(root->members.size(), 3u);
  EXPECT_EQ(root->members[1].name, "a");
  EXPECT_EQ(root->members[1].value.kind, JsonValue::Kind::kObject);
  const JsonValue* const list = root->Find("b");
  ASSERT_EQ(list->kind, JsonValue::Kind::kArray) << "the first of a name counts";
  EXPECT_EQ(list->elements[1].number, -25);
  EXPECT_TRUE(list->elements[2].is_true);
  EXPECT_EQ(list->elements[3].kind, JsonValue::Kind::kBool);
  EXPECT_FALSE(list->elements[3].is_true);
  EXPECT_EQ(list->elements[4].kind, JsonValue::Kind::kNull);
  EXPECT_EQ(root->Find("c"), nullptr);
  EXPECT_FALSE(ParseJson("{"));
}

TEST(JsonValueTest, DecodesTheEscapesOfTextsAndNames) {
  const struct {
    std::string json, text;
  } kCases[] = {
      {R"("")", ""},
      {R"("plain, ä")", "plain, ä"},
      {R"("C:\\models\/a.onnx")", "C:\\models/a.onnx"},
      {R"("\"\b\f\n\r\t")", "\"\b\f\n\r\t"},
      {R"("\\n")", "\\n"},
      {R"("\u0041\u00e9\u20AC\ud83d\uDE00")", "A\u00e9\u20ac\U0001f600"},
      {R"("\ud7ff\ue000\uffff")", "\ud7ff\ue000\uffff"},
      {R"("a\u0000b")", std::string("a\0b", 3)},
  };
  for (const auto& [json, text] : kCases) {
    const auto list = ParseJson("[" + json + "]");
    ASSERT_TRUE(list) << json;
    EXPECT_EQ(list->elements[0].text, text) << json;
    const auto object = ParseJson("{" + json + ":1}");
    ASSERT_TRUE(object) << json;
    EXPECT_NE(object->Find(text), nullptr) << json;
  }
}

}  // namespace
}  // namespace tenon
