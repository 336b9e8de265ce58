// RoiAlign and MaxRoiPool: regions of feature maps, pooled to one size.
#include <algorithm>
#include <cmath>

#include "base/arithmetic.h"
#include "ops/framework/element.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

constexpr int64_t kMostPooled = INT32_MAX;

// [regions, channels, height, width] of regions given as [regions, numbers].
Status InferPooled(ShapeContext& context, int64_t numbers, int64_t height, int64_t width) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.InputOfRank(0, 4));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape rois, context.InputOfRank(1, 2));
  if (rois[1].is_number() && rois[1].value() != numbers) {
    return InvalidArgument("input 1: expected regions of {} numbers, got {}", numbers, rois);
  }
  if (height < 1 || width < 1 || height > kMostPooled || width > kMostPooled) {
    return InvalidArgument("expected an output of at least 1 x 1, got {} x {}", height, width);
  }
  return context.SetOutput(0, {rois[0], x[1], Dim(height), Dim(width)});
}

// RoiAlign-16; before, regions were not shifted by half a pixel.
struct RoiAlignAttrs {
  std::string coordinate_transformation_mode = "output_half_pixel";
  std::string mode = "avg";
  int64_t output_height = 1, output_width = 1, sampling_ratio = 0;
  float spatial_scale = 1;
  static constexpr auto Fields() {
    using A = RoiAlignAttrs;
    return std::tuple(Field("coordinate_transformation_mode", &A::coordinate_transformation_mode),
                      Field("mode", &A::mode), Field("output_height", &A::output_height),
                      Field("output_width", &A::output_width),
                      Field("sampling_ratio", &A::sampling_ratio),
                      Field("spatial_scale", &A::spatial_scale));
  }
};

Status InferRoiAlign(const RoiAlignAttrs& attrs, ShapeContext& context) {
  if (attrs.mode != "avg" && attrs.mode != "max") {
    return InvalidArgument("attribute 'mode': expected avg or max, got '{}'", attrs.mode);
  }
  const std::string& coordinates = attrs.coordinate_transformation_mode;
  if (coordinates != "half_pixel" && coordinates != "output_half_pixel") {
    return InvalidArgument(
        "attribute 'coordinate_transformation_mode': expected half_pixel or output_half_pixel, got "
        "'{}'",
        coordinates);
  }
  if (attrs.sampling_ratio < 0 || attrs.sampling_ratio > kMostPooled) {
    return InvalidArgument("attribute 'sampling_ratio': expected at least 0, got {}",
                           attrs.sampling_ratio);
  }
  TENON_ASSIGN_OR_RETURN(const SymbolicShape rois, context.InputOfRank(1, 2));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape images, context.InputOfRank(2, 1));
  if (rois[0].is_number() && images[0].is_number() && rois[0].value() != images[0].value()) {
    return InvalidArgument("input 2: expected {} images, one per region, got {}", rois[0],
                           images[0]);
  }
  return InferPooled(context, 4, attrs.output_height, attrs.output_width);
}

// Along one axis, a sample lies between two elements.
template <class T>
struct Sample {
  int64_t low = 0, high = 0;
  T low_weight = 0, high_weight = 0;  // both 0 outside the map
};

template <class T>
Sample<T> SampleAt(T position, int64_t size) {
  Sample<T> sample;
  if (!(position >= -1 && position <= static_cast<T>(size))) return sample;
  position = std::max<T>(position, 0);
  sample.low = std::min(static_cast<int64_t>(position), size - 1);
  sample.high = std::min(sample.low + 1, size - 1);
  sample.high_weight = sample.high == sample.low ? 0 : position - static_cast<T>(sample.low);
  sample.low_weight = 1 - sample.high_weight;
  return sample;
}

// One axis of a region: `bins` of equal length, each with `samples`.
template <class T>
struct RegionAxis {
  T start = 0, bin = 0;
  int64_t bins = 1, samples = 1, size = 1;
  RegionAxis(T begin, T end, int64_t bins, int64_t size, const RoiAlignAttrs& attrs)
      : bins(bins), size(size) {
    const bool half_pixel = attrs.coordinate_transformation_mode == "half_pixel";
    const T offset = half_pixel ? T(0.5) : T(0);
    const T scale = static_cast<T>(attrs.spatial_scale);
    start = begin * scale - offset;
    T length = end * scale - offset - start;
    if (!half_pixel) length = std::max<T>(length, 1);
    bin = length / static_cast<T>(bins);
    samples = attrs.sampling_ratio > 0 ? attrs.sampling_ratio : Adaptive(bin);
  }
  Sample<T> At(int64_t b, int64_t s) const {
    const T step = (static_cast<T>(s) + T(0.5)) * bin / static_cast<T>(samples);
    return SampleAt(start + static_cast<T>(b) * bin + step, size);
  }

