#include "base/json_writer.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace tenon {
namespace {

TEST(JsonWriterTest, NestsWithCommasBetweenSiblings) {
  JsonWriter json;
  json.BeginObject();
  json.Key("empty").BeginObject();
  json.EndObject();
  json.Key("list").BeginArray();
  json.Integer(1);
  json.BeginArray();
  json.EndArray();
  json.Text("x");
  json.BeginObject();
  json.Key("a").Null();
  json.Key("b").Bool(true);
  json.EndObject();
  json.EndArray();
  json.Key("last").Bool(false);
  json.EndObject();
  EXPECT_EQ(json.text(), R"({"empty":{},"list":[1,[],"x",{"a":null,"b":true}],"last":false})");
}

TEST(JsonWriterTest, TextIsEscapedAndAlwaysUtf8) {
  const struct {
    std::string_view value;
    std::string_view written;
  } kCases[] = {
      {"", R"("")"},
      {"a\"b\\c/", R"("a\"b\\c/")"},
      {std::string_view("\0\n\x1f ", 4), R"("\u0000\u000a\u001f ")"},
      {"\x7f\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\"\x7f\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
      {"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf", "\"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\""},
      {"\x80", R"("\ufffd")"},                                // continuation alone
      {"\xc0\x80", R"("\ufffd\ufffd")"},                      // overlong
      {"\xe0\x9f\xbf", R"("\ufffd\ufffd\ufffd")"},            // overlong
      {"\xed\xa0\x80", R"("\ufffd\ufffd\ufffd")"},            // surrogate
      {"\xf4\x90\x80\x80", R"("\ufffd\ufffd\ufffd\ufffd")"},  // beyond U+10FFFF
      {"\xff", R"("\ufffd")"},
      {"\xe2\x82", R"("\ufffd\ufffd")"},  // cut off
      {"\xe2\x82z", R"("\ufffd\ufffdz")"},
  };
  for (const auto& [value, written] : kCases) {
    JsonWriter json;
    json.Text(value);
    EXPECT_EQ(json.text(), written);
    JsonWriter keyed;
    keyed.BeginObject();
    keyed.Key(value).Null();
    keyed.EndObject();
    EXPECT_EQ(keyed.text(), std::string("{").append(written).append(":null}"));
  }
}

TEST(JsonWriterTest, NumbersReadBackAsTheyWere) {
  JsonWriter json;
  json.BeginArray();
  json.Integer(std::numeric_limits<int64_t>::min());
  json.Integer(std::numeric_limits<uint64_t>::max());
  json.Number(0.1);
  json.Number(-0.0);
  json.Number(1e300);
  json.Number(std::numeric_limits<double>::infinity());
  json.Number(std::numeric_limits<double>::quiet_NaN());
  json.EndArray();
  EXPECT_EQ(json.text(), "[-9223372036854775808,18446744073709551615,0.1,-0,1e+300,null,null]");
}

}  // namespace
}  // namespace tenon
