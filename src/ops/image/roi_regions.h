// Regions of feature maps: where RoiAlign takes its samples, and which pixels MaxRoiPool's bins
// have.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/arithmetic.h"
#include "base/stop_signal.h"
#include "ops/framework/op_row.h"

namespace tenon {

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
    constexpr T kMost = 1 << 20;  // also keeps the samples of regions of absurd sizes few
    return bin > 0 ? static_cast<int64_t>(std::ceil(std::min(bin, kMost))) : 0;
  }
};

// A bin has any number of samples. This asks now and then whether the run is to end.
class SampleCount {
 public:
  // Called before so many are taken: whether to leave them and all later ones out.
  bool IsCut(int64_t samples) {
    constexpr int64_t kPerQuestion = 1 << 18;
    count_ += samples;
    if (is_cut_ || count_ < kPerQuestion) return is_cut_;
    count_ = 0;
    return is_cut_ = StopSignal::CutsCurrent();
  }

 private:
  int64_t count_ = 0;
  bool is_cut_ = false;
};

// The samples of a region: of bin b of an axis, those from b * samples on.
template <class T>
struct RegionSamples {
  RegionAxis<T> height, width;
  const Sample<T>*rows, *columns;
  int64_t per_bin() const { return height.samples * width.samples; }
};

// The regions of RoiAlign, which it pools from [images, channels, height, width] to [regions,
// channels, height, width].
template <class T>
class AlignedRegions {
 public:
  AlignedRegions(const RoiAlignAttrs& attrs, const Tensor& rois, const Shape& maps,
                 const Shape& pooled)
      : attrs_(attrs), rois_(rois), maps_(maps), pooled_(pooled) {}

  // The bytes that Samples() needs for any region. Errors: kInvalidArgument, naming input `input`,
  // for regions that are not finite, or have too many samples.
  Result<size_t> SampleBytes(size_t input) const {
    for (int64_t i = 0; i < rois_.size(); ++i) {
      const T number = rois_.data<T>()[i];
      if (std::isfinite(number)) continue;
      return InvalidArgument("input {}: expected finite numbers, got {} at {}", input, number, i);
    }
    size_t most = 0;
    for (size_t r = 0; r < static_cast<size_t>(pooled_[0]); ++r) {
      size_t count = 0;
      for (size_t i = 0; i < 2; ++i) {
        const RegionAxis<T> axis = AxisOf(r, i);
        const std::optional<int64_t> samples = CheckedMul(axis.samples, axis.bins);
        if (!samples || *samples > kMostSamples) {
          return InvalidArgument("region {} has too many samples: {} in each of {} bins", r,
                                 axis.samples, axis.bins);
        }
        count += static_cast<size_t>(*samples);
      }
      most = std::max(most, count);
    }
    return most * sizeof(Sample<T>);
  }

  RegionSamples<T> Samples(size_t region, std::byte* memory) const {
    RegionSamples<T> result{AxisOf(region, 0), AxisOf(region, 1), nullptr, nullptr};
    auto* const rows = reinterpret_cast<Sample<T>*>(memory);
    Sample<T>* const columns = Fill(result.height, rows);
    Fill(result.width, columns);
    result.rows = rows;
    result.columns = columns;
    return result;
  }

 private:
  static constexpr int64_t kMostSamples = 1 << 24;  // of all bins along an axis

  // The vertical axis for 0, the horizontal one for 1. A region is x1, y1, x2, y2.
  RegionAxis<T> AxisOf(size_t region, size_t i) const {
    const T* const roi = rois_.data<T>() + region * 4;
    return RegionAxis<T>(roi[1 - i], roi[3 - i], pooled_[2 + i], maps_[2 + i], attrs_);
  }

  // Returns the end of what it writes.
  static Sample<T>* Fill(const RegionAxis<T>& axis, Sample<T>* samples) {
    for (int64_t i = 0; i < axis.bins * axis.samples; ++i) {
      *samples++ = axis.At(i / axis.samples, i % axis.samples);
    }
    return samples;
  }

  const RoiAlignAttrs& attrs_;
  const Tensor& rois_;
  const Shape& maps_;
  const Shape& pooled_;
};

// MaxRoiPool-22.
struct MaxRoiPoolAttrs {
  std::vector<int64_t> pooled_shape;
  float spatial_scale = 1;
  static constexpr auto Fields() {
    return std::tuple(Field("pooled_shape", &MaxRoiPoolAttrs::pooled_shape),
                      Field("spatial_scale", &MaxRoiPoolAttrs::spatial_scale));
  }
};

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

// The pixels of all bins of a region of MaxRoiPool: image, x1, y1, x2, y2.
template <class T>
class PooledRegion {
 public:
  PooledRegion(const MaxRoiPoolAttrs& attrs, const T* roi, const Shape& maps, const Shape& pooled)
      : maps_(maps), pooled_(pooled) {
    for (size_t i = 0; i < 4; ++i) {
      corners_[i] = std::round(roi[1 + i] * static_cast<T>(attrs.spatial_scale));
    }
  }

  // The first of the largest pixels of bin i of a map; none if the bin is empty.
  std::optional<int64_t> Largest(const T* map, int64_t i) const {
    const int64_t width = maps_[3];
    const PixelRange rows =
        PixelsOfBin(corners_[1], corners_[3], pooled_[2], i / pooled_[3], maps_[2]);
    const PixelRange columns =
        PixelsOfBin(corners_[0], corners_[2], pooled_[3], i % pooled_[3], width);
    std::optional<int64_t> found;
    for (int64_t row = rows.begin; row < rows.end; ++row) {
      for (int64_t place = row * width + columns.begin; place < row * width + columns.end;
           ++place) {
        if (!found || map[*found] < map[place]) found = place;
      }
    }
    return found;
  }

 private:
  const Shape& maps_;
  const Shape& pooled_;
  T corners_[4];
};

// The shape [regions, channels, height, width] of what is pooled from the maps in input `maps`, for
// the regions in the input after it, and the images of these in the one after that. Errors:
// kInvalidArgument for attributes and inputs that do not fit.
Result<SymbolicShape> PooledShape(const RoiAlignAttrs& attrs, const ShapeContext& context,
                                  size_t maps);
// The same of regions that name their images.
Result<SymbolicShape> PooledShape(const MaxRoiPoolAttrs& attrs, const ShapeContext& context,
                                  size_t maps);

// Errors: kInvalidArgument, naming input `input`, for an image that is not in [0, count).
Status CheckImages(const Tensor& images, int64_t count, size_t input);

// The same of regions of MaxRoiPool, whose first number is the image.
template <class T>
Status CheckRegionImages(const Tensor& rois, int64_t count, size_t input) {
  for (int64_t r = 0; r < rois.shape()[0]; ++r) {
    const T image = rois.data<T>()[r * 5];
    if (image >= 0 && image < static_cast<T>(count)) continue;
    return InvalidArgument("input {}: expected images in [0, {}), got {} in region {}", input,
                           count, image, r);
  }
  return OkStatus();
}

}  // namespace tenon
