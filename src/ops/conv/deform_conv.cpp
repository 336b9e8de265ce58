// DeformConv: a convolution that samples each element of the kernel at its own offset.
#include <algorithm>

#include "base/arithmetic.h"
#include "kernels/gemm/gemm.h"
#include "kernels/resize.h"
#include "ops/framework/op_row.h"
#include "ops/framework/sample_taps.h"

namespace tenon {
namespace {

// DeformConv-19.
struct DeformConvAttrs {
  std::vector<int64_t> dilations, kernel_shape, pads, strides;
  int64_t group = 1, offset_group = 1;
  static constexpr auto Fields() {
    using A = DeformConvAttrs;
    return std::tuple(Field("dilations", &A::dilations), Field("kernel_shape", &A::kernel_shape),
                      Field("pads", &A::pads), Field("strides", &A::strides),
                      Field("group", &A::group), Field("offset_group", &A::offset_group));
  }
};

// Attribute number `i` of a list that may be left out. Bounded, so that sums of products fit.
Result<int64_t> NumberOf(std::string_view name, const std::vector<int64_t>& list, size_t count,
                         size_t i, int64_t least, int64_t fallback) {
  if (list.empty()) return fallback;
  if (list.size() != count) {
    return InvalidArgument("attribute '{}': expected {} numbers, got {}", name, count, list.size());
  }
  if (list[i] < least || list[i] > INT32_MAX) {
    return InvalidArgument("attribute '{}': expected numbers in [{}, {}], got {}", name, least,
                           INT32_MAX, list[i]);
  }
  return list[i];
}

Status Expect(std::string_view what, const Dim& got, const Dim& expected) {
  if (!got.is_number() || !expected.is_number() || got == expected) return OkStatus();
  return InvalidArgument("{}: expected {}, got {}", what, expected, got);
}

Status CheckGroups(const DeformConvAttrs& attrs, const SymbolicShape& x, const SymbolicShape& w) {
  if (attrs.group < 1 || attrs.group > INT32_MAX || attrs.offset_group < 1 ||
      attrs.offset_group > INT32_MAX) {
    return InvalidArgument("expected group and offset_group of at least 1, got {} and {}",
                           attrs.group, attrs.offset_group);
  }
  TENON_RETURN_IF_ERROR(Expect("channels of input 1 by groups", w[1] * Dim(attrs.group), x[1]));
  if (x[1].is_number() && x[1].value() % attrs.offset_group != 0) {
    return InvalidArgument("expected offset_group to divide {} channels, got {}", x[1],
                           attrs.offset_group);
  }
  if (w[0].is_number() && w[0].value() % attrs.group != 0) {
    return InvalidArgument("expected group to divide {} output channels, got {}", w[0],
                           attrs.group);
  }
  return OkStatus();
}

// The steps of the kernel along spatial axis `i`.
Result<Dim> StepsOf(const DeformConvAttrs& attrs, size_t rank, size_t i, const Dim& in,
                    const Dim& kernel) {
  TENON_ASSIGN_OR_RETURN(const int64_t stride, NumberOf("strides", attrs.strides, rank, i, 1, 1));
  TENON_ASSIGN_OR_RETURN(const int64_t dilation,
                         NumberOf("dilations", attrs.dilations, rank, i, 1, 1));
  TENON_ASSIGN_OR_RETURN(const int64_t begin, NumberOf("pads", attrs.pads, 2 * rank, i, 0, 0));
  TENON_ASSIGN_OR_RETURN(const int64_t end, NumberOf("pads", attrs.pads, 2 * rank, rank + i, 0, 0));
  const Dim free = in + Dim(begin + end) - (kernel - Dim(1)) * Dim(dilation) - Dim(1);
  if (free.is_number() && free.value() < 0) {
    return InvalidArgument("spatial axis {}: the kernel is longer than the padded input", i);
  }
  return FloorDiv(free, Dim(stride)) + Dim(1);
}

[[gnu::cold]] Status InferDeformConv(const DeformConvAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.Input(0));
  if (x.rank() < 3) return InvalidArgument("input 0: expected [N, C, spatial...], got {}", x);
  const size_t rank = x.rank() - 2;
  if (rank > kMaxSampledRank) {
    return NotImplemented("{} spatial axes; at most {} are served", rank, kMaxSampledRank);
  }
  TENON_ASSIGN_OR_RETURN(const SymbolicShape w, context.InputOfRank(1, x.rank()));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape offset, context.InputOfRank(2, x.rank()));
  TENON_RETURN_IF_ERROR(CheckGroups(attrs, x, w));
  const Dim kernel = w.Product(2, w.rank());
  const Dim kernels = kernel * Dim(attrs.offset_group);
  TENON_RETURN_IF_ERROR(Expect("images of input 2", offset[0], x[0]));
  TENON_RETURN_IF_ERROR(Expect("numbers per position of input 2", offset[1],
                               kernels * Dim(static_cast<int64_t>(rank))));
  SymbolicShape y = {x[0], w[0]};
  for (size_t i = 0; i < rank; ++i) {
    TENON_ASSIGN_OR_RETURN(const int64_t size, NumberOf("kernel_shape", attrs.kernel_shape, rank, i,
                                                        1, w[i + 2].number().value_or(1)));
    TENON_RETURN_IF_ERROR(Expect("kernel size of input 1", w[i + 2], Dim(size)));
    TENON_ASSIGN_OR_RETURN(const Dim steps, StepsOf(attrs, rank, i, x[i + 2], w[i + 2]));
    TENON_RETURN_IF_ERROR(Expect("positions of input 2", offset[i + 2], steps));
    y.Append(steps);
  }
  if (context.HasInput(3)) {
    TENON_ASSIGN_OR_RETURN(const SymbolicShape bias, context.InputOfRank(3, 1));
    TENON_RETURN_IF_ERROR(Expect("numbers of input 3", bias[0], w[0]));
  }
  if (context.HasInput(4)) {
    TENON_ASSIGN_OR_RETURN(const SymbolicShape mask, context.InputOfRank(4, x.rank()));
    TENON_RETURN_IF_ERROR(Expect("numbers per position of input 4", mask[1], kernels));
    for (size_t i = 0; i < rank + 2; ++i) {
      if (i != 1) TENON_RETURN_IF_ERROR(Expect("a size of input 4", mask[i], offset[i]));
    }
  }
  return context.SetOutput(0, std::move(y));
}

