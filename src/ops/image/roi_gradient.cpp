// RoiAlignGrad and MaxRoiPoolGrad of com.microsoft, which are Tenon's: dX of RoiAlign and
// MaxRoiPool, of dY and their inputs.
#include <algorithm>
#include <optional>

#include "base/arithmetic.h"
#include "ops/framework/element.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/op_row.h"
#include "ops/image/roi_regions.h"

namespace tenon {
namespace {

enum Input : size_t { kDy, kX, kRois, kImages };

template <class Attrs>
Status InferRegionGradient(const Attrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape y, PooledShape(attrs, context, kX));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kDy, y));
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(kX));
  return context.SetOutput(0, std::move(x));
}

// A task has some channels of one image, and adds what its regions give, in order.
constexpr int64_t kChannels = 16;

struct ChannelBlock {
  int64_t image, first, last;
};

ChannelBlock BlockOf(const Shape& x, size_t task) {
  const int64_t blocks = CeilDiv(x[1], kChannels), i = static_cast<int64_t>(task);
  const int64_t first = i % blocks * kChannels;
  return {i / blocks, first, std::min(x[1], first + kChannels)};
}

size_t BlockCount(const Shape& x) { return static_cast<size_t>(x[0] * CeilDiv(x[1], kChannels)); }

// The element that makes the maximum of a bin, and its weight.
template <class T>
struct LargestProduct {
  int64_t place = 0;
  T weight = 0;
};

template <class T>
class MapGradient {
 public:
  MapGradient(const RegionSamples<T>& samples, int64_t map_width)
      : samples_(samples), map_width_(map_width) {}

  void AddMean(const T* dy, T* dx) {
    const T scale = static_cast<T>(std::max<int64_t>(1, samples_.per_bin()));
    ForEachBin([&](int64_t i, int64_t j) {
      const T slope = *dy++ / scale;
      ForEachElement(i, j, [&](int64_t place, T weight) { dx[place] += slope * weight; });
    });
  }

  void AddLargest(const T* x, const T* dy, T* dx) {
    ForEachBin([&](int64_t i, int64_t j) {
      std::optional<LargestProduct<T>> largest;
      ForEachElement(i, j, [&](int64_t place, T weight) {
        if (!largest || largest->weight * x[largest->place] < weight * x[place]) {
          largest = {place, weight};
        }
      });
      const T slope = *dy++;
      if (largest) dx[largest->place] += slope * largest->weight;
    });
  }

 private:
  template <class F>
  void ForEachBin(F&& f) {
    for (int64_t i = 0; i < samples_.height.bins; ++i) {
      for (int64_t j = 0; j < samples_.width.bins; ++j) f(i, j);
    }
  }

  // The elements around each sample of a bin.
  template <class F>
  void ForEachElement(int64_t i, int64_t j, F&& f) {
    for (int64_t s = 0; s < samples_.height.samples; ++s) {
      if (count_.IsCut(samples_.width.samples)) return;
      const Sample<T>& row = samples_.rows[i * samples_.height.samples + s];
      const int64_t low = row.low * map_width_, high = row.high * map_width_;
      for (int64_t t = 0; t < samples_.width.samples; ++t) {
        const Sample<T>& column = samples_.columns[j * samples_.width.samples + t];
        f(low + column.low, row.low_weight * column.low_weight);
        f(low + column.high, row.low_weight * column.high_weight);
        f(high + column.low, row.high_weight * column.low_weight);
        f(high + column.high, row.high_weight * column.high_weight);
      }
    }
  }

  const RegionSamples<T>& samples_;
  const int64_t map_width_;
  SampleCount count_;
};

