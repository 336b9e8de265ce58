// Shared by tests of kernels: runs on every target, and comparison with a reference in double.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/dispatch.h"

namespace tenon::kernels {

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Restores the best target when a test ends.
class TargetTest : public testing::Test {
 protected:
  ~TargetTest() override { SetActiveTarget(SupportedTargets().back()); }

  // Calls f() once per supported target, with the target in any failure's text.
  template <class F>
  static void OnEveryTarget(F&& f) {
    for (const Target target : SupportedTargets()) {
      SetActiveTarget(target);
      SCOPED_TRACE(TargetName(target));
      f();
    }
  }
};

// A small reproducible generator: the same values on every platform.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}
  uint64_t Next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return state_ >> 33;
  }
  size_t Below(size_t bound) { return Next() % bound; }
  float Uniform(float low, float high) {
    return low + (high - low) * static_cast<float>(Next() & 0xffffff) / 16777216.0f;
  }
  std::vector<float> Floats(size_t n, float low, float high) {
    std::vector<float> values(n);
    for (float& v : values) v = Uniform(low, high);
    return values;
  }

 private:
  uint64_t state_;
};

// Floats at an address that is not aligned, as in a model file.
class UnalignedFloats {
 public:
  explicit UnalignedFloats(const std::vector<float>& values)
      : bytes_(values.size() * sizeof(float) + 1) {
    if (!values.empty()) std::memcpy(&bytes_[1], values.data(), values.size() * sizeof(float));
  }
  const float* data() const { return reinterpret_cast<const float*>(bytes_.data() + 1); }

 private:
  std::vector<unsigned char> bytes_;
};

// Whether got is NaN where expected is, and within atol + rtol |expected| elsewhere.
inline bool IsNear(double got, double expected, double rtol, double atol) {
  if (std::isnan(expected)) return std::isnan(got);
  if (got == expected) return true;
  return std::abs(got - expected) <= atol + rtol * std::abs(expected);
}

inline uint32_t Bits(float x) { return std::bit_cast<uint32_t>(x); }

}  // namespace tenon::kernels
