// ConvInteger and QLinearConv.
#include <cmath>

#include "base/arithmetic.h"
#include "kernels/conv/conv_int8.h"
#include "ops/conv/conv_shapes.h"
#include "ops/conv/general_window.h"
#include "ops/framework/stateful_kernel.h"
#include "ops/linear/int8_product.h"

namespace tenon {
namespace {

// The positions of the inputs; absent ones have an index beyond the inputs.
struct ConvInputs {
  static constexpr size_t kNone = 99;
  size_t w = 1, x_zero = 2, w_zero = 3;
  size_t x_scale = kNone, w_scale = kNone, y_scale = kNone, y_zero = kNone, bias = kNone;
};
constexpr ConvInputs kIntegerInputs = {};
constexpr ConvInputs kLinearInputs = {.w = 3,
                                      .x_zero = 2,
                                      .w_zero = 5,
                                      .x_scale = 1,
                                      .w_scale = 4,
                                      .y_scale = 6,
                                      .y_zero = 7,
                                      .bias = 8};

// Checks that input `i`, if it is present, has one element or, if allowed, one for each of
// `channels`.
Status CheckCount(const ShapeContext& context, size_t i, const Dim& channels) {
  if (!context.HasInput(i)) return OkStatus();
  const Result<SymbolicShape> shape = context.Input(i);
  if (!shape) return IsUnknownShape(shape.error()) ? OkStatus() : shape.error();
  const Dim count = shape->NumElements();
  if (!count.is_number() || !channels.is_number() || count == Dim(1) || count == channels) {
    return OkStatus();
  }
  return InvalidArgument("input {}: expected 1 or {} elements, got {}", i, channels, *shape);
}

Result<SymbolicShape> InferInt8Conv(const ConvAttrs& attrs, const ConvInputs& in,
                                    const ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape w, context.Input(in.w));
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, ConvOutput(attrs, x, w, kMostWindowRank));
  for (const size_t i : {in.x_zero, in.x_scale, in.y_scale, in.y_zero}) {
    TENON_RETURN_IF_ERROR(CheckCount(context, i, Dim(1)));
  }
  for (const size_t i : {in.w_zero, in.w_scale}) {
    TENON_RETURN_IF_ERROR(CheckCount(context, i, y[1]));
  }
  if (context.HasInput(in.bias)) {
    TENON_ASSIGN_OR_RETURN(const SymbolicShape bias, context.InputOfRank(in.bias, 1));
    if (bias[0].is_number() && y[1].is_number() && !(bias[0] == y[1])) {
      return InvalidArgument("input {}: expected one bias per output channel, [{}], got {}",
                             in.bias, y[1], bias);
    }
  }
  return y;
}

Status InferConvInteger(const ConvAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, InferInt8Conv(attrs, kIntegerInputs, context));
  return context.SetOutput(0, std::move(y), DataType::kInt32);
}

Status InferQLinearConv(const ConvAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, InferInt8Conv(attrs, kLinearInputs, context));
  const DataType type = context.ElementType(kLinearInputs.y_zero);
  if (type == DataType::kUndefined) return context.SetOutput(0, std::move(y));
  return context.SetOutput(0, std::move(y), type);
}

int32_t ByteAt(const Tensor& tensor, size_t i) {
  return tensor.type() == DataType::kInt8 ? int32_t{tensor.data<int8_t>()[i]}
                                          : int32_t{tensor.data<uint8_t>()[i]};
}

// One sum of a convolution in the output's form.
void StoreSum(int32_t sum, size_t channel, const kernels::Int8Epilogue& epilogue, size_t at,
              void* out) {
  if (epilogue.type == kernels::Int8Output::kInt32) {
    static_cast<int32_t*>(out)[at] = sum;
    return;
  }
  const bool is_signed = epilogue.type == kernels::Int8Output::kInt8;
  const float least = static_cast<float>((is_signed ? -128 : 0) - epilogue.zero_point);
  const float scaled = static_cast<float>(sum) * epilogue.scale_rows[channel];
  const float kept = std::fmin(std::fmax(std::nearbyint(scaled), least), least + 255);
  static_cast<uint8_t*>(out)[at] =
      static_cast<uint8_t>(static_cast<int>(kept) + epilogue.zero_point);
}

