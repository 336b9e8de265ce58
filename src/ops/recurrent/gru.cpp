#include <algorithm>

#include "ops/framework/stateful_kernel.h"
#include "ops/recurrent/recurrent.h"
#include "ops/recurrent/scalar_recurrent.h"

namespace tenon {
namespace {

constexpr size_t kGates = 3;  // z, r, h

Status InferGru(const RecurrentAttrs& attrs, ShapeContext& context) {
  return InferRecurrent(attrs, kGates, context);
}

// GRU-22 and GRUTraining-1 of com.microsoft, which keeps the gates. With `linear_before_reset`
// there is one product with all of R; otherwise the gates z and r come first, and the reset state
// is multiplied by the rest of R.
class Gru final : public StatefulKernel<InferGru>, private RecurrentCell {
 public:
  Status Prepare(KernelInfo& info) {
    using enum UnaryOp;
    constexpr UnaryOp kDefaults[] = {kSigmoid, kTanh};
    TENON_RETURN_IF_ERROR(Bind(info));
    TENON_RETURN_IF_ERROR(layer_.Prepare(info, attrs_, kGates));
    TENON_ASSIGN_OR_RETURN(const auto activations,
                           CellActivationsOf(attrs_, layer_.directions(), kDefaults));
    for (size_t first = 0; first < activations.size(); first += 2) {
      activations_.push_back({activations[first], activations[first + 1]});
    }
    if (attrs_.linear_before_reset) {
      TENON_RETURN_IF_ERROR(weights_.Prepare(info, kInputR, 0, 3, 3));
    } else {
      TENON_RETURN_IF_ERROR(weights_.Prepare(info, kInputR, 0, 2, 3));
      TENON_RETURN_IF_ERROR(candidate_weights_.Prepare(info, kInputR, 2, 3, 3));
    }
    if (info.StoredConstant(kInputR)) info.ReleaseConstant(kInputR);
    return OkStatus();
  }

  Status Run(KernelContext& context) const override { return layer_.Run(context, *this); }

 private:
  size_t WorkFloats(const RecurrentSizes& sizes) const override {
    return sizes.batch * sizes.hidden * (attrs_.linear_before_reset ? 3 : 1);
  }
  size_t TaskBytes(const KernelContext& context, const RecurrentSizes& sizes) const override {
    const size_t bytes = weights_.TaskBytes(context, sizes.batch);
    if (attrs_.linear_before_reset) return bytes;
    return std::max(bytes, candidate_weights_.TaskBytes(context, sizes.batch));
  }
  size_t GatesWithJointBias() const override { return attrs_.linear_before_reset ? 2 : 3; }

  void Step(const RecurrentStep& step) const override {
    if (attrs_.linear_before_reset) {
      StepLinear(step);
    } else {
      StepReset(step);
    }
  }

  void StepLinear(const RecurrentStep& step) const {
    const size_t hidden = step.sizes.hidden, columns = kGates * hidden;
    step.Multiply(weights_, step.h, step.work, columns, 0);
    // The bias inside the reset, which is not a part of the gates' bias.
    const float* bias = step.bias ? step.bias + columns + 2 * hidden : nullptr;
    step.ForEachActiveRow([&](size_t row) {
      float* recurrences = step.work + row * columns;
      if (bias) {
        for (size_t i = 0; i < hidden; ++i) recurrences[2 * hidden + i] += bias[i];
      }
      kernels::GruCellLinear(activations_[step.direction], hidden,
                             step.gates + row * step.gates_stride, recurrences,
                             step.h + row * hidden, step.Kept(row));
    });
  }

  void StepReset(const RecurrentStep& step) const {
    const size_t hidden = step.sizes.hidden;
    const kernels::GruActivations& activations = activations_[step.direction];
    step.Multiply(weights_, step.h, step.gates, step.gates_stride, 1);
    if (step.sequence_lens) std::fill_n(step.work, step.sizes.batch * hidden, 0.0f);
    step.ForEachActiveRow([&](size_t row) {
      kernels::GruCellGates(activations, hidden, step.gates + row * step.gates_stride,
                            step.h + row * hidden, step.work + row * hidden, step.Kept(row));
    });
    step.Multiply(candidate_weights_, step.work, step.gates + 2 * hidden, step.gates_stride, 1);
    step.ForEachActiveRow([&](size_t row) {
      const float* gates = step.gates + row * step.gates_stride;
      float* const kept = step.Kept(row);
      kernels::GruCellOutput(activations, hidden, gates, gates + 2 * hidden, step.h + row * hidden,
                             kept ? kept + 2 * hidden : nullptr);
    });
  }

  RecurrentLayer layer_;
  RecurrentWeights weights_;                          // of z and r, and of h if linear_before_reset
  RecurrentWeights candidate_weights_;                // of h otherwise
  std::vector<kernels::GruActivations> activations_;  // one for each direction
};

constexpr std::string_view kMicrosoft = "com.microsoft";
using DoubleGru = ScalarRecurrent<double, InferGru, RecurrentKind::kGru>;

constexpr OpRow kRows[] = {
    OpClass<Gru>("GRU", {.types = kFloat32Only}),
    OpClass<DoubleGru>("GRU", {.types = {DataType::kDouble}}),
    OpClass<Gru>("GRUTraining", {.domain = kMicrosoft, .types = kFloat32Only}),
    OpClass<DoubleGru>("GRUTraining", {.domain = kMicrosoft, .types = {DataType::kDouble}}),
};

}  // namespace

TENON_OP_FAMILY(Gru, kRows);

}  // namespace tenon
