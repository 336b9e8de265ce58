// Reference convolution in double, and buffers with guards, for the tests of the convolution
// kernels.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "kernels/conv/conv_shape.h"
#include "kernels/dispatch.h"

namespace tenon::kernels {

// `size` floats, NaN at first, between guards; on destruction the guards must be untouched. With
// `aligned` the floats begin on 64 bytes, else 4 bytes past such an address.
class GuardedBuffer {
 public:
  explicit GuardedBuffer(size_t size, bool aligned = false)
      : size_(size), storage_(size + 2 * kGuard + 16, kMark) {
    const size_t misaligned = reinterpret_cast<uintptr_t>(storage_.data()) / 4 % 16;
    start_ = kGuard + (16 - misaligned) % 16 + (aligned ? 0 : 1);
    std::fill_n(data(), size, std::nanf(""));
  }
  explicit GuardedBuffer(const std::vector<float>& values) : GuardedBuffer(values.size()) {
    std::copy(values.begin(), values.end(), data());
  }
  ~GuardedBuffer() {
    for (size_t i = 0; i < storage_.size(); ++i) {
      if (i >= start_ && i < start_ + size_) continue;
      EXPECT_EQ(std::bit_cast<uint32_t>(storage_[i]), std::bit_cast<uint32_t>(kMark))
          << "guard overwritten at " << static_cast<ptrdiff_t>(i) - static_cast<ptrdiff_t>(start_)
          << " of " << size_;
    }
  }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  float* data() { return storage_.data() + start_; }
  std::vector<float> values() { return {data(), data() + size_}; }

 private:
  static constexpr size_t kGuard = 64;
  static constexpr float kMark = -7.25e30f;  // large, so that a read past the end is detected too
  size_t size_;
  std::vector<float> storage_;
  size_t start_;
};

inline std::vector<float> RandomFloats(size_t size, uint32_t seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> distribution(-1, 1);
  std::vector<float> values(size);
  for (float& value : values) value = distribution(generator);
  return values;
}

// Runs `check` once for every target of this machine.
inline void ForEveryTarget(const std::function<void()>& check) {
  const Target before = ActiveTarget();
  for (const Target target : SupportedTargets()) {
    SCOPED_TRACE(TargetName(target));
    SetActiveTarget(target);
    check();
  }
  SetActiveTarget(before);
}

// The NCHW sums of a convolution of NCHW data with OIHW weights, without epilogue.
inline std::vector<double> ReferenceConv(const Conv2dShape& s, const std::vector<float>& in,
                                         const std::vector<float>& weights) {
  const size_t group_in = s.in_channels / s.groups;
  const size_t group_out = s.out_channels / s.groups;
  const size_t taps = s.frames.kernel * s.kernel_height * s.kernel_width;
  const size_t in_pixels = s.frames.in * s.in_height * s.in_width;
  // Where tap t of output pixel p is in a channel of the input; -1: in the pads.
  const auto source = [&s](size_t p, size_t t) {
    const auto at = [](size_t out, size_t stride, size_t tap, size_t dilation, size_t pad) {
      return static_cast<long>(out * stride + tap * dilation) - static_cast<long>(pad);
    };
    const size_t row = p / s.out_width, tap_row = t / s.kernel_width;
    const long z = at(row / s.out_height, s.frames.stride, tap_row / s.kernel_height,
                      s.frames.dilation, s.frames.pad_begin);
    const long y = at(row % s.out_height, s.stride_height, tap_row % s.kernel_height,
                      s.dilation_height, s.pad_top);
    const long x =
        at(p % s.out_width, s.stride_width, t % s.kernel_width, s.dilation_width, s.pad_left);
    const auto depth = static_cast<long>(s.frames.in), height = static_cast<long>(s.in_height),
               width = static_cast<long>(s.in_width);
    if (z < 0 || z >= depth || y < 0 || y >= height || x < 0 || x >= width) return -1L;
    return (z * height + y) * width + x;
  };
  std::vector<double> out;
  for (size_t n = 0; n < s.batch; ++n) {
    for (size_t o = 0; o < s.out_channels; ++o) {
      for (size_t p = 0; p < s.frames.out * s.out_height * s.out_width; ++p) {
        double sum = 0;
        for (size_t t = 0; t < taps; ++t) {
          const long from = source(p, t);
          for (size_t i = 0; from >= 0 && i < group_in; ++i) {
            const size_t channel = n * s.in_channels + o / group_out * group_in + i;
            sum += static_cast<double>(in[channel * in_pixels + static_cast<size_t>(from)]) *
                   weights[(o * group_in + i) * taps + t];
          }
        }
        out.push_back(sum);
      }
    }
  }
  return out;
}

// Position of an element in NCHW16c.
inline size_t BlockedIndex(size_t channels, size_t pixels, size_t n, size_t c, size_t pixel) {
  const size_t block = n * ChannelBlocks(channels) + c / kChannelBlock;
  return (block * pixels + pixel) * kChannelBlock + c % kChannelBlock;
}

// Packed weights of `size` floats, block by block, by pack(block, packed).
template <class Pack>
std::vector<float> PackBlocks(size_t out_channels, size_t size, Pack pack) {
  std::vector<float> packed(size);
  const size_t blocks = ChannelBlocks(out_channels);
  for (size_t b = 0; b < blocks; ++b) pack(b, packed.data() + b * (size / blocks));
  return packed;
}

// NCHW to NCHW16c; lanes past the channels get `filler`.
inline std::vector<float> ToBlocked(const std::vector<float>& in, size_t batch, size_t channels,
                                    size_t pixels, float filler) {
  std::vector<float> out(BlockedSize(batch, channels, pixels), filler);
  for (size_t n = 0; n < batch; ++n) {
    for (size_t c = 0; c < channels; ++c) {
      for (size_t p = 0; p < pixels; ++p) {
        out[BlockedIndex(channels, pixels, n, c, p)] = in[(n * channels + c) * pixels + p];
      }
    }
  }
  return out;
}

// Compares an NCHW16c result with an NCHW reference; lanes past the channels must be +0.
inline void ExpectBlockedNear(const std::vector<float>& got, const std::vector<double>& expected,
                              size_t batch, size_t channels, size_t pixels, double tolerance) {
  ASSERT_EQ(got.size(), BlockedSize(batch, channels, pixels));
  ASSERT_EQ(expected.size(), batch * channels * pixels);
  for (size_t n = 0; n < batch; ++n) {
    for (size_t c = 0; c < ChannelBlocks(channels) * kChannelBlock; ++c) {
      for (size_t p = 0; p < pixels; ++p) {
        const float value =
            got[BlockedIndex(ChannelBlocks(channels) * kChannelBlock, pixels, n, c, p)];
        if (c >= channels) {
          ASSERT_EQ(std::bit_cast<uint32_t>(value), 0u) << "lane " << c << " pixel " << p;
          continue;
        }
        const double want = expected[(n * channels + c) * pixels + p];
        ASSERT_NEAR(value, want, tolerance) << "n " << n << " c " << c << " pixel " << p;
      }
    }
  }
}

}  // namespace tenon::kernels
