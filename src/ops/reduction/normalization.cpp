// Normalizations: of layers, batches, instances, groups and local responses.
#include "kernels/normalization.h"

#include <algorithm>
#include <cmath>

#include "kernels/elementwise/broadcast.h"
#include "kernels/lrn.h"
#include "ops/framework/element.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// Input `i` as floats, or null if it is absent.
const float* OptionalFloats(const KernelContext& context, size_t i) {
  return context.HasInput(i) ? context.Input(i).data<float>() : nullptr;
}
float* OptionalFloats(Tensor* output) { return output ? output->data<float>() : nullptr; }

// A tensor of one value per channel.
Status CheckPerChannel(ShapeContext& context, size_t i, const Dim& channels,
                       std::string_view part = "channel") {
  if (!context.HasInput(i)) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const SymbolicShape shape, context.Input(i));
  const Dim elements = shape.NumElements();
  if (elements.is_number() && channels.is_number() && !(elements == channels)) {
    return InvalidArgument("input {}: expected {} values, one per {}, got shape {}", i, channels,
                           part, shape);
  }
  return OkStatus();
}

// A tensor that can be broadcast to `x`: ONNX, unidirectional broadcasting.
Status CheckBroadcastTo(ShapeContext& context, size_t i, const SymbolicShape& x) {
  if (!context.HasInput(i)) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const SymbolicShape shape, context.Input(i));
  bool fits = shape.rank() <= x.rank();
  for (size_t back = 1; fits && back <= shape.rank(); ++back) {
    const Dim& size = shape[shape.rank() - back];
    fits = MayEqual(size, Dim(1)) || MayEqual(size, x[x.rank() - back]);
  }
  if (fits) return OkStatus();
  return InvalidArgument("input {}: {} cannot be broadcast to input 0 {}", i, shape, x);
}

// Whether the tensor, broadcast to `x`, is the same for all rows of the axes from `axis` on, and
// has all elements of a row.
bool IsOneRow(const Shape& shape, const Shape& x, size_t axis) {
  const size_t row_rank = x.rank() - axis;
  const size_t rank = shape.rank();
  for (size_t back = 1; back <= std::max(rank, row_rank); ++back) {
    const int64_t size = back <= rank ? shape[rank - back] : 1;
    if (size != (back <= row_rank ? x[x.rank() - back] : 1)) return false;
  }
  return true;
}

// Whether scale and bias are absent or as IsOneRow says.
bool HasRowParameters(const KernelContext& context, size_t axis) {
  for (size_t i = 1; i < 3; ++i) {
    if (!context.HasInput(i)) continue;
    if (!IsOneRow(context.Input(i).shape(), context.Input(0).shape(), axis)) return false;
  }
  return true;
}

// y = y * scale + bias, inputs 1 and 2 broadcast to output 0; the bias may be absent.
template <class T>
Status ScaleBroadcast(KernelContext& context) {
  const Tensor& scale = context.Input(1);
  const Tensor* const bias = context.HasInput(2) ? &context.Input(2) : nullptr;
  Tensor& y = context.Output(0);
  const Shape one;
  const std::span<const int64_t> shapes[] = {y.shape().dims(), scale.shape().dims(),
                                             bias ? bias->shape().dims() : one.dims()};
  TENON_ASSIGN_OR_RETURN(const kernels::BroadcastPlan plan, kernels::MakeBroadcastPlan(shapes));
  const kernels::BroadcastTasks tasks = kernels::SplitBroadcast(plan, 4096);
  return context.ForEachTask(tasks.count, 0, [&](size_t task, std::byte*) {
    kernels::ForEachRunOfTask(plan, tasks, task, [&](const auto& offsets, size_t to, size_t n) {
      T* const out = y.data<T>() + to;
      const T* const factors = scale.data<T>() + offsets[1];
      const T* const addends = bias ? bias->data<T>() + offsets[2] : nullptr;
      for (size_t i = 0; i < n; ++i) {
        const T product = out[i] * factors[i * plan.inner_stride[1]];
        out[i] = addends ? product + addends[i * plan.inner_stride[2]] : product;
      }
    });
  });
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
  TENON_RETURN_IF_ERROR(CheckDoubles(context, 0, 2));
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, x.rank()));
  TENON_RETURN_IF_ERROR(CheckBroadcastTo(context, 1, x));
  TENON_RETURN_IF_ERROR(CheckBroadcastTo(context, 2, x));
  SymbolicShape statistics = x;
  for (size_t i = axis; i < x.rank(); ++i) statistics[i] = Dim(1);
  TENON_RETURN_IF_ERROR(context.SetOutput(1, statistics, DataType::kFloat));
  TENON_RETURN_IF_ERROR(context.SetOutput(2, std::move(statistics), DataType::kFloat));
  return context.SetOutput(0, std::move(x));
}

