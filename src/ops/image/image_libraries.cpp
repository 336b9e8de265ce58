// WebP and JPEG 2000, by libraries of the system. Functions and structures are those of the ABI
// versions in the file names.
#include <algorithm>
#include <cstring>
#include <memory>

#include "base/dynamic_library.h"
#include "ops/image/image_formats.h"

namespace tenon {
namespace {

Result<DynamicLibrary> LoadDecoder(const char* file, const char* format) {
  Result<DynamicLibrary> library = DynamicLibrary::Load(file);
  if (!library) {
    return NotImplemented("{} pictures need the library {}: {}", format, file,
                          library.error().message());
  }
  return library;
}

// The parts of openjp2.h that are used. Handles are opaque.
struct Jp2Component {
  uint32_t dx, dy, width, height, x0, y0, precision, bits_per_pixel, is_signed;
  uint32_t resolutions_decoded, factor;
  int32_t* data;
  uint16_t alpha;
};
struct Jp2Image {
  uint32_t x0, y0, x1, y1, component_count;
  int32_t color_space;
  Jp2Component* components;
  uint8_t* icc_profile;
  uint32_t icc_profile_size;
};
constexpr int kRawStream = 0, kJp2File = 2;
constexpr size_t kParameterBytes = 32768;  // at least the size of opj_dparameters_t
constexpr int kYcc = 3;                    // a color space; YCC in sRGB's primaries

struct Jp2Functions {
  void* (*create_decompress)(int format);
  void (*set_default_parameters)(void* parameters);
  int (*setup_decoder)(void* codec, void* parameters);
  void (*destroy_codec)(void* codec);
  void* (*create_stream)(int is_input);
  void (*set_read)(void* stream, size_t (*read)(void* buffer, size_t size, void* user));
  void (*set_skip)(void* stream, int64_t (*skip)(int64_t size, void* user));
  void (*set_seek)(void* stream, int (*seek)(int64_t position, void* user));
  void (*set_user_data)(void* stream, void* user, void (*free)(void*));
  void (*set_length)(void* stream, uint64_t length);
  void (*destroy_stream)(void* stream);
  int (*read_header)(void* stream, void* codec, Jp2Image** image);
  int (*decode)(void* codec, void* stream, Jp2Image* image);
  void (*destroy_image)(Jp2Image* image);
};

template <class F>
Status Find(const DynamicLibrary& library, const char* name, F** function) {
  TENON_ASSIGN_OR_RETURN(*function, library.Function<F>(name));
  return OkStatus();
}

Result<Jp2Functions> Jp2FunctionsOf(const DynamicLibrary& library) {
  Jp2Functions f{};
  TENON_RETURN_IF_ERROR(Find(library, "opj_create_decompress", &f.create_decompress));
  TENON_RETURN_IF_ERROR(
      Find(library, "opj_set_default_decoder_parameters", &f.set_default_parameters));
  TENON_RETURN_IF_ERROR(Find(library, "opj_setup_decoder", &f.setup_decoder));
  TENON_RETURN_IF_ERROR(Find(library, "opj_destroy_codec", &f.destroy_codec));
  TENON_RETURN_IF_ERROR(Find(library, "opj_stream_default_create", &f.create_stream));
  TENON_RETURN_IF_ERROR(Find(library, "opj_stream_set_read_function", &f.set_read));
  TENON_RETURN_IF_ERROR(Find(library, "opj_stream_set_skip_function", &f.set_skip));
  TENON_RETURN_IF_ERROR(Find(library, "opj_stream_set_seek_function", &f.set_seek));
  TENON_RETURN_IF_ERROR(Find(library, "opj_stream_set_user_data", &f.set_user_data));
  TENON_RETURN_IF_ERROR(Find(library, "opj_stream_set_user_data_length", &f.set_length));
  TENON_RETURN_IF_ERROR(Find(library, "opj_stream_destroy", &f.destroy_stream));
  TENON_RETURN_IF_ERROR(Find(library, "opj_read_header", &f.read_header));
  TENON_RETURN_IF_ERROR(Find(library, "opj_decode", &f.decode));
  TENON_RETURN_IF_ERROR(Find(library, "opj_image_destroy", &f.destroy_image));
  return f;
}

// A file in memory, as the library reads it.
struct MemoryStream {
  std::span<const uint8_t> file;
  size_t position = 0;

