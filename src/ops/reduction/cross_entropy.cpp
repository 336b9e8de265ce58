// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.
#include <cmath>

#include "kernels/softmax.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/indices.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

enum Input : size_t { kScores, kTarget, kWeight };

struct LossAttrs {
  std::string reduction = "mean";
  std::optional<int64_t> ignore_index;
  static constexpr auto Fields() {
    return std::tuple(Field("reduction", &LossAttrs::reduction),
                      Field("ignore_index", &LossAttrs::ignore_index));
  }
};

// Scores [N, C, d...], target [N, d...], weights [C].
Status InferLoss(const LossAttrs& attrs, ShapeContext& context) {
  if (attrs.reduction != "none" && attrs.reduction != "sum" && attrs.reduction != "mean") {
    return InvalidArgument("attribute 'reduction': expected none, sum or mean, got '{}'",
                           attrs.reduction);
  }
  TENON_ASSIGN_OR_RETURN(SymbolicShape scores, context.Input(kScores));
  TENON_ASSIGN_OR_RETURN(SymbolicShape target, context.Input(kTarget));
  if (scores.rank() < 2) {
    return InvalidArgument("input 0: expected [N, C, ...], got {}", scores);
  }
  bool fits = target.rank() + 1 == scores.rank() && MayEqual(scores[0], target[0]);
  for (size_t i = 2; fits && i < scores.rank(); ++i) fits = MayEqual(scores[i], target[i - 1]);
  if (!fits) {
    return InvalidArgument("input 1: expected the shape of input 0 {} without its axis 1, got {}",
                           scores, target);
  }
  if (context.HasInput(kWeight)) {
    const Result<SymbolicShape> weight = context.Input(kWeight);
    if (weight && !(weight->rank() == 1 && MayEqual((*weight)[0], scores[1]))) {
      return InvalidArgument("input 2: expected one weight per class, [{}], got {}", scores[1],
                             *weight);
    }
  }
  TENON_RETURN_IF_ERROR(
      context.SetOutput(0, attrs.reduction == "none" ? std::move(target) : SymbolicShape()));
  return context.SetOutput(1, std::move(scores));
}

// Scores as [outer, classes, inner].
struct Sizes {
  size_t outer, classes, inner;
};

Sizes SizesOf(const Shape& shape) {
  return {static_cast<size_t>(shape[0]), static_cast<size_t>(shape[1]),
          static_cast<size_t>(shape.Product(2, shape.rank()))};
}

// The loss of log probabilities, into output 0.
template <class T>
Status ReduceLoss(const LossAttrs& attrs, const T* log_prob, KernelContext& context) {
  const Sizes sizes = SizesOf(context.Input(kScores).shape());
  const T* weights = context.HasInput(kWeight) ? context.Input(kWeight).data<T>() : nullptr;
  T* y = context.Output(0).data<T>();
  const bool keeps_all = attrs.reduction == "none";
  double sum = 0, weight_sum = 0;
  Status status;
  VisitIndices(context.Input(kTarget), [&](const auto* target) {
    for (size_t i = 0; i < sizes.outer * sizes.inner; ++i) {
      const auto index = static_cast<int64_t>(target[i]);
      if (attrs.ignore_index && index == *attrs.ignore_index) {
        if (keeps_all) y[i] = 0;
        continue;
      }
      if (index < 0 || index >= static_cast<int64_t>(sizes.classes)) {
        status =
            InvalidArgument("input 1: expected classes in [0, {}), got {}", sizes.classes, index);
        return;
      }
      const auto at = static_cast<size_t>(index);
      const T weight = weights ? weights[at] : T{1};
      const size_t outer = i / sizes.inner;
      const T loss =
          -log_prob[(outer * sizes.classes + at) * sizes.inner + i % sizes.inner] * weight;
      if (keeps_all) y[i] = loss;
      sum += static_cast<double>(loss);
      weight_sum += static_cast<double>(weight);
    }
  });
  TENON_RETURN_IF_ERROR(std::move(status));
  if (!keeps_all) *y = static_cast<T>(attrs.reduction == "sum" ? sum : sum / weight_sum);
  return OkStatus();
}

