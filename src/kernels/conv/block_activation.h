// Activations other than a clamp, for results in NCHW16c that are still in L1.
#pragma once

#include <cstddef>

#include "kernels/elementwise/activation.h"

namespace tenon::kernels {

class BlockActivation {
 public:
  explicit BlockActivation(const ActivationSpec& activation)
      : activation_(activation),
        is_clamp_(activation.op == UnaryOp::kRelu || activation.op == UnaryOp::kClip) {}

  // False if the epilogue's clamp (EpilogueClamp) is the whole activation.
  explicit operator bool() const { return activation_ && !is_clamp_; }
  // Applies the activation to [pixels][16] floats in place. Then zeroes the lanes whose mask is
  // zero, which are the last ones (see ConvTile::masks).
  void operator()(const float* mask, size_t pixels, float* data) const;

 private:
  Activation activation_;
  bool is_clamp_;
};

}  // namespace tenon::kernels
