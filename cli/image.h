// Images as model inputs.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "array.h"
#include "model.h"

namespace tenon::cli {

// Empty or zero settings are derived from the input that the image is for.
struct ImageSettings {
  std::string resize;         // "WxH"; else the sizes that the input fixes, else the picture's
  std::string layout;         // "nchw" or "nhwc"; else by which axis holds 1 or 3
  std::string color;          // "rgb", "bgr" or "gray"; else by the number of channels
  std::string scale;          // "0.5" or "1/255"; else 1/255 for floating point, 1 for integers
  std::vector<float> mean;    // one number, or one per channel, taken off after scaling
  std::vector<float> stddev;  // the same, divided by last
};

bool IsImage(std::span<const std::byte> bytes);

// Elements (pixel * scale - mean) / stddev of the input's type and rank: [1, C, H, W] or
// [1, H, W, C], without the 1 for rank 3, and [H, W] for rank 2. Throws Error for invalid settings,
// a damaged file, or an input that cannot be an image.
Array ReadImage(std::span<const std::byte> bytes, const std::string& name, const ValueSpec& input,
                const DimSizes& dims, const ImageSettings& settings);

}  // namespace tenon::cli
