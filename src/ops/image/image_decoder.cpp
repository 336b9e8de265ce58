// ImageDecoder: the pixels of an encoded image.
#include <algorithm>
#include <string_view>

#include "ops/framework/op_row.h"
#include "ops/image/image_formats.h"

namespace tenon {
namespace {

// ImageDecoder-20.
struct ImageDecoderAttrs {
  std::string pixel_format = "RGB";
  static constexpr auto Fields() {
    return std::tuple(Field("pixel_format", &ImageDecoderAttrs::pixel_format));
  }
};

Result<int64_t> ChannelsOf(const ImageDecoderAttrs& attrs) {
  if (attrs.pixel_format == "RGB" || attrs.pixel_format == "BGR") return 3;
  if (attrs.pixel_format == "Grayscale") return 1;
  return InvalidArgument("attribute 'pixel_format': expected RGB, BGR or Grayscale, got '{}'",
                         attrs.pixel_format);
}

Status InferImageDecoder(const ImageDecoderAttrs& attrs, ShapeContext& context) {
  TENON_RETURN_IF_ERROR(context.InputOfRank(0, 1));
  TENON_ASSIGN_OR_RETURN(const int64_t channels, ChannelsOf(attrs));
  return context.SetOutput(0, {Dim::Unknown(), Dim::Unknown(), Dim(channels)});
}

bool StartsWith(std::span<const uint8_t> file, std::string_view start, size_t at = 0) {
  return file.size() >= at + start.size() &&
         std::equal(start.begin(), start.end(), file.begin() + static_cast<ptrdiff_t>(at),
                    [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; });
}

// Detects the format by the first bytes of a file. Nothing for unknown formats.
Result<std::optional<Picture>> Decode(std::span<const uint8_t> file) {
  using std::string_view_literals::operator""sv;
  if (StartsWith(file, "\xFF\xD8") || StartsWith(file, "BM") || StartsWith(file, "\x89PNG")) {
    return DecodeWithStb(file);
  }
  if (file.size() > 2 && file[0] == 'P' && file[1] >= '1' && file[1] <= '6') {
    return DecodePnm(file);
  }
  if (StartsWith(file, "II*\0"sv) || StartsWith(file, "MM\0*"sv)) return DecodeTiff(file);
  if (StartsWith(file, "RIFF") && StartsWith(file, "WEBP", 8)) return DecodeWebp(file);
  if (StartsWith(file, "\xFF\x4F\xFF\x51") || StartsWith(file, "jP  ", 4)) {
    return DecodeJpeg2000(file);
  }
  return std::nullopt;
}

void WritePixels(const Picture& picture, std::string_view format, uint8_t* to) {
  for (size_t i = 0; i < picture.pixels.size(); i += 3) {
    const uint8_t* pixel = picture.pixels.data() + i;
    if (format == "Grayscale") {
      // The luma of ITU-R BT.601, scaled by 2^16.
      *to++ = static_cast<uint8_t>(
          (pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >> 16);
    } else if (format == "BGR") {
      to = std::reverse_copy(pixel, pixel + 3, to);
    } else {
      to = std::copy_n(pixel, 3, to);
    }
  }
}

// A file that cannot be read results in an image without pixels.
Status RunImageDecoder(const ImageDecoderAttrs& attrs, KernelContext& context) {
  TENON_ASSIGN_OR_RETURN(const int64_t channels, ChannelsOf(attrs));
  TENON_ASSIGN_OR_RETURN(const std::optional<Picture> picture,
                         Decode(context.Input(0).values<uint8_t>()));
  const Shape shape = {picture ? picture->height : 0, picture ? picture->width : 0, channels};
  TENON_ASSIGN_OR_RETURN(Tensor * output, context.AllocateOutput(0, DataType::kUint8, shape));
  if (picture) WritePixels(*picture, attrs.pixel_format, output->data<uint8_t>());
  return OkStatus();
}

constexpr OpRow kRows[] = {
    Op<InferImageDecoder, RunImageDecoder>(
        "ImageDecoder",
        {.since = 20, .types = {DataType::kUint8}, .traits = {.allocates_outputs = true}}),
};

}  // namespace

TENON_OP_FAMILY(ImageDecoder, kRows);

}  // namespace tenon
