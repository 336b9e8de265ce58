// RoiAlign and MaxRoiPool: regions of feature maps, pooled to one size.
#include <algorithm>
#include <optional>

#include "base/arithmetic.h"
#include "ops/framework/element.h"
#include "ops/framework/op_row.h"
#include "ops/image/roi_regions.h"

namespace tenon {
namespace {

template <class Attrs>
Status InferPooled(const Attrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, PooledShape(attrs, context, 0));
  return context.SetOutput(0, std::move(y));
}

// The products of a sample and its four neighbours, as their sum or their maximum.
template <class T>
T Interpolated(const T* map, int64_t width, const Sample<T>& y, const Sample<T>& x, bool max) {
  const T* low = map + y.low * width;
  const T* high = map + y.high * width;
  const T a = y.low_weight * x.low_weight * low[x.low];
  const T b = y.low_weight * x.high_weight * low[x.high];
  const T c = y.high_weight * x.low_weight * high[x.low];
  const T d = y.high_weight * x.high_weight * high[x.high];
  return max ? std::max(std::max(a, b), std::max(c, d)) : a + b + c + d;
}

template <class T>
void PoolMap(const T* map, int64_t map_width, const RegionSamples<T>& samples, bool max, T* y) {
  const RegionAxis<T>&height = samples.height, &width = samples.width;
  SampleCount count;
  for (int64_t i = 0; i < height.bins; ++i) {
    for (int64_t j = 0; j < width.bins; ++j) {
      T result = 0;
      bool first = true;
      for (int64_t s = 0; s < height.samples; ++s) {
        if (count.IsCut(width.samples)) return;
        const Sample<T>& row = samples.rows[i * height.samples + s];
        for (int64_t t = 0; t < width.samples; ++t) {
          const Sample<T>& column = samples.columns[j * width.samples + t];
          const T value = Interpolated(map, map_width, row, column, max);
          result = !max ? result + value : first ? value : std::max(result, value);
          first = false;
        }
      }
      *y++ = max || samples.per_bin() == 0 ? result : result / static_cast<T>(samples.per_bin());
    }
  }
}

template <class T>
Status AlignRegions(const RoiAlignAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  const Shape& in = x.shape();
  const Shape& out = context.Output(0).shape();
  const AlignedRegions<T> regions(attrs, context.Input(1), in, out);
  TENON_ASSIGN_OR_RETURN(const size_t bytes, regions.SampleBytes(1));
  // A task is a region and some channels, which share its samples.
  constexpr int64_t kChannels = 16;
  const int64_t blocks = CeilDiv(in[1], kChannels);
  const bool max = attrs.mode == "max";
  return context.ForEachTask(
      static_cast<size_t>(out[0] * blocks), bytes, [&](size_t task, std::byte* scratch) {
        const size_t region = task / static_cast<size_t>(blocks);
        const RegionSamples<T> samples = regions.Samples(region, scratch);
        const int64_t first = static_cast<int64_t>(task) % blocks * kChannels;
        const int64_t image = context.Input(2).data<int64_t>()[region];
        for (int64_t c = first; c < std::min(in[1], first + kChannels); ++c) {
          PoolMap(x.data<T>() + (image * in[1] + c) * in[2] * in[3], in[3], samples, max,
                  context.Output(0).data<T>() +
                      (static_cast<int64_t>(region) * in[1] + c) * out[2] * out[3]);
        }
      });
}

Status RunRoiAlign(const RoiAlignAttrs& attrs, KernelContext& context) {
  const Shape& in = context.Input(0).shape();
  Tensor& y = context.Output(0);
  if (y.size() == 0) return OkStatus();
  TENON_RETURN_IF_ERROR(CheckImages(context.Input(2), in[0], 2));
  if (in[2] == 0 || in[3] == 0) {
    return InvalidArgument("input 0: expected maps with elements, got {}", in);
  }
  return y.type() == DataType::kDouble ? AlignRegions<double>(attrs, context)
                                       : AlignRegions<float>(attrs, context);
}

template <class T>
Status PoolRegions(const MaxRoiPoolAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  const Shape& in = x.shape();
  const Shape& out = context.Output(0).shape();
  const T* rois = context.Input(1).data<T>();
  TENON_RETURN_IF_ERROR(CheckRegionImages<T>(context.Input(1), in[0], 1));
  const size_t grain = CopyGrain(static_cast<size_t>(out[2] * out[3]) * 4 * sizeof(T));
  context.threads().ParallelFor(
      static_cast<size_t>(out[0] * out[1]), grain, [&](size_t begin, size_t end) {
        for (auto task = static_cast<int64_t>(begin); task < static_cast<int64_t>(end); ++task) {
          const T* roi = rois + task / out[1] * 5;
          const auto image = static_cast<int64_t>(roi[0]);
          const T* map = x.data<T>() + (image * in[1] + task % out[1]) * in[2] * in[3];
          T* y = context.Output(0).data<T>() + task * out[2] * out[3];
          const PooledRegion<T> region(attrs, roi, in, out);
          for (int64_t i = 0; i < out[2] * out[3]; ++i) {
            const std::optional<int64_t> largest = region.Largest(map, i);
            y[i] = largest ? map[*largest] : 0;
          }
        }
      });
  return OkStatus();
}

Status RunMaxRoiPool(const MaxRoiPoolAttrs& attrs, KernelContext& context) {
  if (context.Output(0).size() == 0) return OkStatus();
  return context.Input(0).type() == DataType::kDouble ? PoolRegions<double>(attrs, context)
                                                      : PoolRegions<float>(attrs, context);
}

constexpr TypeSet kFloatAndDouble = {DataType::kFloat, DataType::kDouble};

constexpr OpRow kRows[] = {
    Op<InferPooled<RoiAlignAttrs>, RunRoiAlign>("RoiAlign",
                                                {.since = 10, .types = kFloatAndDouble}),
    Op<InferPooled<MaxRoiPoolAttrs>, RunMaxRoiPool>("MaxRoiPool",
                                                    {.since = 1, .types = kFloatAndDouble}),
};

}  // namespace

TENON_OP_FAMILY(RoiPool, kRows);

}  // namespace tenon
