// Gradients of Softmax, LogSoftmax, and layer and batch normalizations, of com.microsoft.
#include "kernels/row_gradient.h"

#include "ops/framework/expected_shape.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

struct AxisAttrs {
  int64_t axis = -1;
  static constexpr auto Fields() { return std::tuple(Field("axis", &AxisAttrs::axis)); }
};

// --- SoftmaxGrad_13, LogSoftmaxGrad_13: of dY and of Y, the result of the forward operator ---

Status InferSoftmaxGradient(const AxisAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape dy, context.Input(0));
  if (dy.rank() > 0) TENON_RETURN_IF_ERROR(NormalizeAxis(attrs.axis, dy.rank()));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, 1, dy));
  return context.SetOutput(0, std::move(dy));
}

template <bool log>
Status RunSoftmaxGradient(const AxisAttrs& attrs, KernelContext& context) {
  const Tensor& dy = context.Input(0);
  const Shape& shape = dy.shape();
  if (dy.size() == 0) return OkStatus();
  size_t outer = 1, n = 1, inner = 1;
  if (shape.rank() > 0) {
    TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, shape.rank()));
    outer = static_cast<size_t>(shape.Product(0, axis));
    n = static_cast<size_t>(shape[axis]);
    inner = static_cast<size_t>(shape.Product(axis + 1, shape.rank()));
  }
  const float* y = context.Input(1).data<float>();
  float* dx = context.Output(0).data<float>();
  context.threads().ParallelFor(
      kernels::SoftmaxGradientTasks(outer, inner), kernels::SoftmaxGradientGrain(n, inner),
      [&](size_t begin, size_t end) {
        kernels::SoftmaxGradient(dy.data<float>(), y, dx, n, inner, log, begin, end);
      });
  return OkStatus();
}

// --- LayerNormalizationGrad, and SimplifiedLayerNormalizationGrad, which has no mean ---

enum Input : size_t { kDy, kX, kScale, kFirstStatistic };

template <bool has_mean>
Status InferNormalizationGradient(const AxisAttrs& attrs, ShapeContext& context) {
  TENON_RETURN_IF_ERROR(CheckDoubles(context, kDy, kFirstStatistic + has_mean));
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(kX));
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, x.rank()));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kDy, x));
  TENON_ASSIGN_OR_RETURN(SymbolicShape scale, context.Input(kScale));
  TENON_RETURN_IF_ERROR(CheckElementCount(context, kScale, x.Product(axis, x.rank())));
  for (size_t i = kFirstStatistic; i < kFirstStatistic + 1 + has_mean; ++i) {
    TENON_RETURN_IF_ERROR(CheckElementCount(context, i, x.Product(0, axis)));
  }
  TENON_RETURN_IF_ERROR(context.SetOutput(0, std::move(x)));
  TENON_RETURN_IF_ERROR(context.SetOutput(1, scale));
  return has_mean ? context.SetOutput(2, std::move(scale)) : OkStatus();
}

float* OutputFloats(KernelContext& context, size_t i) {
  return context.HasOutput(i) ? context.Output(i).data<float>() : nullptr;
}

// sums[i] of `blocks` rows of n floats, from `partial` on, which are `stride` apart.
void AddBlocks(const float* partial, size_t blocks, size_t stride, size_t n, float* sums,
               ThreadPool& threads) {
  threads.ParallelFor(n, 64, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      double sum = 0;
      for (size_t block = 0; block < blocks; ++block) {
        sum += static_cast<double>(partial[block * stride + i]);
      }
      sums[i] = static_cast<float>(sum);
    }
  });
}