Status InferRmsNorm(const LayerNormAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  TENON_RETURN_IF_ERROR(CheckBroadcastTo(context, 1, x));
  const Result<size_t> axis = NormalizeAxis(attrs.axis, x.rank());
  return axis ? context.SetOutput(0, std::move(x)) : axis.error();
}

// SimplifiedLayerNormalization-1, ONNX Runtime's name of RMSNormalization.
Status InferSimplifiedLayerNorm(const LayerNormAttrs& attrs, ShapeContext& context) {
  TENON_RETURN_IF_ERROR(CheckDoubles(context, 0, 1));
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, x.rank()));
  TENON_RETURN_IF_ERROR(CheckBroadcastTo(context, 1, x));
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
  const bool is_by_row = HasRowParameters(context, axis);
  const float* gamma = is_by_row ? OptionalFloats(context, 1) : nullptr;
  const float* beta = is_by_row ? OptionalFloats(context, 2) : nullptr;
  context.threads().ParallelFor(
      rows, kernels::NormalizationGrain(n), [&](size_t begin, size_t end) {
        const kernels::NormalizationInput input = {x.data<float>() + begin * n};
        const kernels::NormalizationParameters parameters = {attrs.epsilon, gamma, beta,
                                                             mean ? mean + begin : nullptr,
                                                             inv_std ? inv_std + begin : nullptr};
        const auto normalize = subtract_mean ? kernels::LayerNorm : kernels::RmsNorm;
        normalize(input, y + begin * n, end - begin, n, parameters);
      });
  return is_by_row ? OkStatus() : ScaleBroadcast<float>(context);
}

// BatchNormalization-15. Before version 14, the outputs of the node show whether it is training.
struct BatchNormAttrs {
  float epsilon = 1e-5f;
  float momentum = 0.9f;
  bool training_mode = false;
  bool spatial = true;  // before version 9; else each element of an image has its own statistics
  static constexpr auto Fields() {
    return std::tuple(Field("epsilon", &BatchNormAttrs::epsilon),
                      Field("momentum", &BatchNormAttrs::momentum),
                      Field("training_mode", &BatchNormAttrs::training_mode),
                      Field("spatial", &BatchNormAttrs::spatial));
  }
};

// The axis before which an axis of a shape counts channels, each of which has the rest of the axes.
size_t EndOfChannels(const BatchNormAttrs& attrs, size_t rank) {
  return attrs.spatial ? std::min<size_t>(rank, 2) : rank;
}

Status InferBatchNorm(const BatchNormAttrs& attrs, ShapeContext& context) {
  if (attrs.epsilon < 0) return InvalidArgument("expected epsilon >= 0, got {}", attrs.epsilon);
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  if (x.rank() < 1) return InvalidArgument("input 0: expected rank >= 1, got a scalar");
  const Dim channels = x.Product(1, EndOfChannels(attrs, x.rank()));
  for (size_t i = 1; i < 5; ++i) TENON_RETURN_IF_ERROR(CheckPerChannel(context, i, channels));
  for (size_t i = 1; i < context.output_count(); ++i) {
    TENON_RETURN_IF_ERROR(context.SetOutput(i, {channels}));
  }
  return context.SetOutput(0, std::move(x));
}

