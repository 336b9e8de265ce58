// CausalConvWithState: depthwise convolution over past elements.
#include <algorithm>

#include "kernels/elementwise/activation.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

enum Input : size_t { kX, kWeight, kBias, kPast };

// CausalConvWithState-27.
struct CausalConvAttrs {
  std::string activation = "none";
  static constexpr auto Fields() {
    return std::tuple(Field("activation", &CausalConvAttrs::activation));
  }
};

[[gnu::cold]] Status InferCausalConv(const CausalConvAttrs& attrs, ShapeContext& context) {
  if (attrs.activation != "none" && attrs.activation != "silu" && attrs.activation != "swish") {
    return InvalidArgument("attribute 'activation': expected none, silu or swish, got '{}'",
                           attrs.activation);
  }
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.InputOfRank(kX, 3));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape weight, context.InputOfRank(kWeight, 3));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kWeight, {x[1], Dim(1), weight[2]}));
  if (weight[2].is_number() && weight[2].value() < 1) {
    return InvalidArgument("input 1: expected a kernel of at least one element, got {}", weight);
  }
  const SymbolicShape state = {x[0], x[1], weight[2] - Dim(1)};
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kBias, {x[1]}));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kPast, state));
  TENON_RETURN_IF_ERROR(context.SetOutput(0, std::move(x)));
  return context.SetOutput(1, state);
}

struct Channel {
  const float* x;
  const float* past;  // null: zeros
  const float* weights;
  float bias;
  size_t length, kernel;
};

// Adds the taps one after the other, each along the whole channel.
void Convolve(const Channel& c, float* y) {
  std::fill_n(y, c.length, c.bias);
  for (size_t tap = 0; tap < c.kernel; ++tap) {
    const float weight = c.weights[tap];
    const size_t back = c.kernel - 1 - tap;  // steps into the past
    const size_t before = std::min(back, c.length);
    if (c.past) {
      for (size_t t = 0; t < before; ++t) y[t] += weight * c.past[tap + t];
    }
    for (size_t t = before; t < c.length; ++t) y[t] += weight * c.x[t - back];
  }
}

// The last kernel - 1 elements of past and input.
void KeepState(const Channel& c, float* state) {
  const size_t size = c.kernel - 1;
  const size_t fresh = std::min(size, c.length), old = size - fresh;
  if (c.past) {
    std::copy_n(c.past + size - old, old, state);
  } else {
    std::fill_n(state, old, 0.0f);
  }
  std::copy_n(c.x + c.length - fresh, fresh, state + old);
}

Status RunCausalConv(const CausalConvAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(kX);
  const auto channels = static_cast<size_t>(x.shape()[1]);
  const auto length = static_cast<size_t>(x.shape()[2]);
  const auto kernel = static_cast<size_t>(context.Input(kWeight).shape()[2]);
  const float* bias = context.HasInput(kBias) ? context.Input(kBias).data<float>() : nullptr;
  const float* past = context.HasInput(kPast) ? context.Input(kPast).data<float>() : nullptr;
  const kernels::Activation activate(
      {attrs.activation == "none" ? UnaryOp::kIdentity : UnaryOp::kSwish});
  const auto rows = static_cast<size_t>(x.shape()[0]) * channels;
  context.threads().ParallelFor(rows, 8192 / (length + 8) + 1, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) {
      const size_t c = row % channels;
      const Channel channel = {x.data<float>() + row * length,
                               past ? past + row * (kernel - 1) : nullptr,
                               context.Input(kWeight).data<float>() + c * kernel,
                               bias ? bias[c] : 0,
                               length,
                               kernel};
      if (context.HasOutput(0)) {
        float* y = context.Output(0).data<float>() + row * length;
        Convolve(channel, y);
        if (activate) activate(y, length);
      }
      if (context.HasOutput(1)) {
        KeepState(channel, context.Output(1).data<float>() + row * (kernel - 1));
      }
    }
  });
  return OkStatus();
}

constexpr OpRow kRows[] = {
    Op<InferCausalConv, RunCausalConv>("CausalConvWithState", {.since = 27, .types = kFloat32Only}),
};

}  // namespace

TENON_OP_FAMILY(CausalConv, kRows);

}  // namespace tenon