// NegativeLogLikelihoodLoss-22.
Status RunNegativeLogLikelihood(const LossAttrs& attrs, KernelContext& context) {
  const Tensor& scores = context.Input(kScores);
  return scores.type() == DataType::kDouble ? ReduceLoss(attrs, scores.data<double>(), context)
                                            : ReduceLoss(attrs, scores.data<float>(), context);
}

void LogSoftmax(const double* x, double* y, const Sizes& sizes, ThreadPool& threads) {
  threads.ParallelFor(sizes.outer * sizes.inner, 64, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const size_t first = i / sizes.inner * sizes.classes * sizes.inner + i % sizes.inner;
      double greatest = -INFINITY, sum = 0;
      for (size_t c = 0; c < sizes.classes; ++c) {
        greatest = std::fmax(greatest, x[first + c * sizes.inner]);
      }
      for (size_t c = 0; c < sizes.classes; ++c) {
        sum += std::exp(x[first + c * sizes.inner] - greatest);
      }
      for (size_t c = 0; c < sizes.classes; ++c) {
        y[first + c * sizes.inner] = x[first + c * sizes.inner] - greatest - std::log(sum);
      }
    }
  });
}

void LogSoftmax(const float* x, float* y, const Sizes& sizes, ThreadPool& threads) {
  if (sizes.inner == 1) {
    threads.ParallelFor(sizes.outer, kernels::SoftmaxGrain(sizes.classes),
                        [&](size_t begin, size_t end) {
                          kernels::SoftmaxRows(x + begin * sizes.classes, y + begin * sizes.classes,
                                               end - begin, sizes.classes, true);
                        });
    return;
  }
  threads.ParallelFor(kernels::SoftmaxMiddleTasks(sizes.outer, sizes.inner), 1,
                      [&](size_t begin, size_t end) {
                        kernels::SoftmaxMiddle(x, y, sizes.classes, sizes.inner, true, begin, end);
                      });
}

template <class T>
Status RunCrossEntropyOf(const LossAttrs& attrs, KernelContext& context) {
  const Tensor& scores = context.Input(kScores);
  T* log_prob = nullptr;
  if (context.HasOutput(1)) {
    log_prob = context.Output(1).data<T>();
  } else {
    log_prob = static_cast<T*>(context.Scratch(std::max<size_t>(1, scores.bytes())));
    if (log_prob == nullptr) return RuntimeException("out of memory: {} bytes", scores.bytes());
  }
  if (scores.size() > 0) {
    LogSoftmax(scores.data<T>(), log_prob, SizesOf(scores.shape()), context.threads());
  }
  if (!context.HasOutput(0)) return OkStatus();
  return ReduceLoss<T>(attrs, log_prob, context);
}

// SoftmaxCrossEntropyLoss-13.
Status RunCrossEntropy(const LossAttrs& attrs, KernelContext& context) {
  return context.Input(kScores).type() == DataType::kDouble
             ? RunCrossEntropyOf<double>(attrs, context)
             : RunCrossEntropyOf<float>(attrs, context);
}

constexpr TypeSet kFloatAndDouble = {DataType::kFloat, DataType::kDouble};

constexpr OpRow kRows[] = {
    Op<InferLoss, RunNegativeLogLikelihood>("NegativeLogLikelihoodLoss",
                                            {.since = 12, .types = kFloatAndDouble}),
    Op<InferLoss, RunCrossEntropy>("SoftmaxCrossEntropyLoss",
                                   {.since = 12, .types = kFloatAndDouble}),
};

}  // namespace

TENON_OP_FAMILY(CrossEntropy, kRows);

}  // namespace tenon