bool Trains(const BatchNormAttrs& attrs, const KernelContext& context) {
  for (size_t i = 1; i < context.output_count(); ++i) {
    if (context.HasOutput(i)) return true;
  }
  return attrs.training_mode;
}

// Element `i` of a tensor of floats.
double NumberAt(const Tensor& x, size_t i) {
  return VisitNumber(x.type(), [&](auto number) {
    return static_cast<double>(Widen(x.data<decltype(number)>()[i]));
  });
}

void SetNumberAt(Tensor& y, size_t i, double value) {
  if (y.type() == DataType::kDouble) {
    y.data<double>()[i] = value;
  } else {
    y.data<float>()[i] = static_cast<float>(value);
  }
}

struct Statistics {
  double mean = 0, variance = 0;
};

// Of `rows` rows of `n` elements that are `stride` apart.
template <class T>
Statistics StatisticsOf(const T* x, size_t rows, size_t n, size_t stride) {
  const auto count = static_cast<double>(rows * n);
  Statistics result;
  for (size_t row = 0; row < rows; ++row) {
    for (size_t i = 0; i < n; ++i) result.mean += static_cast<double>(x[row * stride + i]);
  }
  result.mean /= count;
  for (size_t row = 0; row < rows; ++row) {
    for (size_t i = 0; i < n; ++i) {
      const double distance = static_cast<double>(x[row * stride + i]) - result.mean;
      result.variance += distance * distance;
    }
  }
  result.variance /= count;
  return result;
}

// y = x * scale + shift.
template <class T>
void ScaleAndShift(const T* x, T* y, size_t n, double scale, double shift) {
  for (size_t i = 0; i < n; ++i) {
    y[i] = static_cast<T>(static_cast<double>(x[i]) * scale + shift);
  }
}

// In training, and in double precision: sums are made in double.
template <class T>
Status RunScalarBatchNorm(const BatchNormAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  T* y = context.Output(0).data<T>();
  const size_t batch = static_cast<size_t>(x.shape()[0]);
  const size_t end = EndOfChannels(attrs, x.rank());
  const auto channels = static_cast<size_t>(x.shape().Product(1, end));
  const auto n = static_cast<size_t>(x.shape().Product(end, x.rank()));
  const bool trains = Trains(attrs, context);
  return context.ForEachTask(channels, 0, [&](size_t c, std::byte*) {
    const Statistics running = {NumberAt(context.Input(3), c), NumberAt(context.Input(4), c)};
    Statistics used = running;
    if (trains) {
      used = StatisticsOf(x.data<T>() + c * n, batch, n, channels * n);
      const double momentum = attrs.momentum;
      const double results[] = {running.mean * momentum + used.mean * (1 - momentum),
                                running.variance * momentum + used.variance * (1 - momentum),
                                used.mean, used.variance};
      for (size_t i = 1; i < context.output_count(); ++i) {
        if (context.HasOutput(i)) SetNumberAt(context.Output(i), c, results[i - 1]);
      }
    }
    const double scale = NumberAt(context.Input(1), c) /
                         std::sqrt(used.variance + static_cast<double>(attrs.epsilon));
    const double shift = NumberAt(context.Input(2), c) - used.mean * scale;
    for (size_t b = 0; b < batch; ++b) {
      const size_t row = (b * channels + c) * n;
      ScaleAndShift(x.data<T>() + row, y + row, n, scale, shift);
    }
  });
}