template <bool has_mean>
Status RunNormalizationGradient(const AxisAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(kX);
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, x.rank()));
  const auto rows = static_cast<size_t>(x.shape().Product(0, axis));
  const auto n = static_cast<size_t>(x.shape().Product(axis, x.rank()));
  const kernels::NormalizationGradientArgs args = {
      .n = n,
      .dy = context.Input(kDy).data<float>(),
      .x = x.data<float>(),
      .gamma = context.Input(kScale).data<float>(),
      .mean = has_mean ? context.Input(kFirstStatistic).data<float>() : nullptr,
      .inv_std = context.Input(kFirstStatistic + has_mean).data<float>(),
      .dx = OutputFloats(context, 0)};
  float* const d_scale = OutputFloats(context, 1);
  float* const d_bias = has_mean ? OutputFloats(context, 2) : nullptr;
  // Rows whose sums are taken in one go; these are then added in order.
  constexpr size_t kBlock = 64;
  const size_t blocks = (rows + kBlock - 1) / kBlock;
  const size_t bytes = std::max<size_t>(1, blocks * 2 * n * sizeof(float));
  auto* const sums = static_cast<float*>(context.Scratch(bytes));
  if (sums == nullptr) return RuntimeException("out of memory: {} bytes", bytes);
  context.threads().ParallelFor(
      blocks, 1 + 16384 / std::max<size_t>(1, kBlock * n), [&](size_t begin, size_t end) {
        for (size_t block = begin; block < end; ++block) {
          float* const partial = sums + block * 2 * n;
          kernels::NormalizationGradient(args, block * kBlock, std::min(rows, (block + 1) * kBlock),
                                         d_scale ? partial : nullptr,
                                         d_bias ? partial + n : nullptr);
        }
      });
  if (d_scale) AddBlocks(sums, blocks, 2 * n, n, d_scale, context.threads());
  if (d_bias) AddBlocks(sums + n, blocks, 2 * n, n, d_bias, context.threads());
  return OkStatus();
}

// --- BatchNormalizationGrad: of a channel's own statistics. Input 4 is 1 / sqrt(variance +
// epsilon), as onnxruntime's gradients pass it ---

struct EpsilonAttrs {
  float epsilon = 1e-5f;  // is in input 4 already
  static constexpr auto Fields() { return std::tuple(Field("epsilon", &EpsilonAttrs::epsilon)); }
};

Status InferBatchNormalizationGradient(const EpsilonAttrs&, ShapeContext& context) {
  TENON_RETURN_IF_ERROR(CheckDoubles(context, kDy, kFirstStatistic + 1));
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(kX));
  if (x.rank() < 2) return InvalidArgument("input 1: expected [N, C, ...], got {}", x);
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kDy, x));
  const SymbolicShape channels = {x[1]};
  for (size_t i = kScale; i <= kFirstStatistic + 1; ++i) {
    TENON_RETURN_IF_ERROR(CheckInputShape(context, i, channels));
  }
  TENON_RETURN_IF_ERROR(context.SetOutput(0, std::move(x)));
  TENON_RETURN_IF_ERROR(context.SetOutput(1, channels));
  return context.SetOutput(2, channels);
}

Status RunBatchNormalizationGradient(const EpsilonAttrs&, KernelContext& context) {
  const Tensor& x = context.Input(kX);
  const Shape& shape = x.shape();
  const kernels::BatchNormalizationGradientArgs args = {
      .batch = static_cast<size_t>(shape[0]),
      .channels = static_cast<size_t>(shape[1]),
      .size = static_cast<size_t>(shape.Product(2, shape.rank())),
      .dy = context.Input(kDy).data<float>(),
      .x = x.data<float>(),
      .gamma = context.Input(kScale).data<float>(),
      .mean = context.Input(kFirstStatistic).data<float>(),
      .inv_std = context.Input(kFirstStatistic + 1).data<float>(),
      .dx = OutputFloats(context, 0),
      .d_gamma = OutputFloats(context, 1),
      .d_beta = OutputFloats(context, 2)};
  context.threads().ParallelFor(
      args.channels, 1 + 16384 / std::max<size_t>(1, args.batch * args.size),
      [&](size_t begin, size_t end) { kernels::BatchNormalizationGradient(args, begin, end); });
  return OkStatus();
}

constexpr OpOptions Options(KernelTraits traits = {}) {
  return {.domain = "com.microsoft", .types = kFloat32Only, .traits = traits};
}

constexpr KernelTraits kInPlace = {.in_place_input = 0, .in_place_also = 1};

constexpr OpRow kRows[] = {
    Op<InferSoftmaxGradient, RunSoftmaxGradient<false>>("SoftmaxGrad_13", Options(kInPlace)),
    Op<InferSoftmaxGradient, RunSoftmaxGradient<true>>("LogSoftmaxGrad_13", Options(kInPlace)),
    Op<InferNormalizationGradient<true>, RunNormalizationGradient<true>>("LayerNormalizationGrad",
                                                                         Options()),
    Op<InferNormalizationGradient<false>, RunNormalizationGradient<false>>(
        "SimplifiedLayerNormalizationGrad", Options()),
    Op<InferBatchNormalizationGradient, RunBatchNormalizationGradient>(
        "BatchNormalizationGrad", Options({.in_place_input = 0})),
};

}  // namespace

TENON_OP_FAMILY(RowGradient, kRows);

}  // namespace tenon
