// PBM, PGM and PPM.
#include <algorithm>

#include "ops/image/image_formats.h"

namespace tenon {
namespace {

bool IsSpace(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

class PnmReader {
 public:
  explicit PnmReader(std::span<const uint8_t> file) : rest_(file) {}

  // A number of the header or of an ASCII file; nothing at the end or if there is none.
  std::optional<int64_t> Number() {
    SkipSpace();
    int64_t number = 0;
    size_t digits = 0;
    for (; !rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9'; ++digits) {
      number = std::min<int64_t>(number * 10 + (rest_[0] - '0'), INT32_MAX);
      rest_ = rest_.subspan(1);
    }
    return digits > 0 ? std::optional<int64_t>(number) : std::nullopt;
  }
  // The digits of an ASCII bitmap may have no space between them.
  std::optional<int64_t> Digit() {
    SkipSpace();
    if (rest_.empty() || (rest_[0] != '0' && rest_[0] != '1')) return std::nullopt;
    const int64_t digit = rest_[0] - '0';
    rest_ = rest_.subspan(1);
    return digit;
  }
  // The bytes after the one space that ends the header.
  std::span<const uint8_t> Raw() const { return rest_.empty() ? rest_ : rest_.subspan(1); }

 private:
  void SkipSpace() {
    while (!rest_.empty() && (IsSpace(rest_[0]) || rest_[0] == '#')) {
      const bool comment = rest_[0] == '#';
      rest_ = rest_.subspan(1);
      while (comment && !rest_.empty() && rest_[0] != '\n') rest_ = rest_.subspan(1);
    }
  }

  std::span<const uint8_t> rest_;
};

struct PnmHeader {
  char kind;  // '1' to '6'
  int64_t width, height;
  int64_t most;  // the value of full brightness
  bool is_bitmap() const { return kind == '1' || kind == '4'; }
  bool is_plain() const { return kind <= '3'; }
  int64_t channels() const { return kind == '3' || kind == '6' ? 3 : 1; }
};

// Value `i` of the raw pixels of an image; nothing after their end.
std::optional<int64_t> RawValue(const PnmHeader& header, std::span<const uint8_t> raw, int64_t i) {
  if (header.is_bitmap()) {
    const int64_t row_bytes = (header.width + 7) / 8, column = i % header.width;
    const auto byte = static_cast<size_t>(i / header.width * row_bytes + column / 8);
    if (byte >= raw.size()) return std::nullopt;
    return raw[byte] >> (7 - column % 8) & 1;
  }
  const size_t size = header.most > 255 ? 2 : 1;
  const size_t at = static_cast<size_t>(i) * size;
  if (at + size > raw.size()) return std::nullopt;
  return size == 1 ? raw[at] : raw[at] * 256 + raw[at + 1];
}

std::optional<PnmHeader> ReadHeader(char kind, PnmReader& reader) {
  PnmHeader header = {kind, 0, 0, 1};
  const auto width = reader.Number(), height = reader.Number();
  if (!width || !height) return std::nullopt;
  header.width = *width;
  header.height = *height;
  if (!header.is_bitmap()) header.most = reader.Number().value_or(0);
  const bool fits = header.width > 0 && header.height > 0 && header.most > 0 &&
                    header.most < 65536 && header.width * 3 <= kMostPictureBytes / header.height;
  return fits ? std::optional(header) : std::nullopt;
}

}  // namespace

Result<std::optional<Picture>> DecodePnm(std::span<const uint8_t> file) {
  if (file.size() < 3) return std::nullopt;
  PnmReader reader(file.subspan(2));
  const std::optional<PnmHeader> header = ReadHeader(static_cast<char>(file[1]), reader);
  if (!header) return std::nullopt;
  const int64_t count = header->width * header->height * header->channels();
  // Every value takes at least one bit of the file.
  if (static_cast<size_t>(count / 8) > file.size()) return std::nullopt;
  const std::span<const uint8_t> raw = reader.Raw();
  Picture picture = {header->width, header->height, {}};
  picture.pixels.reserve(static_cast<size_t>(header->width * header->height * 3));
  for (int64_t i = 0; i < count; ++i) {
    std::optional<int64_t> value = RawValue(*header, raw, i);
    if (header->is_plain()) value = header->is_bitmap() ? reader.Digit() : reader.Number();
    if (!value || *value > header->most) return std::nullopt;
    if (header->is_bitmap()) value = 1 - *value;  // 1 is black
    const auto byte = static_cast<uint8_t>((*value * 255 + header->most / 2) / header->most);
    picture.pixels.insert(picture.pixels.end(), header->channels() == 1 ? 3 : 1, byte);
  }
  return picture;
}

}  // namespace tenon
