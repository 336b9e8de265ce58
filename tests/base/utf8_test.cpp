#include "base/utf8.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(Utf8Test, DecodesWhatItEncodes) {
  for (uint32_t code_point = 0; code_point <= kLastCodePoint; ++code_point) {
    if (code_point >= 0xD800 && code_point <= 0xDFFF) continue;
    std::string text;
    AppendUtf8(code_point, text);
    const CodePoint decoded = DecodeUtf8(text + "\x80");
    ASSERT_EQ(decoded.value, code_point);
    ASSERT_EQ(decoded.bytes, text.size());
  }
}

TEST(Utf8Test, TakesAByteThatBeginsNoSequenceAlone) {
  const struct {
    std::string_view text, what;
  } kCases[] = {
      {"\x80", "a continuation"},
      {"\xC0\x80", "overlong"},
      {"\xC1\xBF", "overlong"},
      {"\xE0\x9F\xBF", "overlong"},
      {"\xF0\x8F\xBF\xBF", "overlong"},
      {"\xED\xA0\x80", "the first surrogate"},
      {"\xED\xBF\xBF", "the last"},
      {"\xF4\x90\x80\x80", "beyond U+10FFFF"},
      {"\xF5\x80\x80\x80", "further"},
      {"\xFF", "no lead"},
      {"\xE2\x82", "cut off"},
      {"\xF0\x9F\x98", "cut off"},
      {"\xE2\x82z", "another byte within"},
      {"\xC3\xC3", "another lead within"},
  };
  for (const auto& [text, what] : kCases) {
    const CodePoint decoded = DecodeUtf8(text);
    EXPECT_EQ(decoded.value, kInvalidByte + static_cast<uint8_t>(text[0])) << what;
    EXPECT_EQ(decoded.bytes, 1u) << what;
    std::string byte;
    AppendUtf8(decoded.value, byte);
    EXPECT_EQ(byte, text.substr(0, 1)) << what;
  }
}

}  // namespace
}  // namespace tenon
