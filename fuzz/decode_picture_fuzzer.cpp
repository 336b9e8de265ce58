// Decodes any bytes as each kind of image. The result has as many pixels as its size says, or is an
// error.
#include <cstdint>
#include <span>

#include "ops/image/image_formats.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tenon;
  for (const auto decode : {DecodeWithStb, DecodePnm, DecodeTiff}) {
    const Result<std::optional<Picture>> picture = decode(std::span(data, size));
    if (!picture || !*picture) continue;
    const Picture& read = **picture;
    if (static_cast<int64_t>(read.pixels.size()) != 3 * read.width * read.height) __builtin_trap();
  }
  return 0;
}
