// Normalizations: of layers, batches, instances, groups and local responses.
#include "kernels/normalization.h"

#include <algorithm>
#include <cmath>

#include "kernels/lrn.h"
#include "ops/families.h"

namespace tenon {
namespace {

// Input `i` as floats, or null if it is left out.
const float* OptionalFloats(const KernelContext& context, size_t i) {
  return context.HasInput(i) ? context.Input(i).data<float>() : nullptr;
}
float* OptionalFloats(Tensor* output) { return output ? output->data<float>() : nullptr; }

// A tensor of one value per channel.
Status CheckPerChannel(ShapeContext& context, size_t i, const Dim& channels) {
  if (!context.HasInput(i)) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const SymbolicShape shape, context.Input(i));
  const Dim elements = shape.NumElements();
  if (elements.is_number() && channels.is_number() && !(elements == channels)) {
    return InvalidArgument("input {}: expected {} values, one per channel, got shape {}", i,
                           channels, shape);
  }
  return OkStatus();
}

// LayerNormalization-17, RMSNormalization-23: over the axes from `axis` on.
struct LayerNormAttrs {
  int64_t axis = -1;
  float epsilon = 1e-5f;
  static constexpr auto Fields() {
    return std::tuple(Field("axis", &LayerNormAttrs::axis),
                      Field("epsilon", &LayerNormAttrs::epsilon));
  }
};

Status InferLayerNorm(const LayerNormAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, x.rank()));
  const Dim row = x.Product(axis, x.rank());
  TENON_RETURN_IF_ERROR(CheckPerChannel(context, 1, row));
  TENON_RETURN_IF_ERROR(CheckPerChannel(context, 2, row));
  SymbolicShape statistics = x;
  for (size_t i = axis; i < x.rank(); ++i) statistics[i] = Dim(1);
  TENON_RETURN_IF_ERROR(context.SetOutput(1, statistics, DataType::kFloat));
  TENON_RETURN_IF_ERROR(context.SetOutput(2, std::move(statistics), DataType::kFloat));
  return context.SetOutput(0, std::move(x));
}

// SimplifiedLayerNormalization-1, ONNX Runtime's name of RMSNormalization.
Status InferSimplifiedLayerNorm(const LayerNormAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, x.rank()));
  TENON_RETURN_IF_ERROR(CheckPerChannel(context, 1, x.Product(axis, x.rank())));
  SymbolicShape statistics = x;
  for (size_t i = axis; i < x.rank(); ++i) statistics[i] = Dim(1);
  TENON_RETURN_IF_ERROR(context.SetOutput(1, std::move(statistics), DataType::kFloat));
  return context.SetOutput(0, std::move(x));
}

// With a mean, output 1 is the mean and 2 the inverse deviation; without, 1 is the latter.
template <bool subtract_mean>
Status RunLayerNorm(const LayerNormAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, x.rank()));
  const auto rows = static_cast<size_t>(x.shape().Product(0, axis));
  const auto n = static_cast<size_t>(x.shape().Product(axis, x.rank()));
  float* y = context.Output(0).data<float>();
  float* first = OptionalFloats(context.HasOutput(1) ? &context.Output(1) : nullptr);
  float* second = OptionalFloats(context.HasOutput(2) ? &context.Output(2) : nullptr);
  float* mean = subtract_mean ? first : nullptr;
  float* inv_std = subtract_mean ? second : first;
  const float* gamma = OptionalFloats(context, 1);
  const float* beta = OptionalFloats(context, 2);
  context.threads().ParallelFor(
      rows, kernels::NormalizationGrain(n), [&](size_t begin, size_t end) {
        const kernels::NormalizationInput input = {x.data<float>() + begin * n};
        const kernels::NormalizationParameters parameters = {attrs.epsilon, gamma, beta,
                                                             mean ? mean + begin : nullptr,
                                                             inv_std ? inv_std + begin : nullptr};
        const auto normalize = subtract_mean ? kernels::LayerNorm : kernels::RmsNorm;
        normalize(input, y + begin * n, end - begin, n, parameters);
      });
  return OkStatus();
}

// BatchNormalization-15 in inference; the statistics outputs of old versions are not computed.
struct BatchNormAttrs {
  float epsilon = 1e-5f;
  bool training_mode = false;
  static constexpr auto Fields() {
    return std::tuple(Field("epsilon", &BatchNormAttrs::epsilon),
                      Field("training_mode", &BatchNormAttrs::training_mode));
  }
};

