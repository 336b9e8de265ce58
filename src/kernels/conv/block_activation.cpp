#include "kernels/conv/block_activation.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "kernels/conv/conv_shape.h"

namespace tenon::kernels {

void BlockActivation::operator()(const float* mask, size_t pixels, float* data) const {
  activation_(data, pixels * kChannelBlock);
  size_t channels = kChannelBlock;
  while (channels > 0 && std::bit_cast<uint32_t>(mask[channels - 1]) == 0) --channels;
  if (channels == kChannelBlock) return;
  for (size_t p = 0; p < pixels; ++p) {
    std::fill_n(data + p * kChannelBlock + channels, kChannelBlock - channels, 0.0f);
  }
}

}  // namespace tenon::kernels