// For more spatial axes than the kernels support: zero points, bias and epilogue are those of
// `args`, whose shape is not read.
void RunGeneralPlane(const GeneralWindow& window, const kernels::Int8ConvArgs& args, const Shape& x,
                     const Tensor& w, size_t channels, size_t plane) {
  const size_t image = plane / channels, channel = plane % channels;
  const auto in_channels = static_cast<size_t>(x[1]), depth = static_cast<size_t>(w.shape()[1]);
  const size_t group = channel / (channels / (in_channels / depth));
  const size_t in = window.input_size(), out = window.output_size(), taps = window.kernel_size();
  const uint8_t* from = args.in + (image * in_channels + group * depth) * in;
  const auto* weights = static_cast<const uint8_t*>(w.raw()) + channel * depth * taps;
  const auto value = [](uint8_t byte, bool is_signed) {
    return is_signed ? int32_t{static_cast<int8_t>(byte)} : int32_t{byte};
  };
  int32_t zero = 0;
  if (args.weight_zero) zero = args.weight_zero[args.weight_zero_per_channel ? channel : 0];
  for (size_t i = 0; i < out; ++i) {
    // Sums wrap around.
    uint32_t sum =
        args.epilogue.bias_rows ? static_cast<uint32_t>(args.epilogue.bias_rows[channel]) : 0u;
    window.ForEachTap(i, [&](const GeneralWindow::Tap& tap) {
      for (size_t c = 0; tap.is_inside && c < depth; ++c) {
        const int32_t a = value(from[c * in + tap.offset], args.in_is_signed) - args.in_zero;
        const int32_t b = value(weights[c * taps + tap.index], args.weights_are_signed) - zero;
        sum += static_cast<uint32_t>(a * b);
      }
    });
    StoreSum(static_cast<int32_t>(sum), channel, args.epilogue, plane * out + i, args.out);
  }
}