// One spatial axis.
struct DeformAxis {
  int64_t in, out, kernel, stride, dilation, pad;
};

// The data of a run. T is float or double. A task computes `block` neighbouring positions of one
// image and one group: it samples the input for every element of the kernel, and multiplies.
template <class T>
struct DeformRun {
  size_t rank = 0;
  std::array<DeformAxis, kMaxSampledRank> axes{};
  std::array<int64_t, kMaxSampledRank> dims{};        // of the input
  size_t in = 1, out = 1, kernel = 1;                 // elements of a map, and of the kernel
  size_t groups = 1, channels = 0, out_channels = 0;  // the latter two of a group
  size_t offset_groups = 1, channels_per_offset = 1;
  size_t taps = 1, block = 1;
  const T *x, *w, *offset, *bias, *mask;  // bias and mask may be null
  T* y;

  size_t k() const { return channels * kernel; }
  size_t blocks() const { return CeilDiv(out, block); }

  // Scratch of a task: the samples, taps, weights of taps, and what the product needs.
  size_t sample_bytes() const { return RoundUp<size_t>(k() * block * sizeof(T), 64); }
  size_t tap_bytes() const {
    return RoundUp<size_t>(taps * block * (sizeof(T) + sizeof(int32_t)), 64);
  }
  size_t product_bytes() const {
    return std::max(kernels::GemmScratchSize({out_channels, block, k()}, false),
                    kernels::GemmScratchSize({out_channels, out % block, k()}, false));
  }
  size_t task_bytes() const { return sample_bytes() + tap_bytes() + product_bytes(); }
};

template <class T>
DeformRun<T> MakeRun(const DeformConvAttrs& attrs, KernelContext& context) {
  constexpr size_t kMostSamples = 1 << 16;  // of a task: in floats, a quarter of a common L2 cache
  DeformRun<T> run;
  const Shape& x = context.Input(0).shape();
  const Shape& w = context.Input(1).shape();
  const Shape& y = context.Output(0).shape();
  run.rank = x.rank() - 2;
  const auto number = [](const std::vector<int64_t>& list, size_t i, int64_t fallback) {
    return list.empty() ? fallback : list[i];
  };
  for (size_t i = 0; i < run.rank; ++i) {
    run.axes[i] = {x[i + 2],
                   y[i + 2],
                   w[i + 2],
                   number(attrs.strides, i, 1),
                   number(attrs.dilations, i, 1),
                   number(attrs.pads, i, 0)};
    run.dims[i] = x[i + 2];
    run.taps *= 2;
  }
  run.in = static_cast<size_t>(x.Product(2, x.rank()));
  run.out = static_cast<size_t>(y.Product(2, y.rank()));
  run.kernel = static_cast<size_t>(w.Product(2, w.rank()));
  run.groups = static_cast<size_t>(attrs.group);
  run.channels = static_cast<size_t>(w[1]);
  run.out_channels = static_cast<size_t>(w[0] / attrs.group);
  run.offset_groups = static_cast<size_t>(attrs.offset_group);
  run.channels_per_offset = static_cast<size_t>(x[1] / attrs.offset_group);
  run.block = std::clamp<size_t>(kMostSamples / std::max<size_t>(run.k(), 1), 16, 256);
  const auto optional = [&](size_t i) {
    return context.HasInput(i) ? context.Input(i).data<T>() : nullptr;
  };
  run.x = context.Input(0).data<T>();
  run.w = context.Input(1).data<T>();
  run.offset = context.Input(2).data<T>();
  run.bias = optional(3);
  run.mask = optional(4);
  run.y = context.Output(0).data<T>();
  return run;
}

