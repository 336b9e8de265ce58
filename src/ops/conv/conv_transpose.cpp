// ConvTranspose, and ConvTransposeWithDynamicPads of com.microsoft, in NCHW.
#include <algorithm>
#include <limits>

#include "kernels/conv/conv_general.h"
#include "ops/conv/conv_shapes.h"
#include "ops/conv/general_window.h"
#include "ops/conv/scalar_conv.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// ConvTranspose-11.
struct ConvTransposeAttrs : WindowAttrs {
  int64_t group = 1;
  std::vector<int64_t> output_padding, output_shape;
  static constexpr auto Fields() {
    using A = ConvTransposeAttrs;
    return std::tuple_cat(
        WindowAttrs::Fields(),
        std::tuple(Field("group", &A::group), Field("output_padding", &A::output_padding),
                   Field("output_shape", &A::output_shape)));
  }
};

Status CheckOutputAttrs(const ConvTransposeAttrs& attrs, size_t rank) {
  constexpr int64_t kLargest = std::numeric_limits<int32_t>::max();
  if (!attrs.output_padding.empty() && attrs.output_padding.size() != rank) {
    return InvalidArgument("expected {} output_padding, got {}", rank, attrs.output_padding.size());
  }
  for (const int64_t padding : attrs.output_padding) {
    if (padding < 0 || padding > kLargest) {
      return InvalidArgument("expected output_padding in [0, {}], got {}", kLargest, padding);
    }
  }
  // Some exporters also write the batch and channel sizes.
  const size_t sizes = attrs.output_shape.size();
  if (sizes != 0 && sizes != rank && sizes != rank + 2) {
    return InvalidArgument("expected {} sizes in output_shape, got {}", rank, sizes);
  }
  for (const int64_t size : attrs.output_shape) {
    if (size < 1) return InvalidArgument("expected output_shape >= 1, got {}", size);
  }
  return OkStatus();
}

// The size of the output along spatial axis `i`, with the pads that it has.
struct OutputDim {
  Dim out;
  WindowDim window;
};

Result<OutputDim> TransposedDim(const ConvTransposeAttrs& attrs, const Window& window, size_t i,
                                const Dim& in) {
  WindowDim dim = window.dims[i];
  const int64_t output_padding = attrs.output_padding.empty() ? 0 : attrs.output_padding[i];
  if (const int64_t limit = std::max(dim.stride, dim.dilation); output_padding >= limit) {
    return InvalidArgument(
        "spatial axis {}: expected output_padding below {}, the larger of "
        "stride and dilation, got {}",
        i, limit, output_padding);
  }
  const Dim full = (in - Dim(1)) * Dim(dim.stride) + Dim(dim.extent() + output_padding);
  const bool same =
      window.auto_pad == AutoPad::kSameUpper || window.auto_pad == AutoPad::kSameLower;
  if (!attrs.output_shape.empty() || same) {
    const Dim out = attrs.output_shape.empty()
                        ? in * Dim(dim.stride)
                        : Dim(attrs.output_shape[attrs.output_shape.size() - window.rank + i]);
    const Dim total = full - out;
    // A longer output would be that of more input elements.
    const int64_t most_excess = dim.stride - 1 - std::min(output_padding, dim.stride - 1);
    if (total.is_number() && -total.value() > most_excess) {
      return InvalidArgument("spatial axis {}: expected output_shape of at most {}, got {}", i,
                             full + Dim(most_excess), out);
    }
    if (total.is_number()) {
      DistributePads(std::max<int64_t>(0, total.value()), window.auto_pad, &dim);
    }
    return OutputDim{out, dim};
  }
  const Dim out = full - Dim(dim.pad_begin + dim.pad_end);
  if (out.is_number() && out.value() < 0) {
    return InvalidArgument("spatial axis {}: the pads {} and {} leave nothing of {} elements", i,
                           dim.pad_begin, dim.pad_end, full);
  }
  return OutputDim{out, dim};
}