template <class T>
Status AddAligned(const RoiAlignAttrs& attrs, KernelContext& context) {
  const Tensor &dy = context.Input(kDy), &x = context.Input(kX);
  const Shape &in = x.shape(), &out = dy.shape();
  const int64_t* images = context.Input(kImages).data<int64_t>();
  const AlignedRegions<T> regions(attrs, context.Input(kRois), in, out);
  TENON_ASSIGN_OR_RETURN(const size_t bytes, regions.SampleBytes(kRois));
  const int64_t map = in[2] * in[3], pooled = out[2] * out[3];
  return context.ForEachTask(BlockCount(in), bytes, [&](size_t task, std::byte* scratch) {
    const ChannelBlock block = BlockOf(in, task);
    const int64_t begin = (block.image * in[1] + block.first) * map;
    T* const dx = context.Output(0).data<T>();
    std::fill_n(dx + begin, (block.last - block.first) * map, T(0));
    for (int64_t region = 0; region < out[0]; ++region) {
      if (images[region] != block.image) continue;
      const RegionSamples<T> samples = regions.Samples(static_cast<size_t>(region), scratch);
      MapGradient<T> gradient(samples, in[3]);
      for (int64_t c = block.first; c < block.last; ++c) {
        const int64_t at = (block.image * in[1] + c) * map;
        const T* const slopes = dy.data<T>() + (region * in[1] + c) * pooled;
        if (attrs.mode == "max") {
          gradient.AddLargest(x.data<T>() + at, slopes, dx + at);
        } else {
          gradient.AddMean(slopes, dx + at);
        }
      }
    }
  });
}

Status RunRoiAlignGradient(const RoiAlignAttrs& attrs, KernelContext& context) {
  if (context.Output(0).size() == 0) return OkStatus();
  TENON_RETURN_IF_ERROR(CheckImages(context.Input(kImages), context.Input(kX).shape()[0], kImages));
  return context.Input(kX).type() == DataType::kDouble ? AddAligned<double>(attrs, context)
                                                       : AddAligned<float>(attrs, context);
}

template <class T>
Status AddPooled(const MaxRoiPoolAttrs& attrs, KernelContext& context) {
  const Tensor &dy = context.Input(kDy), &x = context.Input(kX);
  const Shape &in = x.shape(), &out = dy.shape();
  const T* rois = context.Input(kRois).data<T>();
  TENON_RETURN_IF_ERROR(CheckRegionImages<T>(context.Input(kRois), in[0], kRois));
  const int64_t map = in[2] * in[3], pooled = out[2] * out[3];
  return context.ForEachTask(BlockCount(in), 0, [&](size_t task, std::byte*) {
    const ChannelBlock block = BlockOf(in, task);
    T* const dx = context.Output(0).data<T>();
    std::fill_n(dx + (block.image * in[1] + block.first) * map, (block.last - block.first) * map,
                T(0));
    for (int64_t r = 0; r < out[0]; ++r) {
      if (static_cast<int64_t>(rois[r * 5]) != block.image) continue;
      const PooledRegion<T> region(attrs, rois + r * 5, in, out);
      for (int64_t c = block.first; c < block.last; ++c) {
        const int64_t at = (block.image * in[1] + c) * map;
        const T* const slopes = dy.data<T>() + (r * in[1] + c) * pooled;
        for (int64_t i = 0; i < pooled; ++i) {
          const std::optional<int64_t> largest = region.Largest(x.data<T>() + at, i);
          if (largest) dx[at + *largest] += slopes[i];
        }
      }
    }
  });
}

Status RunMaxRoiPoolGradient(const MaxRoiPoolAttrs& attrs, KernelContext& context) {
  if (context.Output(0).size() == 0) return OkStatus();
  return context.Input(kX).type() == DataType::kDouble ? AddPooled<double>(attrs, context)
                                                       : AddPooled<float>(attrs, context);
}

constexpr TypeSet kFloatAndDouble = {DataType::kFloat, DataType::kDouble};

constexpr OpRow kRows[] = {
    Op<InferRegionGradient<MaxRoiPoolAttrs>, RunMaxRoiPoolGradient>(
        "MaxRoiPoolGrad", {.domain = "com.microsoft", .types = kFloatAndDouble}),
    Op<InferRegionGradient<RoiAlignAttrs>, RunRoiAlignGradient>(
        "RoiAlignGrad", {.domain = "com.microsoft", .types = kFloatAndDouble}),
};

}  // namespace

TENON_OP_FAMILY(RoiGradient, kRows);

}  // namespace tenon
