// BMP, JPEG and PNG by stb_image, with libjpeg-turbo's arithmetic, as the standard requires.
#include <algorithm>
#include <cstring>
#include <memory>

#include "ops/image/image_formats.h"

// The library is included only here, with warnings that we cannot fix.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wsign-compare"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#define STBI_NO_STDIO
#define STBI_NO_SIMD
#define STBI_ONLY_BMP
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#include <stb_image.h>
#pragma GCC diagnostic pop

namespace tenon {
namespace {

uint8_t ToByte(int value) { return static_cast<uint8_t>(std::clamp(value, 0, 255)); }

// One pass of the accurate integer IDCT of the JPEG group's library: eight values, `stride` apart,
// scaled by 2^(13 - shift). After Loeffler, Ligtenberg and Moschytz, "Practical fast 1-D DCT
// algorithms with 11 multiplications", ICASSP 1989; constants are scaled by 2^13.
template <class In, class Store>
void InverseDct8(const In* in, size_t stride, int shift, Store&& store) {
  const auto at = [&](size_t i) { return static_cast<int>(in[i * stride]); };
  const int half = (at(2) + at(6)) * 4433;
  const int even_2 = half - at(6) * 15137;
  const int even_3 = half + at(2) * 6270;
  const int sum = (at(0) + at(4)) * 8192, difference = (at(0) - at(4)) * 8192;
  const int even[4] = {sum + even_3, difference + even_2, difference - even_2, sum - even_3};

  const int turn = (at(7) + at(3) + at(5) + at(1)) * 9633;
  const int outer = (at(7) + at(1)) * -7373, inner = (at(5) + at(3)) * -20995;
  const int first = turn - (at(7) + at(3)) * 16069, second = turn - (at(5) + at(1)) * 3196;
  const int odd[4] = {at(1) * 12299 + outer + second, at(3) * 25172 + inner + first,
                      at(5) * 16819 + inner + second, at(7) * 2446 + outer + first};

  const int round = 1 << (shift - 1);
  for (size_t i = 0; i < 4; ++i) {
    store(i, (even[i] + odd[i] + round) >> shift);
    store(7 - i, (even[i] - odd[i] + round) >> shift);
  }
}

void InverseDct(stbi_uc* out, int out_stride, short data[64]) {
  int columns[64];
  for (size_t i = 0; i < 8; ++i) {
    InverseDct8(data + i, 8, 11, [&](size_t row, int v) { columns[row * 8 + i] = v; });
  }
  for (size_t row = 0; row < 8; ++row) {
    stbi_uc* to = out + static_cast<ptrdiff_t>(row) * out_stride;
    InverseDct8(columns + row * 8, 1, 18, [&](size_t i, int v) { to[i] = ToByte(v + 128); });
  }
}

// Constants are scaled by 2^16.
void YccToRgb(stbi_uc* out, const stbi_uc* y, const stbi_uc* cb, const stbi_uc* cr, int count,
              int step) {
  constexpr int kHalf = 1 << 15;
  for (int i = 0; i < count; ++i, out += step) {
    const int blue = cb[i] - 128, red = cr[i] - 128;
    out[0] = ToByte(y[i] + ((91881 * red + kHalf) >> 16));
    out[1] = ToByte(y[i] + ((-22554 * blue - 46802 * red + kHalf) >> 16));
    out[2] = ToByte(y[i] + ((116130 * blue + kHalf) >> 16));
    if (step == 4) out[3] = 255;
  }
}

// Twice as wide, between two rows: 3/4 of the nearer neighbour each way, halves rounded down and up
// in turn. Like its model, without a neighbour on both sides it only repeats.
stbi_uc* UpsampleBoth(stbi_uc* out, stbi_uc* near, stbi_uc* far, int width, int) {
  if (width <= 2) {
    for (int i = 0; i < width; ++i) out[2 * i] = out[2 * i + 1] = near[i];
    return out;
  }
  const auto column = [&](int i) {
    i = std::clamp(i, 0, width - 1);
    return 3 * near[i] + far[i];
  };
  for (int i = 0; i < width; ++i) {
    out[2 * i] = static_cast<stbi_uc>((3 * column(i) + column(i - 1) + 8) >> 4);
    out[2 * i + 1] = static_cast<stbi_uc>((3 * column(i) + column(i + 1) + 7) >> 4);
  }
  return out;
}

stbi_uc* LoadJpeg(stbi__context* file, int* width, int* height) {
  const auto jpeg = std::make_unique<stbi__jpeg>();
  jpeg->s = file;
  stbi__setup_jpeg(jpeg.get());
  jpeg->idct_block_kernel = &InverseDct;
  jpeg->YCbCr_to_RGB_kernel = &YccToRgb;
  jpeg->resample_row_hv_2_kernel = &UpsampleBoth;
  return load_jpeg_image(jpeg.get(), width, height, nullptr, 3);
}

}  // namespace

Result<std::optional<Picture>> DecodeWithStb(std::span<const uint8_t> file) {
  if (file.size() > INT32_MAX) return std::nullopt;
  const auto size = static_cast<int>(file.size());
  int width = 0, height = 0;
  const bool has_header = stbi_info_from_memory(file.data(), size, &width, &height, nullptr) != 0;
  if (!has_header || !IsPlausible(width, height, file.size())) return std::nullopt;
  stbi__context context;
  stbi__start_mem(&context, file.data(), size);
  const bool is_jpeg = file.size() > 1 && file[0] == 0xFF && file[1] == 0xD8;
  const std::unique_ptr<stbi_uc, void (*)(void*)> pixels(
      is_jpeg ? LoadJpeg(&context, &width, &height)
              : stbi_load_from_memory(file.data(), size, &width, &height, nullptr, 3),
      stbi_image_free);
  if (!pixels) return std::nullopt;
  Picture picture = {width, height, {}};
  picture.pixels.assign(pixels.get(), pixels.get() + picture.width * picture.height * 3);
  return picture;
}

bool InflateZlib(std::span<const uint8_t> packed, std::span<uint8_t> into) {
  if (packed.size() > INT32_MAX || into.size() > INT32_MAX) return false;
  const int size = stbi_zlib_decode_buffer(
      reinterpret_cast<char*>(into.data()), static_cast<int>(into.size()),
      reinterpret_cast<const char*>(packed.data()), static_cast<int>(packed.size()));
  return size == static_cast<int>(into.size());
}

}  // namespace tenon
