// One pixel of an NCHW16c tensor, 16 channels, as one to four vectors.

#if defined(TENON_KERNELS_BLOCK16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_KERNELS_BLOCK16_INL_H_
#undef TENON_KERNELS_BLOCK16_INL_H_
#else
#define TENON_KERNELS_BLOCK16_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/conv_shape.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using DBlock = hn::CappedTag<float, kChannelBlock>;
using VBlock = hn::Vec<DBlock>;
constexpr size_t kBlockLanes = hn::MaxLanes(DBlock());
constexpr size_t kBlockVectors = kChannelBlock / kBlockLanes;

struct Block {
  VBlock v[kBlockVectors];
};

// Applies f(vector index) to each vector of a block.
#define TENON_FOR_BLOCK(i) HWY_UNROLL(4) for (size_t i = 0; i < kBlockVectors; ++i)

HWY_INLINE Block LoadBlock(const float* HWY_RESTRICT from) {
  Block block;
  TENON_FOR_BLOCK(i) block.v[i] = hn::LoadU(DBlock(), from + i * kBlockLanes);
  return block;
}
HWY_INLINE void StoreBlock(const Block& block, float* HWY_RESTRICT to) {
  TENON_FOR_BLOCK(i) hn::StoreU(block.v[i], DBlock(), to + i * kBlockLanes);
}
HWY_INLINE Block SetBlock(float x) {
  Block block;
  TENON_FOR_BLOCK(i) block.v[i] = hn::Set(DBlock(), x);
  return block;
}
HWY_INLINE Block ZeroBlock() { return SetBlock(0.0f); }
HWY_INLINE Block AddBlocks(Block a, const Block& b) {
  TENON_FOR_BLOCK(i) a.v[i] = hn::Add(a.v[i], b.v[i]);
  return a;
}
HWY_INLINE Block AndBlocks(Block a, const Block& b) {
  TENON_FOR_BLOCK(i) a.v[i] = hn::And(a.v[i], b.v[i]);
  return a;
}
// sum += x * w for each lane; x is one vector that serves the whole block.
HWY_INLINE void MulAddBlock(VBlock x, const Block& w, Block& sum) {
  TENON_FOR_BLOCK(i) sum.v[i] = hn::MulAdd(x, w.v[i], sum.v[i]);
}
HWY_INLINE void MulAddBlocks(const Block& x, const Block& w, Block& sum) {
  TENON_FOR_BLOCK(i) sum.v[i] = hn::MulAdd(x.v[i], w.v[i], sum.v[i]);
}

// Clamps to [low, high]. On x86 Max and Min return the second operand where one is NaN, so a NaN
// stays.
class Clamp {
 public:
  HWY_INLINE Clamp(float low, float high)
      : low_(hn::Set(DBlock(), low)), high_(hn::Set(DBlock(), high)) {}
  HWY_INLINE Block operator()(Block x) const {
    TENON_FOR_BLOCK(i) x.v[i] = hn::Min(high_, hn::Max(low_, x.v[i]));
    return x;
  }

 private:
  VBlock low_;
  VBlock high_;
};

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#endif