 private:
  static int64_t Adaptive(T bin) {
    constexpr T kMost = 1 << 24;  // also keeps regions of absurd sizes from taking forever
    return bin > 0 ? static_cast<int64_t>(std::ceil(std::min(bin, kMost))) : 0;
  }
};

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

// The samples of a region, in the order in which they are used: bins in rows, then their samples.
template <class T>
void PoolMap(const T* map, int64_t width, const Sample<T>* rows, const Sample<T>* columns,
             const RegionAxis<T>& height_axis, const RegionAxis<T>& width_axis, bool max, T* y) {
  const int64_t samples = height_axis.samples * width_axis.samples;
  for (int64_t i = 0; i < height_axis.bins; ++i) {
    for (int64_t j = 0; j < width_axis.bins; ++j) {
      T result = 0;
      bool first = true;
      for (int64_t s = 0; s < height_axis.samples; ++s) {
        const Sample<T>& row = rows[i * height_axis.samples + s];
        for (int64_t t = 0; t < width_axis.samples; ++t) {
          const Sample<T>& column = columns[j * width_axis.samples + t];
          const T value = Interpolated(map, width, row, column, max);
          result = !max ? result + value : first ? value : std::max(result, value);
          first = false;
        }
      }
      *y++ = max || samples == 0 ? result : result / static_cast<T>(samples);
    }
  }
}

Status CheckImages(const Tensor& images, int64_t count) {
  for (int64_t i = 0; i < images.size(); ++i) {
    const int64_t image = images.data<int64_t>()[i];
    if (image < 0 || image >= count) {
      return InvalidArgument("input 2: expected images in [0, {}), got {} at {}", count, image, i);
    }
  }
  return OkStatus();
}

template <class T>
Status CheckFinite(const Tensor& rois) {
  for (int64_t i = 0; i < rois.size(); ++i) {
    const T number = rois.data<T>()[i];
    if (std::isfinite(number)) continue;
    return InvalidArgument("input 1: expected finite numbers, got {} at {}", number, i);
  }
  return OkStatus();
}

template <class T>
Status AlignRegions(const RoiAlignAttrs& attrs, KernelContext& context) {
  TENON_RETURN_IF_ERROR(CheckFinite<T>(context.Input(1)));
  const Tensor& x = context.Input(0);
  const Shape& in = x.shape();
  const Shape& out = context.Output(0).shape();
  const T* rois = context.Input(1).data<T>();
  const auto axis_of = [&](size_t region, size_t i) {
    return RegionAxis<T>(rois[region * 4 + 1 - i], rois[region * 4 + 3 - i], out[2 + i], in[2 + i],
                         attrs);
  };
  const auto regions = static_cast<size_t>(out[0]);
  size_t most = 0;
  for (size_t r = 0; r < regions; ++r) {
    size_t count = 0;
    for (size_t i = 0; i < 2; ++i) {
      const RegionAxis<T> axis = axis_of(r, i);
      const std::optional<int64_t> samples = CheckedMul(axis.samples, axis.bins);
      if (!samples || *samples > INT32_MAX) {
        return InvalidArgument("region {} has too many samples: {} in each of {} bins", r,
                               axis.samples, axis.bins);
      }
      count += static_cast<size_t>(*samples);
    }
    most = std::max(most, count);
  }
  // A task is a region and some channels, which share its samples.
  constexpr int64_t kChannels = 16;
  const int64_t blocks = CeilDiv(in[1], kChannels);
  const bool max = attrs.mode == "max";
  return context.ForEachTask(
      regions * static_cast<size_t>(blocks), most * sizeof(Sample<T>),
      [&](size_t task, std::byte* scratch) {
        const size_t region = task / static_cast<size_t>(blocks);
        const RegionAxis<T> height = axis_of(region, 0), width = axis_of(region, 1);
        auto* const rows = reinterpret_cast<Sample<T>*>(scratch);
        Sample<T>* const columns = rows + height.bins * height.samples;
        for (int64_t i = 0; i < height.bins * height.samples; ++i) {
          rows[i] = height.At(i / height.samples, i % height.samples);
        }
        for (int64_t i = 0; i < width.bins * width.samples; ++i) {
          columns[i] = width.At(i / width.samples, i % width.samples);
        }
        const int64_t first = static_cast<int64_t>(task) % blocks * kChannels;
        const int64_t image = context.Input(2).data<int64_t>()[region];
        for (int64_t c = first; c < std::min(in[1], first + kChannels); ++c) {
          PoolMap(x.data<T>() + (image * in[1] + c) * in[2] * in[3], in[3], rows, columns, height,
                  width, max,
                  context.Output(0).data<T>() +
                      (static_cast<int64_t>(region) * in[1] + c) * out[2] * out[3]);
        }
      });
}

