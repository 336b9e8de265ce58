// The image file formats that ImageDecoder reads.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"

namespace tenon {

// Red, green and blue bytes of each pixel, rows from the top.
struct Picture {
  int64_t width = 0;
  int64_t height = 0;
  std::vector<uint8_t> pixels;  // 3 * width * height
};

// Images of more bytes are refused, and so are those with more pixels than the file can contain:
// the densest are bitmaps packed by LZW, of which a byte may represent 20000 pixels.
constexpr int64_t kMostPictureBytes = INT32_MAX;
constexpr int64_t kMostPixelsPerByte = 32768;

// Whether a file of `bytes` bytes may contain an image of that size.
inline bool IsPlausible(int64_t width, int64_t height, size_t bytes) {
  return width > 0 && height > 0 && width <= kMostPictureBytes / 3 / height &&
         width * height / kMostPixelsPerByte <= static_cast<int64_t>(bytes);
}

// Each reads one format. Nothing: the file is damaged, or has another format. Errors:
// kNotImplemented for features of the format that the decoder lacks, or for a library that this
// machine lacks.
//
// BMP, JPEG, PNG, by the stb library. JPEGs have the same bits as with libjpeg-turbo, except if
// chroma is subsampled along one axis only: stb rounds that differently, by a few levels.
Result<std::optional<Picture>> DecodeWithStb(std::span<const uint8_t> file);
// PBM, PGM and PPM, in ASCII and raw. Values are scaled to a maximum of 255.
Result<std::optional<Picture>> DecodePnm(std::span<const uint8_t> file);
// TIFF: gray, palette and RGB of 1, 4, 8 or 16 bits in strips or tiles, uncompressed or packed by
// LZW, Deflate or PackBits.
Result<std::optional<Picture>> DecodeTiff(std::span<const uint8_t> file);
// By libwebp and libopenjp2, which are loaded when they are first needed.
Result<std::optional<Picture>> DecodeWebp(std::span<const uint8_t> file);
Result<std::optional<Picture>> DecodeJpeg2000(std::span<const uint8_t> file);

// Decompresses a zlib stream (RFC 1950) into all of `into`. False if it is damaged or too short.
bool InflateZlib(std::span<const uint8_t> packed, std::span<uint8_t> into);

}  // namespace tenon
