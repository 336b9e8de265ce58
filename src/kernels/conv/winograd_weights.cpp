#include <algorithm>

#include "kernels/conv/conv_winograd.h"
#include "kernels/conv/winograd_points.h"
#include "kernels/dispatch.h"
#include "kernels/transpose_tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/winograd_weights.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
using PackWinogradFunction = void (*)(const Conv2dShape& shape, const float* weights, size_t block,
                                      float* packed);
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Transforms are computed in double: the data's transforms would enlarge their errors.
#if HWY_HAVE_FLOAT64
using DoubleTag = hn::CappedTag<double, 8>;
using FloatTag = hn::Rebind<float, DoubleTag>;
using V = hn::Vec<DoubleTag>;
constexpr size_t kLanes = hn::MaxLanes(DoubleTag());

HWY_INLINE V Load(const float* from) {
  return hn::PromoteTo(DoubleTag(), hn::LoadU(FloatTag(), from));
}
HWY_INLINE void Store(V x, float* to) { hn::StoreU(hn::DemoteTo(FloatTag(), x), FloatTag(), to); }
HWY_INLINE V Add(V a, V b) { return hn::Add(a, b); }
HWY_INLINE V Sub(V a, V b) { return hn::Sub(a, b); }
HWY_INLINE V Scale(V a, double by) { return hn::Mul(a, hn::Set(DoubleTag(), by)); }
// a * by + b
HWY_INLINE V ScaleAdd(V a, double by, V b) { return hn::MulAdd(hn::Set(DoubleTag(), by), a, b); }
#else
using V = double;
constexpr size_t kLanes = 1;

HWY_INLINE V Load(const float* from) { return *from; }
HWY_INLINE void Store(V x, float* to) { *to = static_cast<float>(x); }
HWY_INLINE V Add(V a, V b) { return a + b; }
HWY_INLINE V Sub(V a, V b) { return a - b; }
HWY_INLINE V Scale(V a, double by) { return a * by; }
HWY_INLINE V ScaleAdd(V a, double by, V b) { return a * by + b; }
#endif

// The values of the filter's polynomial at the interpolation points, scaled: G g.
HWY_INLINE void TransformFilter2(V g0, V g1, V g2, V* y) {
  const V even = Scale(Add(g0, g2), 0.5), odd = Scale(g1, 0.5);
  y[0] = g0;
  y[1] = Add(even, odd);
  y[2] = Sub(even, odd);
  y[3] = g2;
}
HWY_INLINE void TransformFilter4(V g0, V g1, V g2, V* y) {
  constexpr double kA2 = kWinogradA * kWinogradA;
  constexpr double kB2 = kWinogradB * kWinogradB;
  constexpr double kScaleA = 1 / (2 * kA2 * (kA2 - kB2));
  constexpr double kScaleB = 1 / (2 * kB2 * (kB2 - kA2));
  const V even_a = Scale(ScaleAdd(g2, kA2, g0), kScaleA);
  const V odd_a = Scale(g1, kWinogradA * kScaleA);
  const V even_b = Scale(ScaleAdd(g2, kB2, g0), kScaleB);
  const V odd_b = Scale(g1, kWinogradB * kScaleB);
  y[0] = Scale(g0, 1 / (kA2 * kB2));
  y[1] = Add(even_a, odd_a);
  y[2] = Sub(even_a, odd_a);
  y[3] = Add(even_b, odd_b);
  y[4] = Sub(even_b, odd_b);
  y[5] = g2;
}
template <size_t kSide>
HWY_INLINE void TransformFilter(V g0, V g1, V g2, V* y) {
  if constexpr (kSide == 4) {
    TransformFilter2(g0, g1, g2, y);
  } else {
    TransformFilter4(g0, g1, g2, y);
  }
}

// G g G' of kLanes filters; tap t of them begins at g[16 t], position p goes to out[p * stride].
template <size_t kSide>
HWY_INLINE void TransformFilters(const float* g, size_t stride, float* out) {
  const auto tap = [=](size_t t) HWY_ATTR { return Load(g + t * kChannelBlock); };
  V rows[3][kSide];
  for (size_t r = 0; r < 3; ++r) {
    TransformFilter<kSide>(tap(3 * r), tap(3 * r + 1), tap(3 * r + 2), rows[r]);
  }
  for (size_t c = 0; c < kSide; ++c) {
    V column[kSide];
    TransformFilter<kSide>(rows[0][c], rows[1][c], rows[2][c], column);
    for (size_t r = 0; r < kSide; ++r) Store(column[r], out + (r * kSide + c) * stride);
  }
}

template <size_t kSide>
void PackBlock(const Conv2dShape& shape, const float* weights, size_t block, float* packed) {
  constexpr size_t kTaps = 9, kFilters = 7;  // at a time, so that they stay in L1
  const size_t frames = shape.frames.kernel;
  const size_t padded = ChannelBlocks(shape.in_channels) * kChannelBlock;  // channels of a frame
  const size_t stride = frames * padded * kChannelBlock;
  const size_t filters = shape.in_channels * frames;
  const size_t depth = filters * kTaps;
  const size_t rows = std::min(kChannelBlock, shape.out_channels - block * kChannelBlock);
  const float* from = weights + block * kChannelBlock * depth;
  if (shape.in_channels % kChannelBlock != 0) std::fill_n(packed, kSide * kSide * stride, 0.0f);
  float tile[kFilters * kTaps][kChannelBlock] = {};
  for (size_t first = 0; first < filters; first += kFilters) {
    const size_t count = std::min(kFilters, filters - first);
    TransposeTiles(
        {rows, count * kTaps, static_cast<ptrdiff_t>(depth * sizeof(float)), sizeof(tile[0])},
        sizeof(float), reinterpret_cast<const uint8_t*>(from + first * kTaps),
        reinterpret_cast<uint8_t*>(tile));
    for (size_t i = 0; i < count; ++i) {
      const size_t filter = first + i;
      const size_t row = filter % frames * padded + filter / frames;
      for (size_t lane = 0; lane < kChannelBlock; lane += kLanes) {
        TransformFilters<kSide>(tile[i * kTaps] + lane, stride,
                                packed + row * kChannelBlock + lane);
      }
    }
  }
}

}  // namespace

const PackWinogradFunction kPackWinograd2 = &PackBlock<4>;
const PackWinogradFunction kPackWinograd4 = &PackBlock<6>;

}  // namespace HWY_NAMESPACE

#if HWY_ONCE
size_t PackedWinogradWeightsSize(const Conv2dShape& shape, WinogradTile tile) {
  const size_t side = static_cast<size_t>(tile) + 2;
  return ChannelBlocks(shape.out_channels) * shape.frames.kernel *
         ChannelBlocks(shape.in_channels) * side * side * kChannelBlock * kChannelBlock;
}

void PackWinogradWeights(const Conv2dShape& shape, WinogradTile tile, const float* weights,
                         size_t block, float* packed) {
  const PackWinogradFunction pack = tile == WinogradTile::k2x2
                                        ? TENON_SELECT_TABLE(PackWinogradFunction, kPackWinograd2)
                                        : TENON_SELECT_TABLE(PackWinogradFunction, kPackWinograd4);
  pack(shape, weights, block, packed);
}
#endif

}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();