Status RunBatchNorm(const BatchNormAttrs& attrs, KernelContext& context) {
  if (Trains(attrs, context)) return RunScalarBatchNorm<float>(attrs, context);
  const Tensor& x = context.Input(0);
  float* y = context.Output(0).data<float>();
  const size_t batch = static_cast<size_t>(x.shape()[0]);
  const size_t end = EndOfChannels(attrs, x.rank());
  const auto channels = static_cast<size_t>(x.shape().Product(1, end));
  const auto n = static_cast<size_t>(x.shape().Product(end, x.rank()));
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

// Scale-1: x * scale. ImageScaler-1 adds a bias to each channel of an image.
struct ScaleAttrs {
  float scale = 1;
  std::optional<std::vector<float>> bias;
  static constexpr auto Fields() {
    return std::tuple(Field("scale", &ScaleAttrs::scale), Field("bias", &ScaleAttrs::bias));
  }
};

Status InferScale(const ScaleAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  return context.SetOutput(0, std::move(x));
}

Status InferImageScaler(const ScaleAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.InputOfRank(0, 4));
  const auto count = static_cast<int64_t>(attrs.bias ? attrs.bias->size() : 0);
  if (!MayEqual(x[1], Dim(count))) {
    return InvalidArgument("attribute 'bias': expected {} numbers, one per channel, got {}", x[1],
                           count);
  }
  return context.SetOutput(0, std::move(x));
}

Status RunScale(const ScaleAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  const bool is_image = attrs.bias.has_value();
  const size_t channels = is_image ? attrs.bias->size() : 1;
  const auto n = static_cast<size_t>(is_image ? x.shape().Product(2, 4) : x.size());
  const size_t rows = x.size() == 0 ? 0 : static_cast<size_t>(x.size()) / n;
  for (size_t row = 0; row < rows; ++row) {
    ScaleAndShift(x.data<float>() + row * n, context.Output(0).data<float>() + row * n, n,
                  attrs.scale, is_image ? (*attrs.bias)[row % channels] : 0);
  }
  return OkStatus();
}

// InstanceNormalization-22: a separate group for each channel.
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

kernels::GroupNormSizes InstanceSizes(const Shape& shape) {
  return {static_cast<size_t>(shape[1]), 1, static_cast<size_t>(shape.Product(2, shape.rank()))};
}

Status RunInstanceNorm(const EpsilonAttrs& attrs, KernelContext& context) {
  return RunGroups(InstanceSizes(context.Input(0).shape()), attrs.epsilon, context);
}

// GroupNormalization-21; before it, scale and bias had an element for each group.
struct GroupNormAttrs {
  float epsilon = 1e-5f;
  int64_t num_groups = 1;
  static constexpr auto Fields() {
    return std::tuple(Field("epsilon", &GroupNormAttrs::epsilon),
                      Field("num_groups", &GroupNormAttrs::num_groups));
  }
};

template <bool kScalesGroups>
Status InferGroupNorm(const GroupNormAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  if (x.rank() < 2) return InvalidArgument("input 0: expected rank >= 2, got {}", x);
  const bool divides =
      attrs.num_groups > 0 && (!x[1].is_number() || x[1].value() % attrs.num_groups == 0);
  if (!divides) {
    return InvalidArgument("expected num_groups that divides the {} channels of input 0, got {}",
                           x[1], attrs.num_groups);
  }
  for (const size_t i : {1, 2}) {
    TENON_RETURN_IF_ERROR(kScalesGroups ? CheckPerChannel(context, i, attrs.num_groups, "group")
                                        : CheckPerChannel(context, i, x[1]));
  }
  return context.SetOutput(0, std::move(x));
}

kernels::GroupNormSizes GroupSizes(const GroupNormAttrs& attrs, const KernelContext& context) {
  const Shape& shape = context.Input(0).shape();
  return {static_cast<size_t>(attrs.num_groups), static_cast<size_t>(shape[1] / attrs.num_groups),
          static_cast<size_t>(shape.Product(2, shape.rank())),
          context.Input(1).size() == attrs.num_groups};
}