Status InferTransposed(const ConvTransposeAttrs& attrs, ShapeContext& context, size_t bias) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape w, context.Input(1));
  if (x.rank() < 3) return InvalidArgument("input 0: expected [N, C, spatial...], got {}", x);
  if (w.rank() != x.rank()) {
    return InvalidArgument("input 1: expected rank {} to match input 0 {}, got {}", x.rank(), x, w);
  }
  TENON_RETURN_IF_ERROR(CheckGroup(attrs.group, w[0], 1));
  if (x[1].is_number() && w[0].is_number() && !(x[1] == w[0])) {
    return InvalidArgument("input 0: expected {} channels for the weights {}, got {}", w[0], w, x);
  }
  const Dim channels = w[1] * Dim(attrs.group);
  TENON_RETURN_IF_ERROR(CheckConvBias(context, channels, bias));
  TENON_ASSIGN_OR_RETURN(const Shape kernel, KernelShapeOf(attrs, w));
  TENON_ASSIGN_OR_RETURN(const Window window, MakeWindow(attrs, kernel.dims(), kMostWindowRank));
  TENON_RETURN_IF_ERROR(CheckOutputAttrs(attrs, window.rank));
  SymbolicShape y = {x[0], channels};
  for (size_t i = 0; i < window.rank; ++i) {
    TENON_ASSIGN_OR_RETURN(OutputDim dim, TransposedDim(attrs, window, i, x[i + 2]));
    y.Append(std::move(dim.out));
  }
  return context.SetOutput(0, std::move(y));
}

constexpr size_t kBias = 2;

Status InferConvTranspose(const ConvTransposeAttrs& attrs, ShapeContext& context) {
  return InferTransposed(attrs, context, kBias);
}

// ConvTransposeWithDynamicPads-1: the pads are an input, followed by the bias.
enum DynamicInput : size_t { kPads = 2, kDynamicBias };

Status InferDynamic(const ConvTransposeAttrs& attrs, ShapeContext& context) {
  ConvTransposeAttrs padded = attrs;
  if (context.HasInput(kPads)) {
    TENON_ASSIGN_OR_RETURN(const Shape pads, context.InputAsInts(kPads));
    padded.pads.assign(pads.begin(), pads.end());
  }
  return InferTransposed(padded, context, kDynamicBias);
}

Result<kernels::ConvGeneralShape> TransposedShape(const ConvTransposeAttrs& attrs, const Shape& x,
                                                  const Shape& w, const Shape& y) {
  TENON_ASSIGN_OR_RETURN(const Window window, MakeWindow(attrs, w.dims().subspan(2)));
  kernels::ConvGeneralShape shape;
  shape.batch = static_cast<size_t>(x[0]);
  shape.in_channels = static_cast<size_t>(x[1]);
  shape.out_channels = static_cast<size_t>(y[1]);
  shape.groups = static_cast<size_t>(attrs.group);
  for (size_t i = 0; i < window.rank; ++i) {
    TENON_ASSIGN_OR_RETURN(const OutputDim dim, TransposedDim(attrs, window, i, Dim(x[i + 2])));
    shape.dims[kMaxWindowRank - window.rank + i] = {static_cast<size_t>(x[i + 2]),
                                                    static_cast<size_t>(y[i + 2]),
                                                    static_cast<size_t>(dim.window.kernel),
                                                    static_cast<size_t>(dim.window.stride),
                                                    static_cast<size_t>(dim.window.dilation),
                                                    static_cast<size_t>(dim.window.pad_begin)};
  }
  return shape;
}

// For more axes than the kernels support: every input element adds its window to the output. T:
// float or double.
template <class T>
Status RunGeneral(const ConvTransposeAttrs& attrs, size_t bias_input, KernelContext& context) {
  const Tensor& x = context.Input(0);
  const Tensor& w = context.Input(1);
  Tensor& y = context.Output(0);
  TENON_ASSIGN_OR_RETURN(const Window window,
                         MakeWindow(attrs, w.shape().dims().subspan(2), kMostWindowRank));
  // The window moves over the output as that of a Conv moves over its input.
  GeneralWindow general;
  general.rank = window.rank;
  for (size_t i = 0; i < window.rank; ++i) {
    const int64_t in = x.shape()[i + 2];
    TENON_ASSIGN_OR_RETURN(const OutputDim dim, TransposedDim(attrs, window, i, Dim(in)));
    general.dims[i] = {
        static_cast<size_t>(y.shape()[i + 2]),    static_cast<size_t>(in),
        static_cast<size_t>(dim.window.kernel),   static_cast<size_t>(dim.window.stride),
        static_cast<size_t>(dim.window.dilation), static_cast<size_t>(dim.window.pad_begin)};
  }
  const auto channels = static_cast<size_t>(y.shape()[1]);
  const auto width = static_cast<size_t>(w.shape()[1]);  // output channels of a group
  const auto in_channels = static_cast<size_t>(x.shape()[1]);
  const size_t depth = in_channels / static_cast<size_t>(attrs.group);
  const size_t in = general.output_size(), out = general.input_size();
  const size_t taps = general.kernel_size();
  const T* bias = context.HasInput(bias_input) ? context.Input(bias_input).data<T>() : nullptr;
  const auto planes = static_cast<size_t>(y.shape()[0]) * channels;
  return context.ForEachTask(planes, out * sizeof(double), [&](size_t plane, std::byte* scratch) {
    const size_t image = plane / channels, channel = plane % channels;
    auto* const sums = reinterpret_cast<double*>(scratch);
    std::fill_n(sums, out, bias ? bias[channel] : 0);
    for (size_t c = channel / width * depth; c < (channel / width + 1) * depth; ++c) {
      const T* values = x.data<T>() + (image * in_channels + c) * in;
      const T* weights = w.data<T>() + (c * width + channel % width) * taps;
      for (size_t i = 0; i < in; ++i) {
        general.ForEachTap(i, [&](const GeneralWindow::Tap& tap) {
          if (!tap.is_inside) return;
          sums[tap.offset] += static_cast<double>(values[i]) * weights[tap.index];
        });
      }
    }
    std::transform(sums, sums + out, y.data<T>() + plane * out,
                   [](double sum) { return static_cast<T>(sum); });
  });
}

