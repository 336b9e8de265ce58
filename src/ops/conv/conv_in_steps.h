// Convolutions and their gradients by Winograd's filtering in NCHW, for weights that change.
#pragma once

#include <optional>

#include "kernels/conv/conv_general.h"
#include "kernels/conv/conv_steps.h"
#include "kernels/conv/conv_weight_gradient.h"
#include "kernels/conv/conv_winograd_planar.h"
#include "kernels/conv/winograd_gradient.h"
#include "runtime/kernel_context.h"

namespace tenon {

// A convolution as steps of tasks; its buffers outlive it.
class ConvInSteps {
 public:
  // The faster way to compute the convolution; nothing if RunConvGeneralTask is faster.
  static std::optional<ConvInSteps> OfConv(const kernels::ConvGeneralArgs& args);
  // The same for the transposed convolution that RunConvTransposeTask would compute.
  static std::optional<ConvInSteps> OfTranspose(const kernels::ConvGeneralArgs& args);
  // For the weights' gradient that RunConvWeightGradientTask would compute.
  static std::optional<ConvInSteps> OfWeightGradient(const kernels::ConvWeightGradientArgs& args);

  // Bytes of scratch memory.
  size_t ScratchBytes(const KernelContext& context) const;
  // `memory`: ScratchBytes bytes, aligned to 64.
  void Run(KernelContext& context, std::byte* memory) const;

 private:
  size_t TaskCount(size_t step) const;
  size_t MostTasks() const;

  kernels::ConvSteps steps_ = {};
  std::optional<kernels::ConvWinogradPlanarArgs> conv_;
  kernels::WinogradGradientArgs gradient_ = {};  // without conv_
};

}  // namespace tenon
