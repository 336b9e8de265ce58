#include "stb.h"

#include <limits>
#include <memory>

#include "text.h"

// The libraries are included only here, with warnings that we cannot fix.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#pragma GCC diagnostic ignored "-Wsign-compare"
#define STBI_NO_STDIO
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#include <stb_image.h>
#define STB_IMAGE_RESIZE_STATIC
#define STB_IMAGE_RESIZE_IMPLEMENTATION
#include <stb_image_resize.h>
#pragma GCC diagnostic pop

namespace tenon::cli {

Picture DecodePicture(std::span<const std::byte> bytes, int channels, const std::string& name) {
  if (bytes.size() > static_cast<size_t>(std::numeric_limits<int>::max())) {
    Fail("{}: pictures of 2 GiB and more cannot be read", name);
  }
  Picture picture;
  int channels_in_file = 0;
  const std::unique_ptr<stbi_uc, void (*)(void*)> pixels(
      stbi_load_from_memory(reinterpret_cast<const stbi_uc*>(bytes.data()),
                            static_cast<int>(bytes.size()), &picture.width, &picture.height,
                            &channels_in_file, channels),
      stbi_image_free);
  if (!pixels) Fail("{}: the picture cannot be read: {}", name, stbi_failure_reason());
  picture.channels = channels;
  const size_t count =
      static_cast<size_t>(picture.width) * static_cast<size_t>(picture.height * channels);
  picture.pixels.assign(pixels.get(), pixels.get() + count);
  return picture;
}

Picture Resize(const Picture& picture, int width, int height) {
  Picture resized{width, height, picture.channels, {}};
  resized.pixels.resize(static_cast<size_t>(width) * static_cast<size_t>(height) *
                        static_cast<size_t>(picture.channels));
  const int done = stbir_resize_float_generic(
      picture.pixels.data(), picture.width, picture.height, 0, resized.pixels.data(), width, height,
      0, picture.channels, STBIR_ALPHA_CHANNEL_NONE, 0, STBIR_EDGE_CLAMP, STBIR_FILTER_TRIANGLE,
      STBIR_COLORSPACE_LINEAR, nullptr);
  if (done == 0) Fail("not enough memory to resize a picture to {}x{}", width, height);
  return resized;
}

std::string Inflate(std::string_view packed, size_t size) {
  constexpr size_t kLookAhead = 4;  // bytes read after the stream, where zlib has a checksum
  constexpr size_t kMost = std::numeric_limits<int>::max() - kLookAhead;
  if (packed.size() > kMost || size > kMost) return "";
  std::string source(packed);
  source.append(kLookAhead, '\0');
  std::string bytes(size, '\0');
  const int written = stbi_zlib_decode_noheader_buffer(
      bytes.data(), static_cast<int>(size), source.data(), static_cast<int>(source.size()));
  return written == static_cast<int>(size) ? bytes : "";
}

}  // namespace tenon::cli