Status RunFloats(const ConvTransposeAttrs& attrs, size_t bias, KernelContext& context) {
  const Tensor& x = context.Input(0);
  const Tensor& w = context.Input(1);
  Tensor& y = context.Output(0);
  if (y.size() == 0) return OkStatus();
  if (x.rank() > kMaxWindowRank + 2) return RunGeneral<float>(attrs, bias, context);
  kernels::ConvGeneralArgs args;
  TENON_ASSIGN_OR_RETURN(args.shape, TransposedShape(attrs, x.shape(), w.shape(), y.shape()));
  args.in = x.data<float>();
  args.weights = w.data<float>();
  args.out = y.data<float>();
  if (context.HasInput(bias)) args.epilogue.bias = context.Input(bias).data<float>();
  return context.ForEachTask(
      kernels::ConvTransposeTaskCount(args.shape), kernels::ConvTransposeScratchSize(args.shape),
      [&](size_t task, std::byte* scratch) { RunConvTransposeTask(args, task, scratch); });
}

Status RunDoubles(const ConvTransposeAttrs& attrs, size_t bias_input, KernelContext& context) {
  const Tensor& x = context.Input(0);
  const Tensor& w = context.Input(1);
  Tensor& y = context.Output(0);
  if (y.size() == 0) return OkStatus();
  if (x.rank() > kMaxWindowRank + 2) return RunGeneral<double>(attrs, bias_input, context);
  TENON_ASSIGN_OR_RETURN(const kernels::ConvGeneralShape shape,
                         TransposedShape(attrs, x.shape(), w.shape(), y.shape()));
  const double* bias =
      context.HasInput(bias_input) ? context.Input(bias_input).data<double>() : nullptr;
  const ScalarConvArgs args = {shape, x.data<double>(), w.data<double>(), bias, y.data<double>()};
  return context.ForEachTask(
      shape.batch * shape.out_channels, ScalarConvTransposeScratch(shape) * sizeof(double),
      [&](size_t plane, std::byte* scratch) {
        ScalarConvTransposePlane(args, plane, reinterpret_cast<double*>(scratch));
      });
}

Status RunConvTranspose(const ConvTransposeAttrs& attrs, KernelContext& context) {
  return context.Input(0).type() == DataType::kDouble ? RunDoubles(attrs, kBias, context)
                                                      : RunFloats(attrs, kBias, context);
}

Status RunDynamic(const ConvTransposeAttrs& attrs, KernelContext& context) {
  ConvTransposeAttrs padded = attrs;
  if (context.HasInput(kPads)) {
    const auto pads = context.Input(kPads).values<int64_t>();
    padded.pads.assign(pads.begin(), pads.end());
  }
  return context.Input(0).type() == DataType::kDouble ? RunDoubles(padded, kDynamicBias, context)
                                                      : RunFloats(padded, kDynamicBias, context);
}

constexpr TypeSet kFloatAndDouble = {DataType::kFloat, DataType::kDouble};

constexpr OpRow kRows[] = {
    Op<InferConvTranspose, RunConvTranspose>("ConvTranspose", {.types = kFloatAndDouble}),
    Op<InferDynamic, RunDynamic>("ConvTransposeWithDynamicPads",
                                 {.domain = "com.microsoft", .types = kFloatAndDouble}),
};

}  // namespace

TENON_OP_FAMILY(ConvTranspose, kRows);

}  // namespace tenon