Status RunRoiAlign(const RoiAlignAttrs& attrs, KernelContext& context) {
  const Shape& in = context.Input(0).shape();
  Tensor& y = context.Output(0);
  if (y.size() == 0) return OkStatus();
  TENON_RETURN_IF_ERROR(CheckImages(context.Input(2), in[0]));
  if (in[2] == 0 || in[3] == 0) {
    return InvalidArgument("input 0: expected maps with elements, got {}", in);
  }
  return y.type() == DataType::kDouble ? AlignRegions<double>(attrs, context)
                                       : AlignRegions<float>(attrs, context);
}

// MaxRoiPool-22.
struct MaxRoiPoolAttrs {
  std::vector<int64_t> pooled_shape;
  float spatial_scale = 1;
  static constexpr auto Fields() {
    return std::tuple(Field("pooled_shape", &MaxRoiPoolAttrs::pooled_shape),
                      Field("spatial_scale", &MaxRoiPoolAttrs::spatial_scale));
  }
};

Status InferMaxRoiPool(const MaxRoiPoolAttrs& attrs, ShapeContext& context) {
  if (attrs.pooled_shape.size() != 2) {
    return InvalidArgument("attribute 'pooled_shape': expected 2 numbers, got {}",
                           attrs.pooled_shape.size());
  }
  return InferPooled(context, 5, attrs.pooled_shape[0], attrs.pooled_shape[1]);
}

// Of a region from pixel `first` to `last`, both included, cut into `bins`: the pixels [begin, end)
// of a bin, which may overlap its neighbours.
struct PixelRange {
  int64_t begin, end;
};

template <class T>
PixelRange PixelsOfBin(T first, T last, int64_t bins, int64_t bin, int64_t size) {
  const T length = std::max<T>(last - first + 1, 1) / static_cast<T>(bins);
  const auto clamp = [size](T pixel) {
    if (!(pixel > 0)) return int64_t{0};
    return pixel < static_cast<T>(size) ? static_cast<int64_t>(pixel) : size;
  };
  return {clamp(first + std::floor(static_cast<T>(bin) * length)),
          clamp(first + std::ceil(static_cast<T>(bin + 1) * length))};
}

template <class T>
Status PoolRegions(const MaxRoiPoolAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  const Shape& in = x.shape();
  const Shape& out = context.Output(0).shape();
  const T* rois = context.Input(1).data<T>();
  const T scale = static_cast<T>(attrs.spatial_scale);
  for (int64_t r = 0; r < out[0]; ++r) {
    const T image = rois[r * 5];
    if (!(image >= 0 && image < static_cast<T>(in[0]))) {
      return InvalidArgument("input 1: expected images in [0, {}), got {} in region {}", in[0],
                             image, r);
    }
  }
  const size_t grain = CopyGrain(static_cast<size_t>(out[2] * out[3]) * 4 * sizeof(T));
  context.threads().ParallelFor(
      static_cast<size_t>(out[0] * out[1]), grain, [&](size_t begin, size_t end) {
        for (auto task = static_cast<int64_t>(begin); task < static_cast<int64_t>(end); ++task) {
          const T* roi = rois + task / out[1] * 5;
          const auto image = static_cast<int64_t>(roi[0]);
          const T* map = x.data<T>() + (image * in[1] + task % out[1]) * in[2] * in[3];
          T* y = context.Output(0).data<T>() + task * out[2] * out[3];
          for (int64_t i = 0; i < out[2] * out[3]; ++i) {
            const PixelRange rows = PixelsOfBin(
                std::round(roi[2] * scale), std::round(roi[4] * scale), out[2], i / out[3], in[2]);
            const PixelRange columns = PixelsOfBin(
                std::round(roi[1] * scale), std::round(roi[3] * scale), out[3], i % out[3], in[3]);
            T most = 0;
            bool first = true;
            for (int64_t row = rows.begin; row < rows.end; ++row) {
              for (int64_t column = columns.begin; column < columns.end; ++column) {
                const T value = map[row * in[3] + column];
                most = first ? value : std::max(most, value);
                first = false;
              }
            }
            y[i] = most;
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
    Op<InferRoiAlign, RunRoiAlign>("RoiAlign", {.since = 10, .types = kFloatAndDouble}),
    Op<InferMaxRoiPool, RunMaxRoiPool>("MaxRoiPool", {.since = 1, .types = kFloatAndDouble}),
};

}  // namespace

TENON_OP_FAMILY(RoiPool, kRows);

}  // namespace tenon
