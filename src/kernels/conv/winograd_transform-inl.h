// The transforms of Winograd's minimal filtering F(m x m, 3 x 3), one vector of channels at a time.
// See A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016.

#if defined(TENON_KERNELS_WINOGRAD_TRANSFORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_KERNELS_WINOGRAD_TRANSFORM_INL_H_
#undef TENON_KERNELS_WINOGRAD_TRANSFORM_INL_H_
#else
#define TENON_KERNELS_WINOGRAD_TRANSFORM_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/conv/block16-inl.h"
#include "kernels/conv/winograd_points.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {

HWY_INLINE VBlock Scaled(VBlock x, double factor) {
  return hn::Mul(x, hn::Set(DBlock(), static_cast<float>(factor)));
}
// sum + factor * x
HWY_INLINE VBlock AddScaled(VBlock sum, double factor, VBlock x) {
  return hn::MulAdd(x, hn::Set(DBlock(), static_cast<float>(factor)), sum);
}

// F(2, 3), with the points 0, 1, -1 and infinity.
struct Winograd2 {
  static constexpr size_t kOut = 2;
  static constexpr size_t kSize = 4;

  static HWY_INLINE void Input(const VBlock (&x)[4], VBlock (&y)[4]) {
    y[0] = hn::Sub(x[0], x[2]);
    y[1] = hn::Add(x[1], x[2]);
    y[2] = hn::Sub(x[2], x[1]);
    y[3] = hn::Sub(x[3], x[1]);
  }
  static HWY_INLINE void Output(const VBlock (&x)[4], VBlock (&y)[2]) {
    y[0] = hn::Add(x[0], hn::Add(x[1], x[2]));
    y[1] = hn::Add(hn::Sub(x[1], x[2]), x[3]);
  }
};

// F(4, 3), with the points 0, a, -a, b, -b and infinity.
struct Winograd4 {
  static constexpr size_t kOut = 4;
  static constexpr size_t kSize = 6;
  static constexpr double kA = kWinogradA;
  static constexpr double kB = kWinogradB;
  static constexpr double kA2 = kA * kA;
  static constexpr double kB2 = kB * kB;

  static HWY_INLINE void Input(const VBlock (&x)[6], VBlock (&y)[6]) {
    const VBlock a_even = AddScaled(x[4], -kB2, x[2]);
    const VBlock a_odd = Scaled(AddScaled(x[3], -kB2, x[1]), kA);
    const VBlock b_even = AddScaled(x[4], -kA2, x[2]);
    const VBlock b_odd = Scaled(AddScaled(x[3], -kA2, x[1]), kB);
    y[0] = AddScaled(AddScaled(x[4], -(kA2 + kB2), x[2]), kA2 * kB2, x[0]);
    y[1] = hn::Add(a_even, a_odd);
    y[2] = hn::Sub(a_even, a_odd);
    y[3] = hn::Add(b_even, b_odd);
    y[4] = hn::Sub(b_even, b_odd);
    y[5] = AddScaled(AddScaled(x[5], -(kA2 + kB2), x[3]), kA2 * kB2, x[1]);
  }
  static HWY_INLINE void Output(const VBlock (&x)[6], VBlock (&y)[4]) {
    const VBlock a_sum = hn::Add(x[1], x[2]);
    const VBlock a_difference = hn::Sub(x[1], x[2]);
    const VBlock b_sum = hn::Add(x[3], x[4]);
    const VBlock b_difference = hn::Sub(x[3], x[4]);
    y[0] = hn::Add(hn::Add(x[0], a_sum), b_sum);
    y[1] = AddScaled(Scaled(a_difference, kA), kB, b_difference);
    y[2] = AddScaled(Scaled(a_sum, kA2), kB2, b_sum);
    y[3] = AddScaled(AddScaled(x[5], kA * kA2, a_difference), kB * kB2, b_difference);
  }
};

// Transforms kSize x kSize pixels, strides in floats, to as many positions. A null pixel row or
// column outside the image is given by the ranges of rows and columns that are inside.
template <class W>
HWY_INLINE void TransformInput(const float* in, size_t row_stride, const size_t (&rows)[2],
                               const size_t (&columns)[2], float* out, size_t position_stride) {
  constexpr size_t n = W::kSize;
  const DBlock d;
  VBlock half[n][n];  // [column][row]
  for (size_t c = 0; c < n; ++c) {
    VBlock x[n];
    const bool inside = c >= columns[0] && c < columns[1];
    HWY_UNROLL(6)
    for (size_t r = 0; r < n; ++r) {
      x[r] = hn::Zero(d);
      if (inside && r >= rows[0] && r < rows[1]) {
        x[r] = hn::LoadU(d, in + r * row_stride + c * kChannelBlock);
      }
    }
    W::Input(x, half[c]);
  }
  for (size_t r = 0; r < n; ++r) {
    VBlock x[n], y[n];
    HWY_UNROLL(6) for (size_t c = 0; c < n; ++c) x[c] = half[c][r];
    W::Input(x, y);
    HWY_UNROLL(6)
    for (size_t c = 0; c < n; ++c) hn::StoreU(y[c], d, out + (r * n + c) * position_stride);
  }
}

// Transforms the positions back to kOut x kOut pixels [row][column].
template <class W>
HWY_INLINE void TransformOutput(const float* in, size_t position_stride,
                                VBlock (&out)[W::kOut][W::kOut]) {
  constexpr size_t n = W::kSize;
  const DBlock d;
  VBlock half[W::kOut][n];
  for (size_t c = 0; c < n; ++c) {
    VBlock x[n], y[W::kOut];
    HWY_UNROLL(6)
    for (size_t r = 0; r < n; ++r) x[r] = hn::LoadU(d, in + (r * n + c) * position_stride);
    W::Output(x, y);
    HWY_UNROLL(4) for (size_t r = 0; r < W::kOut; ++r) half[r][c] = y[r];
  }
  HWY_UNROLL(4) for (size_t r = 0; r < W::kOut; ++r) W::Output(half[r], out[r]);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#endif
