#include "image.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "file.h"
#include "stb.h"
#include "text.h"

namespace tenon::cli {
namespace {

// The conversions of an image; sizes of -1 are free.
struct Plan {
  int64_t width = -1;
  int64_t height = -1;
  bool channels_last = false;
  std::string color;
  double scale = 1;
  size_t channels() const { return color == "gray" ? 1 : 3; }
};

template <class T>
std::optional<T> ParseNumber(std::string_view text) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

double ParseScale(const std::string& text) {
  const size_t slash = text.find('/');
  const auto numerator = ParseNumber<double>(std::string_view(text).substr(0, slash));
  const auto denominator = slash == text.npos
                               ? std::optional(1.0)
                               : ParseNumber<double>(std::string_view(text).substr(slash + 1));
  if (!numerator || !denominator || *denominator == 0) {
    FailUsage("--scale: expected a number such as 0.5 or 1/255, got '{}'", text);
  }
  return *numerator / *denominator;
}

void ParseSize(const std::string& text, Plan& plan) {
  constexpr int64_t kMost = 1 << 15;
  const size_t split = text.find('x');
  const auto width = ParseNumber<int64_t>(std::string_view(text).substr(0, split));
  // Without an x there is no text of a height, which is no number.
  const auto height = ParseNumber<int64_t>(
      split == text.npos ? std::string_view() : std::string_view(text).substr(split + 1));
  if (!width || !height || *width < 1 || *height < 1 || *width > kMost || *height > kMost) {
    FailUsage("--resize: expected WIDTHxHEIGHT of 1 to {}, got '{}'", kMost, text);
  }
  plan.width = *width;
  plan.height = *height;
}

// The input's sizes, -1 where they are free.
std::vector<int64_t> SizesOf(const ValueSpec& input, const DimSizes& dims) {
  if (!input.shape) return {-1, -1, -1, -1};
  std::vector<int64_t> sizes;
  for (const DimSpec& dim : *input.shape) {
    const auto given = dims.find(dim.name);
    sizes.push_back(dim.size < 0 && given != dims.end() ? given->second : dim.size);
  }
  return sizes;
}

// `sizes` has a rank of 2, 3 or 4.
Plan MakePlan(const ValueSpec& input, const std::vector<int64_t>& sizes,
              const ImageSettings& settings) {
  const size_t rank = sizes.size();
  const auto holds_channels = [&](size_t axis) { return sizes[axis] == 1 || sizes[axis] == 3; };
  Plan plan;
  int64_t channels = rank == 2 ? 1 : -1;
  if (rank > 2) {
    plan.channels_last = settings.layout.empty()
                             ? !holds_channels(rank - 3) && holds_channels(rank - 1)
                             : settings.layout == "nhwc";
    channels = sizes[plan.channels_last ? rank - 1 : rank - 3];
  }
  if (channels != -1 && channels != 1 && channels != 3) {
    Fail("input '{}': a picture has 1 or 3 channels, but {} takes {}", input.name, input.Text(),
         channels);
  }
  plan.color = !settings.color.empty() ? settings.color : channels == 1 ? "gray" : "rgb";
  if (channels != -1 && plan.channels() != static_cast<size_t>(channels)) {
    FailUsage("--color: input '{}' takes {} channels, but {} has {}", input.name, channels,
              plan.color, plan.channels());
  }
  const size_t height_axis = rank - (plan.channels_last ? 3 : 2);
  plan.height = sizes[height_axis];
  plan.width = sizes[height_axis + 1];
  if (!settings.resize.empty()) ParseSize(settings.resize, plan);
  plan.scale = !settings.scale.empty()       ? ParseScale(settings.scale)
               : IsFloatingPoint(input.type) ? 1.0 / 255
                                             : 1;
  return plan;
}

// One number per channel.
std::vector<float> PerChannel(const char* option, std::vector<float> values, float otherwise,
                              size_t channels) {
  if (values.empty()) values = {otherwise};
  if (values.size() == 1) values.resize(channels, values[0]);
  if (values.size() != channels) {
    FailUsage("{}: expected 1 or {} numbers, got {}", option, channels, values.size());
  }
  return values;
}

std::vector<int64_t> ShapeOf(const Picture& picture, bool channels_last, size_t rank) {
  std::vector<int64_t> shape = {picture.height, picture.width};
  if (rank > 2) shape.insert(channels_last ? shape.end() : shape.begin(), picture.channels);
  if (rank > 3) shape.insert(shape.begin(), 1);
  return shape;
}

}  // namespace

bool IsImage(std::span<const std::byte> bytes) {
  const std::string_view text = AsText(bytes);
  return text.starts_with("\x89PNG") || text.starts_with("\xFF\xD8\xFF");
}

Array ReadImage(std::span<const std::byte> bytes, const std::string& name, const ValueSpec& input,
                const DimSizes& dims, const ImageSettings& settings) {
  const std::vector<int64_t> sizes = SizesOf(input, dims);
  if (!IsNumber(input.type) || sizes.size() < 2 || sizes.size() > 4) {
    Fail("input '{}': expected {}, which a picture cannot be: '{}'", input.name, input.Text(),
         name);
  }
  const Plan plan = MakePlan(input, sizes, settings);
  const size_t channels = plan.channels();
  const auto mean = PerChannel("--mean", settings.mean, 0, channels);
  const auto stddev = PerChannel("--std", settings.stddev, 1, channels);
  if (std::find(stddev.begin(), stddev.end(), 0) != stddev.end()) {
    FailUsage("--std: expected numbers other than 0");
  }

  Picture picture = DecodePicture(bytes, static_cast<int>(channels), Format("'{}'", name));
  const int width = static_cast<int>(plan.width < 0 ? picture.width : plan.width);
  const int height = static_cast<int>(plan.height < 0 ? picture.height : plan.height);
  if (width != picture.width || height != picture.height) picture = Resize(picture, width, height);

  Array array = MakeArray(input.type, ShapeOf(picture, plan.channels_last, sizes.size()));
  const size_t pixels = static_cast<size_t>(width) * static_cast<size_t>(height);
  for (size_t i = 0; i < pixels; ++i) {
    for (size_t c = 0; c < channels; ++c) {
      const size_t source = plan.color == "bgr" ? channels - 1 - c : c;
      const double value =
          (picture.pixels[i * channels + source] * plan.scale - mean[c]) / stddev[c];
      const size_t target = plan.channels_last ? i * channels + c : c * pixels + i;
      WriteNumber(input.type, array.bytes.data(), target, value);
    }
  }
  return array;
}

}  // namespace tenon::cli