Status InferBatchNorm(const BatchNormAttrs& attrs, ShapeContext& context) {
  if (attrs.training_mode) return NotImplemented("training_mode = 1");
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  if (x.rank() < 1) return InvalidArgument("input 0: expected rank >= 1, got a scalar");
  const Dim channels = x.rank() < 2 ? Dim(1) : x[1];
  for (size_t i = 1; i < 5; ++i) TENON_RETURN_IF_ERROR(CheckPerChannel(context, i, channels));
  for (size_t i = 1; i < context.output_count(); ++i) {
    if (context.HasOutput(i)) return NotImplemented("output {}, which training uses", i);
  }
  return context.SetOutput(0, std::move(x));
}

Status RunBatchNorm(const BatchNormAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  float* y = context.Output(0).data<float>();
  const size_t batch = static_cast<size_t>(x.shape()[0]);
  const size_t channels = x.rank() < 2 ? 1 : static_cast<size_t>(x.shape()[1]);
  const size_t n = x.rank() < 3 ? 1 : static_cast<size_t>(x.shape().Product(2, x.rank()));
  auto* scale = static_cast<float*>(context.Scratch(2 * channels * sizeof(float)));
  if (scale == nullptr) return RuntimeException("out of memory for {} channels", channels);
  float* shift = scale + channels;
  for (size_t c = 0; c < channels; ++c) {
    const float variance = context.Input(4).data<float>()[c];
    scale[c] = context.Input(1).data<float>()[c] / std::sqrt(variance + attrs.epsilon);
    shift[c] = context.Input(2).data<float>()[c] - context.Input(3).data<float>()[c] * scale[c];
  }
  if (n == 1) {
    kernels::ScaleShiftColumns(x.data<float>(), y, batch, channels, scale, shift);
    return OkStatus();
  }
  context.threads().ParallelFor(
      batch * channels, kernels::NormalizationGrain(n), [&](size_t begin, size_t end) {
        kernels::ScaleShiftRows(x.data<float>(), y, begin, end, n, channels, scale, shift);
      });
  return OkStatus();
}

// InstanceNormalization-22: a group of its own for each channel.
struct EpsilonAttrs {
  float epsilon = 1e-5f;
  static constexpr auto Fields() { return std::tuple(Field("epsilon", &EpsilonAttrs::epsilon)); }
};

Status InferInstanceNorm(const EpsilonAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  if (x.rank() < 2) return InvalidArgument("input 0: expected rank >= 2, got {}", x);
  TENON_RETURN_IF_ERROR(CheckPerChannel(context, 1, x[1]));
  TENON_RETURN_IF_ERROR(CheckPerChannel(context, 2, x[1]));
  return context.SetOutput(0, std::move(x));
}

Status RunGroups(const kernels::GroupNormSizes& sizes, float epsilon, KernelContext& context) {
  const Tensor& x = context.Input(0);
  const auto groups = static_cast<size_t>(x.shape()[0]) * sizes.groups;
  const size_t grain = kernels::NormalizationGrain(sizes.channels_per_group * sizes.n);
  context.threads().ParallelFor(groups, grain, [&](size_t begin, size_t end) {
    kernels::GroupNorm(x.data<float>(), context.Output(0).data<float>(), begin, end, sizes,
                       context.Input(1).data<float>(), context.Input(2).data<float>(), epsilon);
  });
  return OkStatus();
}

Status RunInstanceNorm(const EpsilonAttrs& attrs, KernelContext& context) {
  const Shape& shape = context.Input(0).shape();
  return RunGroups(
      {static_cast<size_t>(shape[1]), 1, static_cast<size_t>(shape.Product(2, shape.rank()))},
      attrs.epsilon, context);
}

// GroupNormalization-21.
struct GroupNormAttrs {
  float epsilon = 1e-5f;
  int64_t num_groups = 1;
  static constexpr auto Fields() {
    return std::tuple(Field("epsilon", &GroupNormAttrs::epsilon),
                      Field("num_groups", &GroupNormAttrs::num_groups));
  }
};

Status InferGroupNorm(const GroupNormAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  if (x.rank() < 2) return InvalidArgument("input 0: expected rank >= 2, got {}", x);
  const bool divides =
      attrs.num_groups > 0 && (!x[1].is_number() || x[1].value() % attrs.num_groups == 0);
  if (!divides) {
    return InvalidArgument("expected num_groups that divides the {} channels of input 0, got {}",
                           x[1], attrs.num_groups);
  }
  TENON_RETURN_IF_ERROR(CheckPerChannel(context, 1, x[1]));
  TENON_RETURN_IF_ERROR(CheckPerChannel(context, 2, x[1]));
  return context.SetOutput(0, std::move(x));
}