Status RunGroupNorm(const GroupNormAttrs& attrs, KernelContext& context) {
  return RunGroups(GroupSizes(attrs, context), attrs.epsilon, context);
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

// The formula in double.
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

// --- In double precision ---

template <bool subtract_mean>
Status RunDoubleLayerNorm(const LayerNormAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, x.rank()));
  const auto rows = static_cast<size_t>(x.shape().Product(0, axis));
  const auto n = static_cast<size_t>(x.shape().Product(axis, x.rank()));
  const bool is_by_row = HasRowParameters(context, axis);
  const auto parameters = [&](size_t i) {
    return is_by_row && context.HasInput(i) ? context.Input(i).data<double>() : nullptr;
  };
  const double *gamma = parameters(1), *beta = parameters(2);
  const auto normalize = [&](size_t row, std::byte*) {
    const double* in = x.data<double>() + row * n;
    double* out = context.Output(0).data<double>() + row * n;
    Statistics statistics = StatisticsOf(in, 1, n, n);
    if constexpr (!subtract_mean) {
      statistics.variance += statistics.mean * statistics.mean;  // the mean square
      statistics.mean = 0;
    }
    const double inv_std = 1 / std::sqrt(statistics.variance + static_cast<double>(attrs.epsilon));
    for (size_t i = 0; i < n; ++i) {
      out[i] = (in[i] - statistics.mean) * inv_std * (gamma ? gamma[i] : 1) + (beta ? beta[i] : 0);
    }
    if (context.HasOutput(1)) SetNumberAt(context.Output(1), row, statistics.mean);
    if (context.HasOutput(2)) SetNumberAt(context.Output(2), row, inv_std);
  };
  TENON_RETURN_IF_ERROR(context.ForEachTask(rows, 0, normalize));
  return is_by_row ? OkStatus() : ScaleBroadcast<double>(context);
}

// RMSNormalization of floats with a scale of doubles, or the other way round. The output has the
// type of the scale.
[[gnu::cold]] Status RunMixedRmsNorm(const LayerNormAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  Tensor& y = context.Output(0);
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, x.rank()));
  const auto rows = static_cast<size_t>(x.shape().Product(0, axis));
  const auto n = static_cast<size_t>(x.shape().Product(axis, x.rank()));
  TENON_RETURN_IF_ERROR(context.ForEachTask(rows, 0, [&](size_t row, std::byte*) {
    double squares = 0;
    for (size_t i = row * n; i < (row + 1) * n; ++i) squares += NumberAt(x, i) * NumberAt(x, i);
    const double root = std::sqrt(squares / static_cast<double>(n) + double{attrs.epsilon});
    for (size_t i = row * n; i < (row + 1) * n; ++i) SetNumberAt(y, i, NumberAt(x, i) / root);
  }));
  return y.type() == DataType::kDouble ? ScaleBroadcast<double>(context)
                                       : ScaleBroadcast<float>(context);
}

Status RunRmsNorm(const LayerNormAttrs& attrs, KernelContext& context) {
  const DataType type = context.Input(0).type();
  if (context.Input(1).type() != type) return RunMixedRmsNorm(attrs, context);
  return type == DataType::kDouble ? RunDoubleLayerNorm<false>(attrs, context)
                                   : RunLayerNorm<false>(attrs, context);
}

Status RunDoubleGroups(const kernels::GroupNormSizes& sizes, float epsilon,
                       KernelContext& context) {
  const Tensor& x = context.Input(0);
  const size_t width = sizes.channels_per_group * sizes.n;
  const auto groups = static_cast<size_t>(x.shape()[0]) * sizes.groups;
  return context.ForEachTask(groups, 0, [&](size_t group, std::byte*) {
    const double* in = x.data<double>() + group * width;
    double* out = context.Output(0).data<double>() + group * width;
    const Statistics statistics = StatisticsOf(in, 1, width, width);
    const double inv_std = 1 / std::sqrt(statistics.variance + static_cast<double>(epsilon));
    for (size_t i = 0; i < sizes.channels_per_group; ++i) {
      const size_t own = sizes.ScaleOf(group, i);
      const double scale = context.Input(1).data<double>()[own] * inv_std;
      const double shift = context.Input(2).data<double>()[own] - statistics.mean * scale;
      ScaleAndShift(in + i * sizes.n, out + i * sizes.n, sizes.n, scale, shift);
    }
  });
}

