// SoftmaxCrossEntropyLossGrad and SoftmaxCrossEntropyLossInternalGrad of com.microsoft: the
// gradient of SoftmaxCrossEntropyLoss by its scores, from the log probabilities that it returns.
#include <cmath>
#include <optional>
#include <string>

#include "ops/framework/expected_shape.h"
#include "ops/framework/indices.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// The last two are of the Internal form alone.
enum Input : size_t { kDy, kLogProb, kLabel, kWeight, kIgnoreIndex, kBias };

struct LossGradientAttrs {
  std::string reduction = "mean";
  std::optional<int64_t> ignore_index;
  std::optional<DataType> output_type;
  static constexpr auto Fields() {
    return std::tuple(Field("reduction", &LossGradientAttrs::reduction),
                      Field("ignore_index", &LossGradientAttrs::ignore_index),
                      Field("output_type", &LossGradientAttrs::output_type));
  }
};

Status InferLossGradient(const LossGradientAttrs& attrs, ShapeContext& context) {
  if (attrs.reduction != "none" && attrs.reduction != "sum" && attrs.reduction != "mean") {
    return InvalidArgument("attribute 'reduction': expected none, sum or mean, got '{}'",
                           attrs.reduction);
  }
  if (attrs.output_type && *attrs.output_type != DataType::kFloat) {
    return NotImplemented("attribute 'output_type': expected float, got {}",
                          DataTypeName(*attrs.output_type));
  }
  TENON_ASSIGN_OR_RETURN(SymbolicShape scores, context.Input(kLogProb));
  if (scores.rank() < 2) return InvalidArgument("input 1: expected [N, C, ...], got {}", scores);
  SymbolicShape labels = {scores[0]};
  for (size_t axis = 2; axis < scores.rank(); ++axis) labels.Append(scores[axis]);
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kLabel, labels));
  if (attrs.reduction == "none") {
    TENON_RETURN_IF_ERROR(CheckInputShape(context, kDy, labels));
  } else {
    TENON_RETURN_IF_ERROR(CheckElementCount(context, kDy, Dim(1)));
  }
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kWeight, {scores[1]}));
  TENON_RETURN_IF_ERROR(CheckElementCount(context, kIgnoreIndex, Dim(1)));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kBias, scores));
  return context.SetOutput(0, std::move(scores));
}

std::optional<int64_t> IgnoredLabel(const LossGradientAttrs& attrs, KernelContext& context) {
  if (!context.HasInput(kIgnoreIndex)) return attrs.ignore_index;
  std::optional<int64_t> label;
  VisitIndices(context.Input(kIgnoreIndex), [&](const auto* given) { label = *given; });
  return label;
}

// The scale of each position's gradient: its label's weight times dY, divided by the sum of the
// weights for a mean; 0 where the label is ignored.
class Scales {
 public:
  Scales(const LossGradientAttrs& attrs, KernelContext& context)
      : dy_(context.Input(kDy).data<float>()),
        weights_(context.HasInput(kWeight) ? context.Input(kWeight).data<float>() : nullptr),
        ignored_(IgnoredLabel(attrs, context)),
        keeps_all_(attrs.reduction == "none") {}

  float WeightOf(int64_t label) const {
    if (label == ignored_) return 0;
    return weights_ == nullptr ? 1 : weights_[label];
  }
  bool IsIgnored(int64_t label) const { return label == ignored_; }
  void DivideBy(double sum) { factor_ = sum == 0 ? 0 : static_cast<float>(1 / sum); }
  float At(size_t position, int64_t label) const {
    return WeightOf(label) * (keeps_all_ ? dy_[position] : *dy_) * factor_;
  }

 private:
  const float* dy_;
  const float* weights_;
  std::optional<int64_t> ignored_;
  bool keeps_all_;
  float factor_ = 1;
};

template <class Label>
Status FillGradient(const LossGradientAttrs& attrs, const Label* labels, KernelContext& context) {
  const Shape& shape = context.Input(kLogProb).shape();
  const auto classes = static_cast<size_t>(shape[1]);
  const auto inner = static_cast<size_t>(shape.Product(2, shape.rank()));
  const size_t positions = static_cast<size_t>(shape[0]) * inner;
  Scales scales(attrs, context);
  double sum = 0;
  for (size_t i = 0; i < positions; ++i) {
    const auto label = static_cast<int64_t>(labels[i]);
    if (scales.IsIgnored(label)) continue;
    if (label < 0 || label >= shape[1]) {
      return InvalidArgument("input 2: expected classes in [0, {}), got {}", classes, label);
    }
    sum += static_cast<double>(scales.WeightOf(label));
  }
  if (attrs.reduction == "mean") scales.DivideBy(sum);
  const float* const log_prob = context.Input(kLogProb).data<float>();
  const float* const bias = context.HasInput(kBias) ? context.Input(kBias).data<float>() : nullptr;
  float* const dx = context.Output(0).data<float>();
  const size_t grain = 1 + 4096 / (classes + 1);
  context.threads().ParallelFor(positions, grain, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const auto label = static_cast<int64_t>(labels[i]);
      const float scale = scales.At(i, label);
      const size_t first = i / inner * classes * inner + i % inner;
      for (size_t c = 0; c < classes; ++c) {
        const size_t at = first + c * inner;
        const float target = static_cast<int64_t>(c) == label ? 1.0f : 0.0f;
        // An ignored position's probabilities may be anything. dX may lie in their memory.
        const float gradient = scale == 0 ? 0 : (std::exp(log_prob[at]) - target) * scale;
        dx[at] = bias == nullptr ? gradient : gradient + bias[at];
      }
    }
  });
  return OkStatus();
}

Status RunLossGradient(const LossGradientAttrs& attrs, KernelContext& context) {
  Status status;
  VisitIndices(context.Input(kLabel),
               [&](const auto* labels) { status = FillGradient(attrs, labels, context); });
  return status;
}

constexpr OpOptions kOptions = {.domain = "com.microsoft",
                                .types = kFloat32Only,
                                .traits = {.in_place_input = kLogProb},
                                .typed_input = kLogProb};

constexpr OpRow kRows[] = {
    Op<InferLossGradient, RunLossGradient>("SoftmaxCrossEntropyLossGrad", kOptions),
    Op<InferLossGradient, RunLossGradient>("SoftmaxCrossEntropyLossInternalGrad", kOptions),
};

}  // namespace

TENON_OP_FAMILY(CrossEntropyGradient, kRows);

}  // namespace tenon
