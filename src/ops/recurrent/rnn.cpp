#include "ops/framework/stateful_kernel.h"
#include "ops/recurrent/recurrent.h"
#include "ops/recurrent/scalar_recurrent.h"

namespace tenon {
namespace {

Status InferRnn(const RecurrentAttrs& attrs, ShapeContext& context) {
  return InferRecurrent(attrs, 1, context);
}

// RNN-22.
class Rnn final : public StatefulKernel<InferRnn>, private RecurrentCell {
 public:
  Status Prepare(KernelInfo& info) {
    constexpr UnaryOp kDefaults[] = {UnaryOp::kTanh};
    TENON_RETURN_IF_ERROR(Bind(info));
    TENON_RETURN_IF_ERROR(layer_.Prepare(info, attrs_, 1));
    TENON_ASSIGN_OR_RETURN(activations_, CellActivationsOf(attrs_, layer_.directions(), kDefaults));
    TENON_RETURN_IF_ERROR(weights_.Prepare(info, kInputR, 0, 1, 1));
    if (info.StoredConstant(kInputR)) info.ReleaseConstant(kInputR);
    return OkStatus();
  }

  Status Run(KernelContext& context) const override { return layer_.Run(context, *this); }

 private:
  size_t WorkFloats(const RecurrentSizes&) const override { return 0; }
  size_t TaskBytes(const KernelContext& context, const RecurrentSizes& sizes) const override {
    return weights_.TaskBytes(context, sizes.batch);
  }
  size_t GatesWithJointBias() const override { return 1; }

  void Step(const RecurrentStep& step) const override {
    const size_t hidden = step.sizes.hidden;
    step.Multiply(weights_, step.h, step.gates, step.gates_stride, 1);
    step.ForEachActiveRow([&](size_t row) {
      kernels::RnnCell(activations_[step.direction], hidden, step.gates + row * step.gates_stride,
                       step.h + row * hidden);
    });
  }

  RecurrentLayer layer_;
  RecurrentWeights weights_;
  std::vector<kernels::CellActivation> activations_;  // one for each direction
};

constexpr OpRow kRows[] = {
    OpClass<Rnn>("RNN", {.types = kFloat32Only}),
    OpClass<ScalarRecurrent<double, InferRnn, RecurrentKind::kRnn>>("RNN",
                                                                    {.types = {DataType::kDouble}}),
};

}  // namespace

TENON_OP_FAMILY(Rnn, kRows);

}  // namespace tenon
