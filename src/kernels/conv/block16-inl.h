// One pixel of an NCHW16c tensor, 16 channels, as one to four vectors.

#if defined(TENON_KERNELS_BLOCK16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_KERNELS_BLOCK16_INL_H_
#undef TENON_KERNELS_BLOCK16_INL_H_
#else
#define TENON_KERNELS_BLOCK16_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/conv/conv_shape.h"
#include "kernels/fused-inl.h"
#include "kernels/min_max-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// kChannels neighbouring channels of one pixel, in registers.
template <size_t kChannels>
struct BlockOf {
  using D = hn::CappedTag<float, kChannels>;
  static constexpr size_t kLanes = hn::MaxLanes(D());
  static constexpr size_t kVectors = kChannels / kLanes;
  hn::Vec<D> v[kVectors];
};

using Block = BlockOf<kChannelBlock>;
using DBlock = Block::D;
using VBlock = hn::Vec<DBlock>;
constexpr size_t kBlockLanes = Block::kLanes;

#define TENON_FOR_BLOCK(i, block) HWY_UNROLL(4) for (size_t i = 0; i < block::kVectors; ++i)

template <class B = Block>
HWY_INLINE B LoadBlock(const float* HWY_RESTRICT from) {
  B block;
  TENON_FOR_BLOCK(i, B) block.v[i] = hn::LoadU(typename B::D(), from + i * B::kLanes);
  return block;
}
template <class B>
HWY_INLINE void StoreBlock(const B& block, float* HWY_RESTRICT to) {
  TENON_FOR_BLOCK(i, B) hn::StoreU(block.v[i], typename B::D(), to + i * B::kLanes);
}
template <class B = Block>
HWY_INLINE B SetBlock(float x) {
  B block;
  TENON_FOR_BLOCK(i, B) block.v[i] = hn::Set(typename B::D(), x);
  return block;
}
template <class B>
HWY_INLINE B AddBlocks(B a, const B& b) {
  TENON_FOR_BLOCK(i, B) a.v[i] = hn::Add(a.v[i], b.v[i]);
  return a;
}
template <class B>
HWY_INLINE B AndBlocks(B a, const B& b) {
  TENON_FOR_BLOCK(i, B) a.v[i] = hn::And(a.v[i], b.v[i]);
  return a;
}
// sum += x * w for each lane; x is one vector that serves the whole block.
template <class B>
HWY_INLINE void MulAddBlock(hn::Vec<typename B::D> x, const B& w, B& sum) {
  TENON_FOR_BLOCK(i, B) sum.v[i] = FastMulAdd(x, w.v[i], sum.v[i]);
}

// Clamps to [low, high]; NaN stays.
template <class B>
class Clamp {
 public:
  HWY_INLINE Clamp(float low, float high)
      : low_(hn::Set(typename B::D(), low)), high_(hn::Set(typename B::D(), high)) {}
  HWY_INLINE B operator()(B x) const {
    TENON_FOR_BLOCK(i, B) x.v[i] = MinOrSecond(high_, MaxOrSecond(low_, x.v[i]));
    return x;
  }

 private:
  hn::Vec<typename B::D> low_;
  hn::Vec<typename B::D> high_;
};

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#endif
