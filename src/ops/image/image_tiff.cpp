// TIFF 6.0, as far as images from the web and from cameras use it.
#include <algorithm>
#include <array>
#include <cstring>

#include "ops/image/image_formats.h"

namespace tenon {
namespace {

using Bytes = std::span<const uint8_t>;

// Tags and values of the format.
enum Tag : uint32_t {
  kWidth = 256,
  kHeight = 257,
  kBitsPerSample = 258,
  kCompression = 259,
  kPhotometric = 262,
  kStripOffsets = 273,
  kSamplesPerPixel = 277,
  kRowsPerStrip = 278,
  kStripByteCounts = 279,
  kPlanarConfiguration = 284,
  kPredictor = 317,
  kColorMap = 320,
  kTileWidth = 322,
  kTileLength = 323,
  kTileOffsets = 324,
  kTileByteCounts = 325,
};
enum Compression : uint32_t {
  kNone = 1,
  kLzw = 5,
  kDeflate = 8,
  kPackBits = 32773,
  kOldDeflate = 32946
};
enum Photometric : uint32_t { kWhiteIsZero = 0, kBlackIsZero = 1, kRgb = 2, kPalette = 3 };

class TiffFile {
 public:
  explicit TiffFile(Bytes file) : file_(file), little_(!file.empty() && file[0] == 'I') {}

  // Numbers of 1, 2 or 4 bytes; 0 outside the file.
  uint32_t Read(size_t at, size_t size) const {
    if (at > file_.size() || size > file_.size() - at) return 0;
    uint32_t value = 0;
    for (size_t i = 0; i < size; ++i) {
      value = value << 8 | file_[at + (little_ ? size - 1 - i : i)];
    }
    return value;
  }
  bool little() const { return little_; }

  // The values of a tag of the first image; only `fallback` if it is absent.
  std::vector<uint32_t> Values(Tag tag, uint32_t fallback) const {
    const size_t directory = Read(4, 4);
    const size_t entries = Read(directory, 2);
    for (size_t i = 0; i < entries; ++i) {
      const size_t entry = directory + 2 + 12 * i;
      if (Read(entry, 2) != tag) continue;
      const uint32_t type = Read(entry + 2, 2);
      const size_t size = type == 3 ? 2 : type == 4 ? 4 : 1;
      const size_t count = std::min<size_t>(Read(entry + 4, 4), file_.size() / size);
      const size_t start = count * size <= 4 ? entry + 8 : Read(entry + 8, 4);
      std::vector<uint32_t> values(count);
      for (size_t k = 0; k < count; ++k) values[k] = Read(start + k * size, size);
      if (!values.empty()) return values;
    }
    return {fallback};
  }
  uint32_t Value(Tag tag, uint32_t fallback) const { return Values(tag, fallback)[0]; }

  Bytes Part(size_t at, size_t size) const {
    if (at > file_.size()) return {};
    return file_.subspan(at, std::min(size, file_.size() - at));
  }

 private:
  Bytes file_;
  bool little_;
};

// A run of n + 1 literal bytes, or one byte repeated 1 - n times.
bool UnpackBits(Bytes packed, std::span<uint8_t> into) {
  size_t to = 0;
  for (size_t i = 0; i < packed.size() && to < into.size();) {
    const auto n = static_cast<int8_t>(packed[i++]);
    if (n == -128) continue;
    const size_t wanted = static_cast<size_t>(n >= 0 ? n + 1 : 1 - n);
    const size_t count = std::min(wanted, into.size() - to);
    const size_t read = n >= 0 ? count : 1;
    if (read > packed.size() - i) return false;
    for (size_t k = 0; k < count; ++k) into[to++] = packed[n >= 0 ? i + k : i];
    i += n >= 0 ? wanted : 1;
  }
  return to == into.size();
}

// TIFF's LZW: codes of 9 to 12 bits, highest bit first, widened one code early.
class LzwReader {
 public:
  explicit LzwReader(Bytes packed) : packed_(packed) { Clear(); }

  bool Read(std::span<uint8_t> into) {
    size_t to = 0;
    while (to < into.size()) {
      const uint32_t code = NextCode();
      if (code == kEnd) return false;
      if (code == kClear) {
        Clear();
        continue;
      }
      if (code > next_ || (code == next_ && last_ == kNoCode)) return false;
      // A code that is not defined yet means the last string followed by its first byte.
      const uint32_t known = code == next_ ? last_ : code;
      if (last_ != kNoCode && next_ < kCodes) {
        prefix_[next_] = static_cast<uint16_t>(last_);
        suffix_[next_] = FirstOf(known);
        length_[next_] = static_cast<uint16_t>(length_[last_] + 1);
        ++next_;
      } else if (code == next_) {
        return false;
      }
      to = Write(code, into, to);
      last_ = code;
    }
    return true;
  }

