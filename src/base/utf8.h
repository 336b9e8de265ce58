// UTF-8 (RFC 3629): one code point after the other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tenon {

inline constexpr uint32_t kLastCodePoint = 0x10FFFF;

// A code point and the bytes that it takes. A byte that begins no valid sequence stands for itself
// alone, with the value kInvalidByte + byte, which no code point has.
struct CodePoint {
  uint32_t value = 0;
  uint32_t bytes = 0;
};
inline constexpr uint32_t kInvalidByte = 0x110000;

// The first code point of `text`, which is not empty.
CodePoint DecodeUtf8(std::string_view text);
// Appends a code point, or the byte that DecodeUtf8 found invalid.
void AppendUtf8(uint32_t code_point, std::string& text);

}  // namespace tenon
