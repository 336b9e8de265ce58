#include "base/utf8.h"

namespace tenon {
namespace {

// The bytes of a sequence that begins with `lead`, and the bits of the code point in `lead`; 0 for
// a byte that begins none.
uint32_t SequenceLength(uint8_t lead, uint32_t* bits) {
  if (lead < 0x80) return *bits = lead, 1;
  if (lead >= 0xC2 && lead <= 0xDF) return *bits = lead & 0x1F, 2;
  if (lead >= 0xE0 && lead <= 0xEF) return *bits = lead & 0x0F, 3;
  if (lead >= 0xF0 && lead <= 0xF4) return *bits = lead & 0x07, 4;
  return 0;
}

}  // namespace

CodePoint DecodeUtf8(std::string_view text) {
  const auto lead = static_cast<uint8_t>(text[0]);
  const CodePoint invalid = {kInvalidByte + lead, 1};
  uint32_t value = 0;
  const uint32_t length = SequenceLength(lead, &value);
  if (length == 0 || length > text.size()) return invalid;
  for (uint32_t i = 1; i < length; ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if ((byte & 0xC0) != 0x80) return invalid;
    value = value << 6 | (byte & 0x3F);
  }
  constexpr uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < kSmallest[length] || value > kLastCodePoint || is_surrogate) return invalid;
  return {value, length};
}

void AppendUtf8(uint32_t code_point, std::string& text) {
  if (code_point >= kInvalidByte) {
    text.push_back(static_cast<char>(code_point - kInvalidByte));
  } else if (code_point < 0x80) {
    text.push_back(static_cast<char>(code_point));
  } else if (code_point < 0x800) {
    text.push_back(static_cast<char>(0xC0 | code_point >> 6));
    text.push_back(static_cast<char>(0x80 | (code_point & 0x3F)));
  } else if (code_point < 0x10000) {
    text.push_back(static_cast<char>(0xE0 | code_point >> 12));
    text.push_back(static_cast<char>(0x80 | (code_point >> 6 & 0x3F)));
    text.push_back(static_cast<char>(0x80 | (code_point & 0x3F)));
  } else {
    text.push_back(static_cast<char>(0xF0 | code_point >> 18));
    text.push_back(static_cast<char>(0x80 | (code_point >> 12 & 0x3F)));
    text.push_back(static_cast<char>(0x80 | (code_point >> 6 & 0x3F)));
    text.push_back(static_cast<char>(0x80 | (code_point & 0x3F)));
  }
}

}  // namespace tenon
