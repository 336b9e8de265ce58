// A convolution in NCHW or one of its gradients, by the kernels that are fastest for its shape.
#pragma once

#include <variant>

#include "kernels/conv/conv_bf16.h"
#include "kernels/conv/conv_general.h"
#include "kernels/conv/conv_steps.h"
#include "kernels/conv/conv_weight_gradient.h"
#include "kernels/conv/conv_winograd_planar.h"
#include "kernels/conv/winograd_gradient.h"
#include "runtime/kernel_context.h"

namespace tenon {

// The shape of the transposed convolution: from the outputs to the inputs.
kernels::ConvGeneralShape TransposedShape(kernels::ConvGeneralShape shape);

// Steps of tasks, divided by shape alone. The buffers of the arguments outlive it.
class ConvWork {
 public:
  // may_round: what is multiplied may be rounded to bfloat16. Winograd's filtering stays in
  // float32.
  static ConvWork OfConv(const kernels::ConvGeneralArgs& args, bool may_round = false);
  // `args`: of RunConvTransposeTask, without an epilogue if `may_round` is set.
  static ConvWork OfTranspose(const kernels::ConvGeneralArgs& args, bool may_round = false);
  static ConvWork OfWeightGradient(const kernels::ConvWeightGradientArgs& args,
                                   bool may_round = false);

  // Runs all steps in the context's scratch memory. Error: out of memory.
  Status Run(KernelContext& context) const;

  // The same for kernels with more work, which divide one call of Scratch: `memory` is aligned to
  // 64 and has ScratchBytes bytes.
  size_t ScratchBytes(const KernelContext& context) const;
  void RunIn(std::byte* memory, KernelContext& context) const;

 private:
  struct General {
    kernels::ConvGeneralArgs args;
  };
  struct Transposed {
    kernels::ConvGeneralArgs args;
  };
  using Way = std::variant<General, Transposed, kernels::ConvWeightGradientArgs,
                           kernels::ConvWinogradPlanarArgs, kernels::WinogradGradientArgs,
                           kernels::ConvBf16Args>;

  explicit ConvWork(Way way);
  size_t TaskCount(size_t step) const;
  void RunTask(size_t step, size_t task, std::byte* shared, std::byte* scratch) const;

  Way way_;
  kernels::ConvSteps steps_;
};

}  // namespace tenon
