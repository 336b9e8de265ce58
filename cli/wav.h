// Sound as model inputs.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "array.h"
#include "model.h"

namespace tenon::cli {

bool IsWav(std::span<const std::byte> bytes);

struct Sound {
  int sample_rate = 0;         // in Hz
  std::vector<float> samples;  // in [-1, 1]; several channels are averaged
};

// RIFF WAVE with integers of 8, 16, 24 or 32 bits or 32-bit floats. Throws Error, its text starting
// with `name`.
Sound DecodeWav(std::span<const std::byte> bytes, const std::string& name);

// Puts samples along the last axis of the input that is not 1; the other axes have size 1. If the
// input fixes the number of samples, the sound is cut or filled with zeros, and a note says so.
// Throws Error for an input that cannot be a sound.
Array ReadWav(std::span<const std::byte> bytes, const std::string& name, const ValueSpec& input,
              const DimSizes& dims);

}  // namespace tenon::cli