Status RunGroupNorm(const GroupNormAttrs& attrs, KernelContext& context) {
  const Shape& shape = context.Input(0).shape();
  return RunGroups(
      {static_cast<size_t>(attrs.num_groups), static_cast<size_t>(shape[1] / attrs.num_groups),
       static_cast<size_t>(shape.Product(2, shape.rank()))},
      attrs.epsilon, context);
}

// LRN-13: across neighbouring channels.
struct LrnAttrs {
  float alpha, beta, bias;
  int64_t size = 1;
  static constexpr auto Fields() {
    return std::tuple(Field("alpha", &LrnAttrs::alpha), Field("beta", &LrnAttrs::beta),
                      Field("bias", &LrnAttrs::bias), Field("size", &LrnAttrs::size));
  }
};

Status InferLrn(const LrnAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  if (x.rank() < 2) return InvalidArgument("input 0: expected rank >= 2, got {}", x);
  if (attrs.size < 1) return InvalidArgument("expected size >= 1, got {}", attrs.size);
  return context.SetOutput(0, std::move(x));
}

// The plain formula, for double.
void LrnInDouble(const LrnAttrs& attrs, const double* x, double* y, size_t channels, size_t n) {
  const auto size = static_cast<size_t>(attrs.size);
  const size_t before = (size - 1) / 2, after = size - 1 - before;
  const double scale = static_cast<double>(attrs.alpha) / static_cast<double>(attrs.size);
  for (size_t i = 0; i < channels * n; ++i) {
    const size_t c = i / n, first = c < before ? 0 : c - before;
    const size_t last = std::min(channels - 1, c + std::min(after, channels));
    double sum = 0;
    for (size_t k = first; k <= last; ++k) sum += x[k * n + i % n] * x[k * n + i % n];
    y[i] = x[i] /
           std::pow(static_cast<double>(attrs.bias) + scale * sum, static_cast<double>(attrs.beta));
  }
}

Status RunLrn(const LrnAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  const auto batch = static_cast<size_t>(x.shape()[0]);
  const auto channels = static_cast<size_t>(x.shape()[1]);
  const auto n = static_cast<size_t>(x.shape().Product(2, x.rank()));
  if (x.type() == DataType::kDouble) {
    return context.ForEachTask(batch, 0, [&](size_t image, std::byte*) {
      const size_t start = image * channels * n;
      LrnInDouble(attrs, x.data<double>() + start, context.Output(0).data<double>() + start,
                  channels, n);
    });
  }
  const kernels::LrnParameters parameters = {static_cast<size_t>(attrs.size), attrs.alpha,
                                             attrs.beta, attrs.bias};
  context.threads().ParallelFor(kernels::LrnTasks(batch, n), 1, [&](size_t begin, size_t end) {
    kernels::Lrn(x.data<float>(), context.Output(0).data<float>(), channels, n, parameters, begin,
                 end);
  });
  return OkStatus();
}

constexpr KernelTraits kInPlace = {.in_place_input = 0};

constexpr OpRow kRows[] = {
    Op<InferLayerNorm, RunLayerNorm<true>>("LayerNormalization",
                                           {.since = 1, .types = kFloat32Only, .traits = kInPlace}),
    Op<InferLayerNorm, RunLayerNorm<false>>(
        "RMSNormalization", {.since = 23, .types = kFloat32Only, .traits = kInPlace}),
    Op<InferSimplifiedLayerNorm, RunLayerNorm<false>>(
        "SimplifiedLayerNormalization", {.since = 1, .types = kFloat32Only, .traits = kInPlace}),
    Op<InferBatchNorm, RunBatchNorm>("BatchNormalization",
                                     {.since = 1, .types = kFloat32Only, .traits = kInPlace}),
    Op<InferInstanceNorm, RunInstanceNorm>("InstanceNormalization",
                                           {.since = 1, .types = kFloat32Only, .traits = kInPlace}),
    Op<InferGroupNorm, RunGroupNorm>("GroupNormalization",
                                     {.since = 21, .types = kFloat32Only, .traits = kInPlace}),
    Op<InferLrn, RunLrn>("LRN", {.since = 1, .types = {DataType::kFloat, DataType::kDouble}}),
};

}  // namespace

const std::span<const OpRow> kNormalizationFamily = kRows;

}  // namespace tenon
