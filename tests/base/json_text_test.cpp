#include "base/json_text.h"

#include <gtest/gtest.h>

#include <string>

namespace tenon {
namespace {

TEST(JsonTextTest, ObjectsAndArraysLoseTheirSpace) {
  const struct {
    const char* text;
    const char* compact;
  } kCases[] = {
      {"{}", "{}"},
      {" [ ] ", "[]"},
      {"{\n  \"a\" : [ 1 , -0.5e+3, 0 ],\r\n\t\"b\": {\"c\": null}\n}",
       R"({"a":[1,-0.5e+3,0],"b":{"c":null}})"},
      {R"(["two  spaces", "\"\\\/\b\f\n\r\t\u00e9"])",
       R"(["two  spaces","\"\\\/\b\f\n\r\t\u00e9"])"},
      {R"(["\uD83D\uDE00", "ä€", true,false])", R"(["\uD83D\uDE00","ä€",true,false])"},
  };
  for (const auto& [text, compact] : kCases) EXPECT_EQ(CompactJson(text), compact) << text;
}

TEST(JsonTextTest, EverythingElseIsNothing) {
  const std::string deep = std::string(65, '[') + std::string(65, ']');
  const std::string most = std::string(64, '[') + std::string(64, ']');
  EXPECT_EQ(CompactJson(most), most);
  EXPECT_EQ(CompactJson(deep), std::nullopt);
  for (const char* const text : {"",
                                 " ",
                                 "1",
                                 "\"a\"",
                                 "null",
                                 "{",
                                 "[",
                                 "]",
                                 "[1",
                                 "[1,]",
                                 "[,1]",
                                 "[1 2]",
                                 "{\"a\"}",
                                 "{\"a\":}",
                                 "{\"a\":1,}",
                                 "{a:1}",
                                 "{1:1}",
                                 "[01]",
                                 "[1.]",
                                 "[.5]",
                                 "[1e]",
                                 "[+1]",
                                 "[-]",
                                 "[nul]",
                                 "[NaN]",
                                 "['a']",
                                 "[\"a]",
                                 "[\"\\x\"]",
                                 "[\"\\u12g4\"]",
                                 "[\"\\uD83D\"]",
                                 "[\"\\uDE00\"]",
                                 "[\"\\uD83D\\u0041\"]",
                                 "[\"\xff\"]",
                                 "[\"a\nb\"]",
                                 "[] []",
                                 "{}x",
                                 "[1]]",
                                 "{\"a\" 1}",
                                 "[\"\\"}) {
    EXPECT_EQ(CompactJson(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace tenon
