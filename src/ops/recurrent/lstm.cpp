#include <algorithm>

#include "ops/framework/expected_shape.h"
#include "ops/framework/stateful_kernel.h"
#include "ops/recurrent/byte_recurrence.h"
#include "ops/recurrent/recurrent.h"
#include "ops/recurrent/scalar_recurrent.h"

namespace tenon {
namespace {

constexpr std::string_view kMicrosoft = "com.microsoft";
constexpr size_t kGates = 4;  // i, o, f, c

Status InferLstm(const RecurrentAttrs& attrs, ShapeContext& context) {
  return InferRecurrent(attrs, kGates, context);
}

// AttnLSTM-1 of com.microsoft.
Status InferAttnLstm(const RecurrentAttrs& attrs, ShapeContext& context) {
  for (size_t i = kInputQueryWeight; i <= kInputMemory; ++i) {
    if (!context.HasInput(i)) return InvalidArgument("input {} is missing", i);
  }
  TENON_ASSIGN_OR_RETURN(const SymbolicShape memory, context.InputOfRank(kInputMemory, 3));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape keys, context.InputOfRank(kInputMemoryWeight, 3));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.InputOfRank(kInputX, 3));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape r, context.InputOfRank(kInputR, 3));
  const Dim &directions = r[0], &hidden = r[2], &depth = memory[2], &width = keys[2];
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kInputQueryWeight, {directions, hidden, width}));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kInputMemoryWeight, {directions, depth, width}));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kInputScoreWeight, {directions, width}));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kInputMemory, {x[1], memory[1], depth}));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kInputMemoryLens, {x[1]}));
  Dim fed_back = depth;
  if (context.HasInput(kInputAttentionWeight)) {
    TENON_ASSIGN_OR_RETURN(const SymbolicShape layer,
                           context.InputOfRank(kInputAttentionWeight, 3));
    fed_back = layer[2];
    TENON_RETURN_IF_ERROR(
        CheckInputShape(context, kInputAttentionWeight, {directions, depth + hidden, fed_back}));
  }
  return InferRecurrent(attrs, kGates, context, fed_back);
}

// LSTM-22 and LSTMTraining-1 of com.microsoft, which keeps the gates and all cell states. `clip`
// bounds the arguments of the gates' activations but not those of the output's. com.tenon LSTM-1
// rounds the state for the product with R, as DynamicQuantizeLSTM does; R may have bytes.
template <bool rounds_state>
class Lstm final : public StatefulKernel<InferLstm>, private RecurrentCell {
 public:
  Status Prepare(KernelInfo& info) {
    using enum UnaryOp;
    constexpr UnaryOp kDefaults[] = {kSigmoid, kTanh, kTanh};
    TENON_RETURN_IF_ERROR(this->Bind(info));
    TENON_RETURN_IF_ERROR(layer_.Prepare(info, attrs_, kGates));
    TENON_ASSIGN_OR_RETURN(const auto activations,
                           CellActivationsOf(attrs_, layer_.directions(), kDefaults));
    for (size_t first = 0; first < activations.size(); first += 3) {
      activations_.push_back({activations[first], activations[first + 1], activations[first + 2],
                              attrs_.input_forget});
      activations_.back().h.clip = kernels::CellActivation().clip;
    }
    if constexpr (rounds_state) {
      TENON_RETURN_IF_ERROR(bytes_.Prepare(info));
      if (bytes_.is_kept()) return OkStatus();
    }
    TENON_RETURN_IF_ERROR(weights_.Prepare(info, kInputR, 0, 1, 1));
    if (info.StoredConstant(kInputR)) info.ReleaseConstant(kInputR);
    return OkStatus();
  }

  Status Run(KernelContext& context) const override { return layer_.Run(context, *this); }

 private:
  size_t WorkFloats(const RecurrentSizes& sizes) const override {
    return rounds_state ? ByteRecurrence::WorkFloats(sizes) : 0;
  }
  size_t TaskBytes(const KernelContext& context, const RecurrentSizes& sizes) const override {
    return bytes_.is_kept() ? bytes_.TaskBytes(context, sizes)
                            : weights_.TaskBytes(context, sizes.batch);
  }
  size_t GatesWithJointBias() const override { return kGates; }

  void Step(const RecurrentStep& step) const override {
    const size_t hidden = step.sizes.hidden;
    if (bytes_.is_kept()) {
      bytes_.AddTo(step);
    } else {
      const float* h = rounds_state ? ByteRecurrence::RoundedState(step) : step.h;
      step.Multiply(weights_, h, step.gates, step.gates_stride, 1);
    }
    const float* peepholes = nullptr;
    if (step.context.HasInput(kInputP)) {
      peepholes = step.context.Input(kInputP).data<float>() + step.direction * 3 * hidden;
    }
    step.ForEachActiveRow([&](size_t row) {
      kernels::LstmCell(activations_[step.direction], hidden, step.gates + row * step.gates_stride,
                        peepholes, step.c + row * hidden, step.h + row * hidden, step.Kept(row));
    });
  }

  RecurrentLayer layer_;
  RecurrentWeights weights_;
  ByteRecurrence bytes_;
  std::vector<kernels::LstmActivations> activations_;  // one for each direction
};

using DoubleLstm = ScalarRecurrent<double, InferLstm, RecurrentKind::kLstm>;
template <class T>
using AttnLstm = ScalarRecurrent<T, InferAttnLstm, RecurrentKind::kAttnLstm>;

constexpr OpRow kRows[] = {
    OpClass<Lstm<false>>("LSTM", {.types = kFloat32Only}),
    OpClass<Lstm<true>>("LSTM", {.domain = "com.tenon", .types = kFloat32Only}),
    OpClass<Lstm<false>>("LSTMTraining", {.domain = kMicrosoft, .types = kFloat32Only}),
    OpClass<DoubleLstm>("LSTMTraining", {.domain = kMicrosoft, .types = {DataType::kDouble}}),
    OpClass<DoubleLstm>("LSTM", {.types = {DataType::kDouble}}),
    OpClass<AttnLstm<float>>("AttnLSTM", {.domain = kMicrosoft, .types = kFloat32Only}),
    OpClass<AttnLstm<double>>("AttnLSTM", {.domain = kMicrosoft, .types = {DataType::kDouble}}),
};

}  // namespace

TENON_OP_FAMILY(Lstm, kRows);

}  // namespace tenon
