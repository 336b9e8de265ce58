// LSTM, GRU and RNN in double precision: plain loops, one task for each row of the batch.
#pragma once

#include <vector>

#include "ops/recurrent.h"

namespace tenon {

enum class RecurrentKind { kLstm, kGru, kRnn };

// What each cell applies where `activations` is left out, for one direction.
std::span<const kernels::CellFunction> DefaultActivations(RecurrentKind kind);

// Runs the node of `context`. `activations` are those of every direction, as CellActivationsOf
// gives them. Error: sequence lengths out of range, out of memory.
Status RunDoubleRecurrent(RecurrentKind kind, const RecurrentAttrs& attrs,
                          std::span<const kernels::CellActivation> activations,
                          KernelContext& context);

template <auto Infer, RecurrentKind kKind>
class DoubleRecurrent final : public StatefulKernel<Infer> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(this->Bind(info));
    TENON_ASSIGN_OR_RETURN(const size_t directions, DirectionCount(this->attrs_.direction));
    TENON_ASSIGN_OR_RETURN(activations_,
                           CellActivationsOf(this->attrs_, directions, DefaultActivations(kKind)));
    return OkStatus();
  }

  Status Run(KernelContext& context) const override {
    return RunDoubleRecurrent(kKind, this->attrs_, activations_, context);
  }

 private:
  std::vector<kernels::CellActivation> activations_;
};

}  // namespace tenon