  static size_t Read(void* buffer, size_t size, void* user) {
    auto* const stream = static_cast<MemoryStream*>(user);
    const size_t count = std::min(size, stream->file.size() - stream->position);
    if (count == 0) return SIZE_MAX;  // the end
    std::memcpy(buffer, stream->file.data() + stream->position, count);
    stream->position += count;
    return count;
  }
  static int64_t Skip(int64_t size, void* user) {
    auto* const stream = static_cast<MemoryStream*>(user);
    const auto left = static_cast<int64_t>(stream->file.size() - stream->position);
    const int64_t skipped = std::clamp(size, -static_cast<int64_t>(stream->position), left);
    stream->position += static_cast<size_t>(skipped);
    return skipped;
  }
  static int Seek(int64_t position, void* user) {
    auto* const stream = static_cast<MemoryStream*>(user);
    if (position < 0 || position > static_cast<int64_t>(stream->file.size())) return 0;
    stream->position = static_cast<size_t>(position);
    return 1;
  }
};

// The sample at a pixel as a byte; the component may have a lower resolution than the image.
int SampleAt(const Jp2Component& component, int64_t x, int64_t y) {
  const int64_t column = std::min<int64_t>(x / std::max(component.dx, 1u), component.width - 1);
  const int64_t row = std::min<int64_t>(y / std::max(component.dy, 1u), component.height - 1);
  int64_t value = component.data[row * component.width + column];
  if (component.is_signed) value += int64_t{1} << (component.precision - 1);
  if (component.precision > 8) {
    value >>= component.precision - 8;
  } else if (component.precision < 8) {
    value = value * 255 / ((1 << component.precision) - 1);
  }
  return static_cast<int>(std::clamp<int64_t>(value, 0, 255));
}

std::optional<Picture> PictureOf(const Jp2Image& image, size_t file_bytes) {
  const int64_t width = int64_t{image.x1} - image.x0, height = int64_t{image.y1} - image.y0;
  if (!IsPlausible(width, height, file_bytes) || image.component_count == 0) return std::nullopt;
  const size_t used = image.component_count >= 3 ? 3 : 1;
  for (size_t c = 0; c < used; ++c) {
    const Jp2Component& component = image.components[c];
    const bool is_sound = component.data != nullptr && component.width > 0 &&
                          component.height > 0 && component.precision >= 1 &&
                          component.precision <= 31;
    if (!is_sound) return std::nullopt;
  }
  Picture picture = {width, height, {}};
  picture.pixels.resize(static_cast<size_t>(width * height * 3));
  uint8_t* to = picture.pixels.data();
  for (int64_t i = 0; i < width * height; ++i, to += 3) {
    int samples[3];
    for (size_t c = 0; c < 3; ++c) {
      samples[c] = SampleAt(image.components[used == 3 ? c : 0], i % width, i / width);
    }
    if (used == 3 && image.color_space == kYcc) {
      const int y = samples[0], blue = samples[1] - 128, red = samples[2] - 128;
      samples[0] = y + ((91881 * red + 32768) >> 16);
      samples[1] = y + ((-22554 * blue - 46802 * red + 32768) >> 16);
      samples[2] = y + ((116130 * blue + 32768) >> 16);
    }
    for (size_t c = 0; c < 3; ++c) to[c] = static_cast<uint8_t>(std::clamp(samples[c], 0, 255));
  }
  return picture;
}

}  // namespace

Result<std::optional<Picture>> DecodeWebp(std::span<const uint8_t> file) {
  TENON_ASSIGN_OR_RETURN(const DynamicLibrary library, LoadDecoder("libwebp.so.7", "WebP"));
  using GetInfo = int(const uint8_t*, size_t, int*, int*);
  using Decode = uint8_t*(const uint8_t*, size_t, uint8_t*, size_t, int);
  TENON_ASSIGN_OR_RETURN(GetInfo* const get_info, library.Function<GetInfo>("WebPGetInfo"));
  TENON_ASSIGN_OR_RETURN(Decode* const decode, library.Function<Decode>("WebPDecodeRGBInto"));
  int width = 0, height = 0;
  if (get_info(file.data(), file.size(), &width, &height) == 0 ||
      !IsPlausible(width, height, file.size())) {
    return std::nullopt;
  }
  Picture picture = {width, height, {}};
  picture.pixels.resize(static_cast<size_t>(picture.width * picture.height * 3));
  const uint8_t* done =
      decode(file.data(), file.size(), picture.pixels.data(), picture.pixels.size(), width * 3);
  if (done == nullptr) return std::nullopt;
  return picture;
}

Result<std::optional<Picture>> DecodeJpeg2000(std::span<const uint8_t> file) {
  TENON_ASSIGN_OR_RETURN(const DynamicLibrary library, LoadDecoder("libopenjp2.so.7", "JPEG 2000"));
  TENON_ASSIGN_OR_RETURN(const Jp2Functions f, Jp2FunctionsOf(library));
  const bool is_raw = !file.empty() && file[0] == 0xFF;
  const std::unique_ptr<void, void (*)(void*)> codec(
      f.create_decompress(is_raw ? kRawStream : kJp2File), f.destroy_codec);
  const std::unique_ptr<void, void (*)(void*)> stream(f.create_stream(1), f.destroy_stream);
  if (!codec || !stream) return std::nullopt;
  alignas(16) std::byte parameters[kParameterBytes] = {};
  f.set_default_parameters(parameters);
  MemoryStream memory = {file};
  f.set_user_data(stream.get(), &memory, nullptr);
  f.set_length(stream.get(), file.size());
  f.set_read(stream.get(), &MemoryStream::Read);
  f.set_skip(stream.get(), &MemoryStream::Skip);
  f.set_seek(stream.get(), &MemoryStream::Seek);
  if (f.setup_decoder(codec.get(), parameters) == 0) return std::nullopt;
  Jp2Image* header = nullptr;
  const bool has_header = f.read_header(stream.get(), codec.get(), &header) != 0;
  const std::unique_ptr<Jp2Image, void (*)(Jp2Image*)> image(header, f.destroy_image);
  const bool fits =
      has_header && image && image->x1 > image->x0 && image->y1 > image->y0 &&
      IsPlausible(int64_t{image->x1} - image->x0, int64_t{image->y1} - image->y0, file.size());
  if (!fits || f.decode(codec.get(), stream.get(), image.get()) == 0) return std::nullopt;
  return PictureOf(*image, file.size());
}

}  // namespace tenon
