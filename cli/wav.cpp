#include "wav.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "file.h"
#include "text.h"

namespace tenon::cli {
namespace {

constexpr int kPcm = 1;
constexpr int kFloat = 3;
constexpr int kExtensible = 0xFFFE;  // the format's number is then at the start of its GUID

struct WavFormat {
  int tag = 0;
  int channels = 0;
  int sample_rate = 0;
  int bits = 0;
};

uint32_t Number(std::string_view bytes, size_t offset, size_t size) {
  uint32_t number = 0;
  for (size_t i = size; i-- > 0;) {
    number = number << 8 | static_cast<unsigned char>(bytes[offset + i]);
  }
  return number;
}

WavFormat ReadFormat(std::string_view chunk, const std::string& name) {
  constexpr size_t kGuidOffset = 24;
  if (chunk.size() < 16) Fail("{}: a damaged WAV file", name);
  WavFormat format;
  format.tag = static_cast<int>(Number(chunk, 0, 2));
  format.channels = static_cast<int>(Number(chunk, 2, 2));
  format.sample_rate = static_cast<int>(Number(chunk, 4, 4));
  format.bits = static_cast<int>(Number(chunk, 14, 2));
  if (format.tag == kExtensible && chunk.size() >= kGuidOffset + 2) {
    format.tag = static_cast<int>(Number(chunk, kGuidOffset, 2));
  }
  const bool is_whole = format.bits % 8 == 0 && format.bits >= 8 && format.bits <= 32;
  const bool known =
      (format.tag == kPcm && is_whole) || (format.tag == kFloat && format.bits == 32);
  if (!known || format.channels == 0) {
    Fail(
        "{}: expected WAV samples of 8, 16, 24 or 32-bit integers or 32-bit floats, got format {} "
        "of {} bits",
        name, format.tag, format.bits);
  }
  return format;
}

// An integer of `size` bytes, scaled to [-1, 1). Integers of one byte are unsigned: 128 is silence.
float PcmSample(uint32_t number, size_t size) {
  if (size == 1) number ^= 0x80;
  const auto widened = static_cast<int32_t>(number << (32 - 8 * size));
  return static_cast<float>(static_cast<double>(widened) / 2147483648.0);
}

std::vector<float> ReadSamples(std::string_view data, const WavFormat& format) {
  const size_t item = static_cast<size_t>(format.bits / 8);
  const size_t channels = static_cast<size_t>(format.channels);
  std::vector<float> samples(data.size() / (item * channels));
  for (size_t i = 0; i < samples.size(); ++i) {
    float sum = 0;
    for (size_t c = 0; c < channels; ++c) {
      const uint32_t bits = Number(data, (i * channels + c) * item, item);
      float sample = 0;
      if (format.tag == kPcm) {
        sample = PcmSample(bits, item);
      } else {
        std::memcpy(&sample, &bits, sizeof(sample));
      }
      sum += sample;
    }
    samples[i] = sum / static_cast<float>(channels);
  }
  return samples;
}

// The shape for `count` samples, its sample axis -1 if that is free.
std::vector<int64_t> SoundShape(const ValueSpec& input, const DimSizes& dims, size_t& axis) {
  std::vector<int64_t> shape;
  for (const DimSpec& dim : *input.shape) {
    const auto given = dims.find(dim.name);
    shape.push_back(dim.size < 0 && given != dims.end() ? given->second : dim.size);
  }
  axis = shape.size() - 1;
  while (axis > 0 && shape[axis] == 1) --axis;
  if (shape[axis] == 1) axis = shape.size() - 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i == axis) continue;
    if (shape[i] == -1) shape[i] = 1;
    if (shape[i] != 1) {
      Fail("input '{}': expected {}, which one sound cannot be", input.name, input.Text());
    }
  }
  return shape;
}

}  // namespace

bool IsWav(std::span<const std::byte> bytes) {
  const std::string_view text = AsText(bytes);
  return text.size() >= 12 && text.starts_with("RIFF") && text.substr(8, 4) == "WAVE";
}

Sound DecodeWav(std::span<const std::byte> bytes, const std::string& name) {
  std::string_view rest = AsText(bytes).substr(12);
  WavFormat format;
  while (rest.size() >= 8) {
    const std::string_view id = rest.substr(0, 4);
    const size_t size = Number(rest, 4, 4);
    const std::string_view chunk = rest.substr(8, size);  // recorders may leave the last size open
    if (id == "fmt ") format = ReadFormat(chunk, name);
    if (id == "data" && format.channels > 0) {
      return {format.sample_rate, ReadSamples(chunk, format)};
    }
    rest.remove_prefix(std::min(rest.size(), 8 + chunk.size() + chunk.size() % 2));
  }
  Fail("{}: a WAV file without sound", name);
}

Array ReadWav(std::span<const std::byte> bytes, const std::string& name, const ValueSpec& input,
              const DimSizes& dims) {
  if (!IsFloatingPoint(input.type) || !input.shape || input.shape->empty()) {
    Fail("input '{}': expected {}, which sound cannot be: '{}'", input.name, input.Text(), name);
  }
  const Sound sound = DecodeWav(bytes, Format("'{}'", name));
  size_t axis = 0;
  std::vector<int64_t> shape = SoundShape(input, dims, axis);
  const size_t count = sound.samples.size();
  if (shape[axis] == -1) shape[axis] = static_cast<int64_t>(count);
  const size_t wanted = static_cast<size_t>(shape[axis]);
  if (wanted != count) {
    Note(Format("input '{}': '{}' has {} samples ({:.2f} s), {} to {}", input.name, name, count,
                static_cast<double>(count) / std::max(sound.sample_rate, 1),
                wanted < count ? "cut" : "continued with silence", wanted));
  }
  Array array = MakeArray(input.type, std::move(shape));
  for (size_t i = 0; i < std::min(wanted, count); ++i) {
    WriteNumber(input.type, array.bytes.data(), i, sound.samples[i]);
  }
  return array;
}

}  // namespace tenon::cli
