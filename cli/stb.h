// The functions of the stb libraries that the command uses, in a namespace.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::cli {

// Pixels as numbers in [0, 255], rows from the top, channels together: [height, width, channels].
struct Picture {
  int width = 0;
  int height = 0;
  int channels = 0;
  std::vector<float> pixels;
};

// Reads a PNG or JPEG file as 1 (gray) or 3 (red, green, blue) channels, whatever it has. Throws
// Error whose text starts with `name`.
Picture DecodePicture(std::span<const std::byte> bytes, int channels, const std::string& name);

// Filters with a triangle that is widened when the image becomes smaller; edges are repeated. As in
// other imaging libraries this is called bilinear with antialiasing.
Picture Resize(const Picture& picture, int width, int height);

// Decompresses a raw deflate stream (RFC 1951) of `size` bytes. "" if it is damaged.
std::string Inflate(std::string_view packed, size_t size);

}  // namespace tenon::cli