// The taps of element `k` of the kernel at positions [begin, begin + count), the mask in their
// weights. `set` numbers the offset groups of all images.
template <class T>
void FindTaps(const DeformRun<T>& run, size_t set, size_t k, size_t begin, size_t count,
              int32_t* indices, T* weights) {
  std::array<int64_t, kMaxSampledRank> element{};
  size_t rest = k;
  for (size_t i = run.rank; i-- > 0;) {
    element[i] = static_cast<int64_t>(rest) % run.axes[i].kernel;
    rest /= static_cast<size_t>(run.axes[i].kernel);
  }
  const T* offset = run.offset + (set * run.kernel + k) * run.rank * run.out;
  const T* mask = run.mask ? run.mask + (set * run.kernel + k) * run.out : nullptr;
  std::array<AxisTaps<T>, kMaxSampledRank> taps;
  for (size_t i = 0; i < count; ++i) {
    auto position = static_cast<int64_t>(begin + i);
    for (size_t axis = run.rank; axis-- > 0;) {
      const DeformAxis& a = run.axes[axis];
      const int64_t start = position % a.out * a.stride - a.pad + element[axis] * a.dilation;
      taps[axis] = LinearTaps(static_cast<T>(start) + offset[axis * run.out + begin + i], a.in);
      position /= a.out;
    }
    CombineTaps<T>({taps.data(), run.rank}, {run.dims.data(), run.rank}, count, indices + i,
                   weights + i);
    if (mask == nullptr) continue;
    for (size_t t = 0; t < run.taps; ++t) weights[t * count + i] *= mask[begin + i];
  }
}

void Multiply(const DeformRun<float>& run, size_t group, size_t count, const float* samples,
              float* y, std::byte* scratch) {
  kernels::GemmArgs args;
  args.sizes = {run.out_channels, count, run.k()};
  args.a = kernels::RowMajor(run.w + group * run.out_channels * run.k(), run.k());
  args.b = kernels::RowMajor(samples, count);
  args.c = y;
  args.ldc = run.out;
  if (run.bias) args.epilogue.bias_rows = run.bias + group * run.out_channels;
  kernels::Gemm(args, reinterpret_cast<float*>(scratch));
}

void Multiply(const DeformRun<double>& run, size_t group, size_t count, const double* samples,
              double* y, std::byte*) {
  for (size_t m = 0; m < run.out_channels; ++m) {
    const size_t channel = group * run.out_channels + m;
    std::fill_n(y + m * run.out, count, run.bias ? run.bias[channel] : 0.0);
    for (size_t k = 0; k < run.k(); ++k) {
      const double weight = run.w[channel * run.k() + k];
      for (size_t i = 0; i < count; ++i) y[m * run.out + i] += weight * samples[k * count + i];
    }
  }
}

template <class T>
void RunTask(const DeformRun<T>& run, size_t task, std::byte* scratch) {
  const size_t begin = task % run.blocks() * run.block;
  const size_t count = std::min(run.block, run.out - begin);
  const size_t group = task / run.blocks() % run.groups;
  const size_t image = task / run.blocks() / run.groups;
  T* const samples = reinterpret_cast<T*>(scratch);
  T* const weights = reinterpret_cast<T*>(scratch + run.sample_bytes());
  auto* const indices = reinterpret_cast<int32_t*>(weights + run.taps * run.block);
  const kernels::ResizeTaps<T> taps = {run.in, count, run.taps, indices, weights};
  const size_t first = group * run.channels, all_channels = run.groups * run.channels;
  for (size_t k = 0; k < run.kernel; ++k) {
    for (size_t c = 0; c < run.channels; ++c) {
      const bool starts = c == 0 || (first + c) % run.channels_per_offset == 0;
      if (starts) {
        const size_t set = image * run.offset_groups + (first + c) / run.channels_per_offset;
        FindTaps(run, set, k, begin, count, indices, weights);
      }
      kernels::SampleElements(taps, run.x + (image * all_channels + first + c) * run.in,
                              samples + (c * run.kernel + k) * count);
    }
  }
  T* const y = run.y + (image * run.groups + group) * run.out_channels * run.out + begin;
  Multiply(run, group, count, samples, y, scratch + run.sample_bytes() + run.tap_bytes());
}

template <class T>
Status RunTyped(const DeformConvAttrs& attrs, KernelContext& context) {
  const DeformRun<T> run = MakeRun<T>(attrs, context);
  if (run.in > INT32_MAX) return NotImplemented("maps of {} elements", run.in);
  const auto images = static_cast<size_t>(context.Input(0).shape()[0]);
  return context.ForEachTask(images * run.groups * run.blocks(), run.task_bytes(),
                             [&](size_t task, std::byte* scratch) { RunTask(run, task, scratch); });
}

Status RunDeformConv(const DeformConvAttrs& attrs, KernelContext& context) {
  if (context.Output(0).size() == 0) return OkStatus();
  return context.Input(0).type() == DataType::kDouble ? RunTyped<double>(attrs, context)
                                                      : RunTyped<float>(attrs, context);
}

constexpr OpRow kRows[] = {
    Op<InferDeformConv, RunDeformConv>(
        "DeformConv", {.since = 19, .types = {DataType::kFloat, DataType::kDouble}}),
};

}  // namespace

TENON_OP_FAMILY(DeformConv, kRows);

}  // namespace tenon