Status RunDoubleInstanceNorm(const EpsilonAttrs& attrs, KernelContext& context) {
  return RunDoubleGroups(InstanceSizes(context.Input(0).shape()), attrs.epsilon, context);
}

Status RunDoubleGroupNorm(const GroupNormAttrs& attrs, KernelContext& context) {
  return RunDoubleGroups(GroupSizes(attrs, context), attrs.epsilon, context);
}

constexpr TypeSet kDoubleOnly = {DataType::kDouble};
constexpr KernelTraits kInPlace = {.in_place_input = 0};

constexpr OpRow kRows[] = {
    Op<InferScale, RunScale>("Scale", {.since = 1, .types = kFloat32Only}),
    Op<InferImageScaler, RunScale>("ImageScaler", {.since = 1, .types = kFloat32Only}),
    Op<InferLayerNorm, RunLayerNorm<true>>("LayerNormalization",
                                           {.since = 1, .types = kFloat32Only, .traits = kInPlace}),
    Op<InferRmsNorm, RunRmsNorm>("RMSNormalization",
                                 {.since = 23, .types = kFloat32Only, .traits = kInPlace}),
    Op<InferSimplifiedLayerNorm, RunLayerNorm<false>>(
        "SimplifiedLayerNormalization", {.since = 1, .types = kFloat32Only, .traits = kInPlace}),
    Op<InferBatchNorm, RunBatchNorm>("BatchNormalization",
                                     {.since = 1, .types = kFloat32Only, .traits = kInPlace}),
    Op<InferInstanceNorm, RunInstanceNorm>("InstanceNormalization",
                                           {.since = 1, .types = kFloat32Only, .traits = kInPlace}),
    Op<InferGroupNorm<true>, RunGroupNorm>(
        "GroupNormalization", {.since = 18, .types = kFloat32Only, .traits = kInPlace}),
    Op<InferGroupNorm<false>, RunGroupNorm>(
        "GroupNormalization", {.since = 21, .types = kFloat32Only, .traits = kInPlace}),
    Op<InferLrn, RunLrn>("LRN", {.since = 1, .types = {DataType::kFloat, DataType::kDouble}}),
    Op<InferLayerNorm, RunDoubleLayerNorm<true>>("LayerNormalization",
                                                 {.types = kDoubleOnly, .traits = kInPlace}),
    Op<InferRmsNorm, RunRmsNorm>(
        "RMSNormalization",
        {.since = 23, .has_wide_floats = true, .types = kDoubleOnly, .traits = kInPlace}),
    Op<InferBatchNorm, RunScalarBatchNorm<double>>("BatchNormalization",
                                                   {.types = kDoubleOnly, .traits = kInPlace}),
    Op<InferInstanceNorm, RunDoubleInstanceNorm>("InstanceNormalization",
                                                 {.types = kDoubleOnly, .traits = kInPlace}),
    Op<InferGroupNorm<true>, RunDoubleGroupNorm>(
        "GroupNormalization", {.since = 18, .types = kDoubleOnly, .traits = kInPlace}),
    Op<InferGroupNorm<false>, RunDoubleGroupNorm>(
        "GroupNormalization", {.since = 21, .types = kDoubleOnly, .traits = kInPlace}),
};

}  // namespace

TENON_OP_FAMILY(Normalization, kRows);

}  // namespace tenon