// Shared by both. `Infer` names the operator.
template <auto Infer>
class Int8Conv final : public StatefulKernel<Infer> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(this->Bind(info));
    const Tensor* constant = info.Constant(kInputs.w);
    if (constant == nullptr || !kByteTypes.Contains(constant->type()) || constant->size() == 0 ||
        constant->rank() > kMaxWindowRank + 2) {
      return OkStatus();
    }
    weights_.Keep(*constant, Format("byte convolution, {} groups", this->attrs_.group),
                  info.weights());
    info.ReleaseConstant(kInputs.w);
    return OkStatus();
  }

  Status Run(KernelContext& context) const override {
    const Tensor& x = context.Input(0);
    const Tensor& w = context.Input(kInputs.w);
    Tensor& y = context.Output(0);
    if (y.size() == 0) return OkStatus();
    TENON_ASSIGN_OR_RETURN(const Window window,
                           MakeWindow(this->attrs_, w.shape().dims().subspan(2), kMostWindowRank));
    kernels::Int8ConvArgs args;
    args.in = static_cast<const uint8_t*>(x.raw());
    args.in_is_signed = x.type() == DataType::kInt8;
    args.weights_are_signed = w.type() == DataType::kInt8;
    args.out = y.raw();
    if (context.HasInput(kInputs.x_zero)) {
      args.in_zero = ByteAt(context.Input(kInputs.x_zero), 0);
    }
    if (window.rank > kMaxWindowRank) return RunGeneral(window, args, context);
    args.shape = GeneralConvShape(window, x.shape(), y.shape(), this->attrs_.group);
    const size_t tasks = kernels::Int8ConvTaskCount(args.shape);
    const size_t task_bytes = kernels::Int8ConvScratchSize(args.shape);
    const size_t weight_bytes =
        weights_.is_kept() ? 0 : kernels::PackedInt8ConvWeightsSize(args.shape);
    const size_t channel_bytes = ChannelBytes(y);
    const size_t bytes = context.TaskScratchBytes(tasks, task_bytes);
    const auto all = CheckedAdd(weight_bytes + 2 * channel_bytes, bytes);
    auto* memory = static_cast<std::byte*>(context.Scratch(all.value_or(SIZE_MAX)));
    if (memory == nullptr) return RuntimeException("out of memory: {} bytes of scratch", bytes);
    FillChannels(context, memory, &args);
    memory += 2 * channel_bytes;
    if (weights_.is_kept()) {
      TENON_ASSIGN_OR_RETURN(args.packed_weights, PackedWeights(args));
    } else {
      kernels::PackInt8ConvWeights(args.shape, static_cast<const uint8_t*>(w.raw()),
                                   args.weights_are_signed, memory);
      args.packed_weights = memory;
      memory += weight_bytes;
    }
    context.ForEachTaskIn(memory, tasks, task_bytes, [&](size_t task, std::byte* scratch) {
      kernels::RunInt8ConvTask(args, task, scratch);
    });
    return OkStatus();
  }

 private:
  static constexpr bool kIsLinear = Infer == &InferQLinearConv;
  static constexpr ConvInputs kInputs = kIsLinear ? kLinearInputs : kIntegerInputs;

  // Of zero points, or scales, of the output channels.
  static size_t ChannelBytes(const Tensor& y) {
    return RoundUp<size_t>(static_cast<size_t>(y.shape()[1]) * 4, 64);
  }

  static Status RunGeneral(const Window& window, kernels::Int8ConvArgs& args,
                           KernelContext& context) {
    const Tensor& x = context.Input(0);
    const Tensor& y = context.Output(0);
    auto* memory = static_cast<std::byte*>(context.Scratch(2 * ChannelBytes(y)));
    if (memory == nullptr) return RuntimeException("out of memory for {} channels", y.shape()[1]);
    FillChannels(context, memory, &args);
    const GeneralWindow general = GeneralWindow::Over(window, x.shape(), y.shape());
    const auto channels = static_cast<size_t>(y.shape()[1]);
    const size_t planes = static_cast<size_t>(y.shape()[0]) * channels;
    context.threads().ParallelFor(planes, 1, [&](size_t begin, size_t end) {
      for (size_t plane = begin; plane < end; ++plane) {
        RunGeneralPlane(general, args, x.shape(), context.Input(kInputs.w), channels, plane);
      }
    });
    return OkStatus();
  }

  Result<const std::byte*> PackedWeights(const kernels::Int8ConvArgs& args) const {
    const auto pack = [&](const Tensor& constant, float* packed) {
      kernels::PackInt8ConvWeights(args.shape, static_cast<const uint8_t*>(constant.raw()),
                                   args.weights_are_signed, reinterpret_cast<std::byte*>(packed));
    };
    // A multiple of 64, so it is a whole number of floats.
    const size_t bytes = kernels::PackedInt8ConvWeightsSize(args.shape);
    TENON_ASSIGN_OR_RETURN(const float* packed, weights_.Get(bytes / sizeof(float), pack));
    return reinterpret_cast<const std::byte*>(packed);
  }

  // Zero points, scales and bias of the output channels, the first two in `memory`.
  static void FillChannels(KernelContext& context, std::byte* memory, kernels::Int8ConvArgs* args) {
    const Tensor& y = context.Output(0);
    const auto channels = static_cast<size_t>(y.shape()[1]);
    if (context.HasInput(kInputs.w_zero)) {
      const Tensor& zeros = context.Input(kInputs.w_zero);
      auto* into = reinterpret_cast<int32_t*>(memory);
      for (int64_t i = 0; i < zeros.size(); ++i) {
        into[i] = ByteAt(zeros, static_cast<size_t>(i));
      }
      args->weight_zero = into;
      args->weight_zero_per_channel = zeros.size() > 1;
    }
    if constexpr (kIsLinear) {
      const float x_scale = *context.Input(kInputs.x_scale).data<float>();
      const float y_scale = *context.Input(kInputs.y_scale).data<float>();
      const Tensor& w_scales = context.Input(kInputs.w_scale);
      auto* scales = reinterpret_cast<float*>(memory + ChannelBytes(y));
      for (size_t i = 0; i < channels; ++i) {
        scales[i] = x_scale * w_scales.data<float>()[w_scales.size() > 1 ? i : 0] / y_scale;
      }
      args->epilogue.scale_rows = scales;
      const Tensor& y_zero = context.Input(kInputs.y_zero);
      args->epilogue.zero_point = ByteAt(y_zero, 0);
      args->epilogue.type = y_zero.type() == DataType::kInt8 ? kernels::Int8Output::kInt8
                                                             : kernels::Int8Output::kUint8;
      if (context.HasInput(kInputs.bias)) {
        args->epilogue.bias_rows = context.Input(kInputs.bias).data<int32_t>();
      }
    }
  }

  LazyWeights weights_;
};

constexpr OpRow kRows[] = {
    OpClass<Int8Conv<InferConvInteger>>("ConvInteger", {.since = 10, .types = kByteTypes}),
    OpClass<Int8Conv<InferQLinearConv>>("QLinearConv", {.since = 10, .types = kByteTypes}),
};

}  // namespace

TENON_OP_FAMILY(QuantizedConv, kRows);

}  // namespace tenon