 private:
  static constexpr uint32_t kCodes = 4096, kClear = 256, kEnd = 257, kFirst = 258;
  static constexpr uint32_t kNoCode = UINT32_MAX;

  void Clear() {
    for (uint32_t i = 0; i < 256; ++i) {
      suffix_[i] = static_cast<uint8_t>(i);
      length_[i] = 1;
    }
    next_ = kFirst;
    last_ = kNoCode;
  }

  uint32_t NextCode() {
    const size_t width = next_ < 511 ? 9 : next_ < 1023 ? 10 : next_ < 2047 ? 11 : 12;
    uint32_t code = 0;
    for (size_t i = 0; i < width; ++i, ++bit_) {
      if (bit_ / 8 >= packed_.size()) return kEnd;
      code = code << 1 | (packed_[bit_ / 8] >> (7 - bit_ % 8) & 1u);
    }
    return code;
  }

  uint8_t FirstOf(uint32_t code) const {
    while (code >= kFirst) code = prefix_[code];
    return suffix_[code];
  }

  size_t Write(uint32_t code, std::span<uint8_t> into, size_t to) const {
    const size_t end = to + length_[code];
    for (size_t i = end; i-- > to;) {
      if (i < into.size()) into[i] = suffix_[code];
      if (code >= kFirst) code = prefix_[code];
    }
    return std::min(end, into.size());
  }

  Bytes packed_;
  size_t bit_ = 0;
  uint32_t next_ = kFirst, last_ = kNoCode;
  std::array<uint16_t, kCodes> prefix_{};
  std::array<uint16_t, kCodes> length_{};
  std::array<uint8_t, kCodes> suffix_{};
};

struct TiffLayout {
  uint32_t width, height, bits, samples, compression, photometric, predictor;
  bool tiled;
  uint32_t block_width, block_height;  // of a tile, or of a strip
  std::vector<uint32_t> offsets, sizes, colors;

