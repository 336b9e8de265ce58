// LSTM, GRU and RNN in double precision and AttnLSTM of com.microsoft: scalar loops, one task for
// each row of the batch.
#pragma once

#include <vector>

#include "ops/framework/stateful_kernel.h"
#include "ops/recurrent/recurrent.h"
#include "runtime/kernel_info.h"

namespace tenon {

enum class RecurrentKind { kLstm, kGru, kRnn, kAttnLstm };

// The activations of each cell if `activations` is absent, for one direction.
std::span<const UnaryOp> DefaultActivations(RecurrentKind kind);

// Runs the node of `context`, whose inputs are of type T: double or, of AttnLSTM, float.
// `activations` are those of every direction, as CellActivationsOf gives them. Error: lengths of
// sequences out of range, out of memory.
template <class T>
Status RunScalarRecurrent(RecurrentKind kind, const RecurrentAttrs& attrs,
                          std::span<const kernels::CellActivation> activations,
                          KernelContext& context);

template <class T, auto Infer, RecurrentKind kKind>
class ScalarRecurrent final : public StatefulKernel<Infer> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(this->Bind(info));
    TENON_ASSIGN_OR_RETURN(const size_t directions, DirectionCount(this->attrs_.direction));
    TENON_ASSIGN_OR_RETURN(activations_,
                           CellActivationsOf(this->attrs_, directions, DefaultActivations(kKind)));
    return OkStatus();
  }

  Status Run(KernelContext& context) const override {
    return RunScalarRecurrent<T>(kKind, this->attrs_, activations_, context);
  }

 private:
  std::vector<kernels::CellActivation> activations_;
};

}  // namespace tenon
