// com.tenon NhwcQLinearConv; see ops/conv/nhwc_layout.h.
#include "ops/framework/stateful_kernel.h"

#if defined(__x86_64__)

#include "base/arithmetic.h"
#include "kernels/conv/conv_int8_nhwc.h"
#include "ops/conv/channels_last_shape.h"
#include "ops/conv/conv_shapes.h"
#include "ops/linear/int8_product.h"

namespace tenon {
namespace {

enum Input : size_t { kX, kXScale, kXZero, kW, kWScale, kWZero, kYScale, kYZero, kBias, kTable };

Status InferNhwcConv(const ConvAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.Input(kX));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape w, context.Input(kW));
  if (x.rank() != w.rank()) return InvalidArgument("input 0: expected [N, H, W, C], got {}", x);
  TENON_ASSIGN_OR_RETURN(const SymbolicShape y, ConvOutput(attrs, ChannelsFirst(x), w));
  const DataType type = context.ElementType(context.HasInput(kTable) ? kTable : kYZero);
  if (type == DataType::kUndefined) return context.SetOutput(0, ChannelsLast(y));
  return context.SetOutput(0, ChannelsLast(y), type);
}

int32_t ByteOf(const Tensor& scalar) {
  return scalar.type() == DataType::kInt8 ? int32_t{*scalar.data<int8_t>()}
                                          : int32_t{*scalar.data<uint8_t>()};
}

class NhwcConv final : public StatefulKernel<InferNhwcConv> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    const Tensor* constant = info.Constant(kW);
    if (constant == nullptr) return NotImplemented("input {}: expected a constant", size_t{kW});
    // What they become depends on the attributes.
    weights_.Keep(*constant,
                  Format("NHWC byte convolution, {} groups, strides {}, dilations {}", attrs_.group,
                         Shape(attrs_.strides), Shape(attrs_.dilations)),
                  info.weights());
    info.ReleaseConstant(kW);
    return OkStatus();
  }

  Status Run(KernelContext& context) const override {
    const Tensor& x = context.Input(kX);
    const Tensor& w = context.Input(kW);
    Tensor& y = context.Output(0);
    if (y.size() == 0) return OkStatus();
    TENON_ASSIGN_OR_RETURN(const Window window, MakeWindow(attrs_, w.shape().dims().subspan(2)));
    const Tensor& y_zero = context.Input(kYZero);
    kernels::Int8ConvArgs args;
    args.shape =
        GeneralConvShape(window, ChannelsFirst(x.shape()), ChannelsFirst(y.shape()), attrs_.group);
    args.in = static_cast<const uint8_t*>(x.raw());
    args.in_is_signed = x.type() == DataType::kInt8;
    args.in_zero = ByteOf(context.Input(kXZero));
    args.weights_are_signed = w.type() == DataType::kInt8;
    args.out = y.raw();
    args.epilogue.zero_point = ByteOf(y_zero);
    args.epilogue.type =
        y_zero.type() == DataType::kInt8 ? kernels::Int8Output::kInt8 : kernels::Int8Output::kUint8;
    if (context.HasInput(kBias)) args.epilogue.bias_rows = context.Input(kBias).data<int32_t>();
    if (context.HasInput(kTable)) {
      args.table = static_cast<const uint8_t*>(context.Input(kTable).raw());
    }
    TENON_ASSIGN_OR_RETURN(args.packed_weights, PackedWeights(context, args));

    const size_t channels = args.shape.out_channels;
    const size_t channel_bytes = RoundUp<size_t>(channels * sizeof(float), 64);
    const size_t tasks = kernels::Int8NhwcConvTaskCount(args.shape);
    const size_t task_bytes = kernels::Int8NhwcConvScratchSize(args.shape);
    const size_t bytes = context.TaskScratchBytes(tasks, task_bytes);
    const auto all = CheckedAdd(channel_bytes, bytes);
    auto* memory = static_cast<std::byte*>(context.Scratch(all.value_or(SIZE_MAX)));
    if (memory == nullptr) return RuntimeException("out of memory: {} bytes of scratch", bytes);
    auto* scales = reinterpret_cast<float*>(memory);
    FillScales(context, {scales, channels});
    args.epilogue.scale_rows = scales;
    context.ForEachTaskIn(memory + channel_bytes, tasks, task_bytes,
                          [&](size_t task, std::byte* scratch) {
                            kernels::RunInt8NhwcConvTask(args, task, scratch);
                          });
    return OkStatus();
  }

 private:
  static void FillScales(const KernelContext& context, std::span<float> scales) {
    const float x_scale = *context.Input(kXScale).data<float>();
    const float y_scale = *context.Input(kYScale).data<float>();
    const Tensor& w_scales = context.Input(kWScale);
    for (size_t i = 0; i < scales.size(); ++i) {
      scales[i] = x_scale * w_scales.data<float>()[w_scales.size() > 1 ? i : 0] / y_scale;
    }
  }

  Result<const std::byte*> PackedWeights(KernelContext& context,
                                         const kernels::Int8ConvArgs& args) const {
    const auto pack = [&](const Tensor& constant, float* packed) {
      const size_t tasks = kernels::PackInt8NhwcWeightsTaskCount(args.shape);
      context.threads().ParallelFor(tasks, 1, [&](size_t begin, size_t end) {
        for (size_t task = begin; task < end; ++task) {
          kernels::RunPackInt8NhwcWeightsTask(
              args.shape, static_cast<const uint8_t*>(constant.raw()), args.weights_are_signed,
              task, reinterpret_cast<std::byte*>(packed));
        }
      });
    };
    // A multiple of 64, so it is a whole number of floats.
    const size_t bytes = kernels::PackedInt8NhwcWeightsSize(args.shape);
    TENON_ASSIGN_OR_RETURN(const float* packed, weights_.Get(bytes / sizeof(float), pack));
    return reinterpret_cast<const std::byte*>(packed);
  }

  LazyWeights weights_;
};

constexpr OpRow kRows[] = {
    OpClass<NhwcConv>("NhwcQLinearConv", {.domain = "com.tenon", .types = kByteTypes}),
};

}  // namespace

TENON_OP_FAMILY(NhwcQLinearConv, kRows);

}  // namespace tenon

#else

namespace tenon {

TENON_OP_FAMILY(NhwcQLinearConv, {});

}  // namespace tenon

#endif