  uint32_t across() const { return (width + block_width - 1) / block_width; }
  uint32_t down() const { return (height + block_height - 1) / block_height; }
  size_t row_bytes() const { return (static_cast<size_t>(block_width) * samples * bits + 7) / 8; }
};

TiffLayout LayoutOf(const TiffFile& file) {
  TiffLayout layout{};
  layout.width = file.Value(kWidth, 0);
  layout.height = file.Value(kHeight, 0);
  layout.bits = file.Value(kBitsPerSample, 1);
  layout.samples = file.Value(kSamplesPerPixel, 1);
  layout.compression = file.Value(kCompression, kNone);
  layout.photometric = file.Value(kPhotometric, kBlackIsZero);
  layout.predictor = file.Value(kPredictor, 1);
  layout.tiled = file.Value(kTileWidth, 0) > 0;
  layout.block_width = layout.tiled ? file.Value(kTileWidth, 0) : layout.width;
  layout.block_height = layout.tiled
                            ? file.Value(kTileLength, 0)
                            : std::min(file.Value(kRowsPerStrip, UINT32_MAX), layout.height);
  layout.offsets = file.Values(layout.tiled ? kTileOffsets : kStripOffsets, 0);
  layout.sizes = file.Values(layout.tiled ? kTileByteCounts : kStripByteCounts, UINT32_MAX);
  layout.colors = file.Values(kColorMap, 0);
  return layout;
}

// Whether the sizes are valid for an image.
bool IsSound(const TiffLayout& layout, size_t file_bytes) {
  if (layout.width == 0 || layout.height == 0 || layout.block_width == 0 ||
      layout.block_height == 0 || layout.samples == 0 || layout.samples > 16) {
    return false;
  }
  const auto fits = [](uint64_t width, uint64_t height, uint64_t bytes) {
    constexpr uint64_t kMostSide = 1 << 24;
    return width <= kMostSide && height <= kMostSide &&
           width * height * bytes <= static_cast<uint64_t>(kMostPictureBytes);
  };
  // All blocks count: together they may be far larger than the image in them.
  return IsPlausible(layout.width, layout.height, file_bytes) &&
         fits(layout.block_width, layout.block_height, layout.samples * 2) &&
         IsPlausible(int64_t{layout.across()} * layout.block_width,
                     int64_t{layout.down()} * layout.block_height, file_bytes);
}

Status CheckKind(const TiffFile& file, const TiffLayout& layout) {
  const bool known_bits =
      layout.bits == 1 || layout.bits == 4 || layout.bits == 8 || layout.bits == 16;
  const bool known = known_bits && layout.photometric <= kPalette &&
                     (layout.photometric != kRgb || layout.samples >= 3) &&
                     (layout.predictor == 1 || (layout.predictor == 2 && layout.bits == 8)) &&
                     (layout.samples == 1 || file.Value(kPlanarConfiguration, 1) == 1);
  if (!known) {
    return NotImplemented(
        "a TIFF picture of kind {} with {} samples of {} bits, predictor {} and planes {}",
        layout.photometric, layout.samples, layout.bits, layout.predictor,
        file.Value(kPlanarConfiguration, 1));
  }
  constexpr uint32_t kKnown[] = {kNone, kLzw, kDeflate, kPackBits, kOldDeflate};
  if (std::find(std::begin(kKnown), std::end(kKnown), layout.compression) == std::end(kKnown)) {
    return NotImplemented("TIFF compression {}", layout.compression);
  }
  return OkStatus();
}

bool Unpack(const TiffLayout& layout, Bytes packed, std::span<uint8_t> into) {
  switch (layout.compression) {
    case kLzw:
      return LzwReader(packed).Read(into);
    case kDeflate:
    case kOldDeflate:
      return InflateZlib(packed, into);
    case kPackBits:
      return UnpackBits(packed, into);
    default:
      if (packed.size() < into.size()) return false;
      std::copy_n(packed.begin(), into.size(), into.begin());
      return true;
  }
}

// 8-bit samples were stored as differences from the pixel before.
void AddDifferences(const TiffLayout& layout, std::span<uint8_t> row) {
  for (size_t i = layout.samples; i < row.size(); ++i) {
    row[i] = static_cast<uint8_t>(row[i] + row[i - layout.samples]);
  }
}

// Sample `i` of a row, of 1, 4, 8 or 16 bits; those of 16 in the file's byte order.
uint32_t SampleOf(const TiffLayout& layout, Bytes row, size_t i, bool little) {
  if (layout.bits == 16) return row[2 * i + (little ? 1 : 0)];  // the upper byte
  if (layout.bits == 8) return row[i];
  const size_t bit = i * layout.bits;
  return row[bit / 8] >> (8 - layout.bits - bit % 8) & ((1u << layout.bits) - 1);
}

void WritePixel(const TiffLayout& layout, Bytes row, size_t x, bool little, uint8_t* to) {
  const auto sample = [&](size_t k) {
    return SampleOf(layout, row, x * layout.samples + k, little);
  };
  const uint32_t scale = layout.bits < 8 ? 255 / ((1u << layout.bits) - 1) : 1;
  if (layout.photometric == kRgb) {
    for (size_t k = 0; k < 3; ++k) to[k] = static_cast<uint8_t>(sample(k) * scale);
  } else if (layout.photometric == kPalette) {
    const size_t count = layout.colors.size() / 3;
    for (size_t k = 0; k < 3; ++k) {
      const size_t at = std::min<size_t>(sample(0), count == 0 ? 0 : count - 1);
      to[k] = count == 0 ? uint8_t{0} : static_cast<uint8_t>(layout.colors[k * count + at] >> 8);
    }
  } else {
    const uint32_t gray = sample(0) * scale;
    std::fill_n(to, 3,
                static_cast<uint8_t>(layout.photometric == kWhiteIsZero ? 255 - gray : gray));
  }
}

}  // namespace

Result<std::optional<Picture>> DecodeTiff(std::span<const uint8_t> bytes) {
  const TiffFile file(bytes);
  const TiffLayout layout = LayoutOf(file);
  if (!IsSound(layout, bytes.size())) return std::nullopt;
  TENON_RETURN_IF_ERROR(CheckKind(file, layout));
  Picture picture = {layout.width, layout.height, {}};
  picture.pixels.resize(size_t{3} * layout.width * layout.height);
  const uint32_t blocks = layout.down() * layout.across();
  if (layout.offsets.size() < blocks) return std::nullopt;
  std::vector<uint8_t> block;
  for (uint32_t b = 0; b < blocks; ++b) {
    const uint32_t top = b / layout.across() * layout.block_height;
    const uint32_t left = b % layout.across() * layout.block_width;
    const uint32_t rows = std::min(layout.block_height, layout.height - top);
    block.resize(layout.row_bytes() * (layout.tiled ? layout.block_height : rows));
    const uint32_t size = b < layout.sizes.size() ? layout.sizes[b] : UINT32_MAX;
    if (!Unpack(layout, file.Part(layout.offsets[b], size), block)) return std::nullopt;
    for (uint32_t y = 0; y < rows; ++y) {
      const std::span<uint8_t> row(block.data() + y * layout.row_bytes(), layout.row_bytes());
      if (layout.predictor == 2) AddDifferences(layout, row);
      uint8_t* to = picture.pixels.data() + (size_t{top + y} * layout.width + left) * 3;
      const uint32_t columns = std::min(layout.block_width, layout.width - left);
      for (uint32_t x = 0; x < columns; ++x) WritePixel(layout, row, x, file.little(), to + 3 * x);
    }
  }
  return picture;
}

}  // namespace tenon
