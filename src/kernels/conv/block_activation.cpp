#include "kernels/conv/block_activation.h"

#include "kernels/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/block_activation.cpp"
#include <hwy/foreach_target.h>

#include "kernels/conv/block16-inl.h"
#include "kernels/elementwise/activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {
namespace {

void Activate(const ActivationSpec& activation, const float* mask, size_t pixels, float* data) {
  WithActivation(activation, [=](auto functor) HWY_ATTR {
    const Block lanes = LoadBlock(mask);
    for (size_t p = 0; p < pixels; ++p) {
      Block x = LoadBlock(data + p * kChannelBlock);
      TENON_FOR_BLOCK(i, Block) x.v[i] = hn::And(functor(DBlock(), x.v[i]), lanes.v[i]);
      StoreBlock(x, data + p * kChannelBlock);
    }
  });
}

}  // namespace

const BlockActivation kBlockActivation = &Activate;

}  // namespace HWY_NAMESPACE

#if HWY_ONCE
BlockActivation SelectBlockActivation(const ActivationSpec& activation) {
  switch (activation.kind) {
    case Activation::kNone:
    case Activation::kRelu:
    case Activation::kClip:
      return nullptr;
    default:
      return TENON_SELECT_TABLE(BlockActivation, kBlockActivation);
  }
}
#endif

}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();
