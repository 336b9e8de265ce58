#include "kernels/conv/conv_int8_depthwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/conv_int8_depthwise.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "kernels/conv/conv_dims.h"
#include "kernels/dispatch.h"
#include "kernels/gemm/gemm_int8_tile.h"
#include "kernels/partial-inl.h"

#ifndef TENON_KERNELS_CONV_BYTES_DEPTHWISE_TABLE
#define TENON_KERNELS_CONV_BYTES_DEPTHWISE_TABLE
namespace tenon::kernels {

// Products of differences of bytes are at most 255^2, so the sum of this many is below 2^24.
inline constexpr size_t kMostTaps = 256;

// The inputs for one tap of the kernel along a row of the output.
struct RowTap {
  const float* from;
  float weight;
};

// How the sums of an output channel become int8 or uint8.
struct RowRounding {
  int32_t bias;
  float scale;
  int32_t zero_point;
  bool is_signed;
};

struct Int8DepthwiseTable {
  // out[i] = in[i] - zero.
  void (*widen)(const uint8_t* in, bool is_signed, float zero, size_t n, float* out);
  // Writes element i of `in` to element i / 2 of `even` or `odd`.
  void (*split)(const float* in, size_t n, float* even, float* odd);
  // sums[i] = sum over the taps of from[i] * weight; reads and writes whole vectors.
  void (*sum)(const RowTap* taps, size_t tap_count, size_t n, int32_t* sums);
  // out[i] = saturate(round((sums[i] + bias) * scale) + zero_point); reads whole vectors.
  void (*round)(const RowRounding& rounding, const int32_t* sums, size_t n, uint8_t* out);
};

// Elements that may be read or written after the last one.
inline constexpr size_t kDepthwiseSlack = 32;

}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, 16>;

template <class Byte>
HWY_INLINE hn::Vec<FloatTag> WidenVector(const Byte* in, hn::Vec<FloatTag> zero) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  const hn::Rebind<Byte, FloatTag> db;
  return hn::Sub(hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(db, in))), zero);
}

template <class Byte>
void WidenAs(const Byte* HWY_RESTRICT in, float zero, size_t n, float* HWY_RESTRICT out) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  const auto shift = hn::Set(d, zero);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(WidenVector(in + i, shift), d, out + i);
  for (; i < n; ++i) out[i] = static_cast<float>(in[i]) - zero;
}

void Widen(const uint8_t* in, bool is_signed, float zero, size_t n, float* out) {
  if (is_signed) {
    WidenAs(reinterpret_cast<const int8_t*>(in), zero, n, out);
  } else {
    WidenAs(in, zero, n, out);
  }
}

void Split(const float* HWY_RESTRICT in, size_t n, float* HWY_RESTRICT even,
           float* HWY_RESTRICT odd) {
  const FloatTag d;
  const size_t lanes = hn::Lanes(d);
  hn::Vec<FloatTag> v0, v1;
  for (size_t i = 0; 2 * i < n; i += lanes) {
    hn::LoadInterleaved2(d, in + 2 * i, v0, v1);
    hn::StoreU(v0, d, even + i);
    hn::StoreU(v1, d, odd + i);
  }
}

void Sum(const RowTap* taps, size_t tap_count, size_t n, int32_t* HWY_RESTRICT sums) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < n; i += 2 * lanes) {
    auto sum0 = hn::Zero(d), sum1 = hn::Zero(d);
    for (const RowTap* tap = taps; tap < taps + tap_count; ++tap) {
      const auto weight = hn::Set(d, tap->weight);
      sum0 = hn::MulAdd(hn::LoadU(d, tap->from + i), weight, sum0);
      sum1 = hn::MulAdd(hn::LoadU(d, tap->from + i + lanes), weight, sum1);
    }
    hn::StoreU(hn::ConvertTo(di, sum0), di, sums + i);
    hn::StoreU(hn::ConvertTo(di, sum1), di, sums + i + lanes);
  }
}

template <class T>
void RoundAs(const RowRounding& rounding, const int32_t* sums, size_t n, T* out) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  const hn::Rebind<T, FloatTag> dt;
  const size_t lanes = hn::Lanes(d);
  const auto bound = [&](int32_t limit) HWY_ATTR {
    return hn::Set(d, static_cast<float>(limit - rounding.zero_point));
  };
  const auto low = bound(std::numeric_limits<T>::min());
  const auto high = bound(std::numeric_limits<T>::max());
  const auto bias = hn::Set(di, rounding.bias), zero_point = hn::Set(di, rounding.zero_point);
  const auto scale = hn::Set(d, rounding.scale);
  for (size_t i = 0; i < n; i += lanes) {
    const auto sum = hn::ConvertTo(d, hn::Add(hn::LoadU(di, sums + i), bias));
    const auto kept = hn::Min(hn::Max(hn::Mul(sum, scale), low), high);
    const auto v = hn::DemoteTo(dt, hn::Add(hn::NearestInt(kept), zero_point));
    if (n - i >= lanes) {
      hn::StoreU(v, dt, out + i);
    } else {
      StorePartial(v, dt, out + i, n - i);
    }
  }
}

void Round(const RowRounding& rounding, const int32_t* sums, size_t n, uint8_t* out) {
  if (rounding.is_signed) {
    RoundAs(rounding, sums, n, reinterpret_cast<int8_t*>(out));
  } else {
    RoundAs(rounding, sums, n, out);
  }
}

}  // namespace

const Int8DepthwiseTable kInt8DepthwiseTable = {&Widen, &Split, &Sum, &Round};

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::kernels {
namespace {

// The layout of the widened plane: for each row and each phase of the stride, the columns of that
// phase, with zeros for the pads.
struct PlaneLayout {
  size_t columns;       // of a padded row that the taps use
  size_t phase_stride;  // elements between phases
  size_t row_stride;

  explicit PlaneLayout(const ConvGeneralShape& shape) {
    const ConvDim& width = shape.dims[2];
    columns = (width.out - 1) * width.stride + (width.kernel - 1) * width.dilation + 1;
    const size_t longest = (columns + width.stride - 1) / width.stride;
    phase_stride = (longest + kDepthwiseSlack + 15) / 16 * 16;
    row_stride = phase_stride * width.stride;
  }
  // Space to widen a row in, before it is split.
  size_t line_size() const { return (columns + 2 * kDepthwiseSlack + 15) / 16 * 16; }
};

size_t SumsSize(const ConvGeneralShape& shape) {
  return (shape.dims[2].out + kDepthwiseSlack + 15) / 16 * 16;
}

void WidenRow(const Int8DepthwiseTable& table, const Int8ConvArgs& args, const PlaneLayout& layout,
              const uint8_t* in, float* line, float* row) {
  const ConvDim& width = args.shape.dims[2];
  float* into = width.stride == 1 ? row : line;
  const size_t before = std::min(width.pad_begin, layout.columns);
  const size_t count = std::min(width.in, layout.columns - before);
  std::fill_n(into, before, 0.0f);
  table.widen(in, args.in_is_signed, static_cast<float>(args.in_zero), count, into + before);
  std::fill(into + before + count, into + layout.columns, 0.0f);
  if (width.stride == 2) {
    table.split(line, layout.columns, row, row + layout.phase_stride);
  } else if (width.stride > 2) {
    for (size_t i = 0; i < layout.columns; ++i) {
      row[i % width.stride * layout.phase_stride + i / width.stride] = line[i];
    }
  }
}

// The taps that are inside the plane for row `y` of the output.
size_t FindTaps(const ConvGeneralShape& shape, const PlaneLayout& layout, const float* plane,
                const int32_t* weights, size_t y, RowTap* taps) {
  const ConvDim &height = shape.dims[1], &width = shape.dims[2];
  size_t count = 0;
  for (size_t ky = 0; ky < height.kernel; ++ky) {
    const ptrdiff_t row = static_cast<ptrdiff_t>(y * height.stride) + TapShift(height, ky);
    if (row < 0 || row >= static_cast<ptrdiff_t>(height.in)) continue;
    for (size_t kx = 0; kx < width.kernel; ++kx) {
      const size_t column = kx * width.dilation;
      taps[count++] = {plane + static_cast<size_t>(row) * layout.row_stride +
                           column % width.stride * layout.phase_stride + column / width.stride,
                       static_cast<float>(weights[ky * width.kernel + kx])};
    }
  }
  return count;
}

}  // namespace

bool IsInt8Depthwise(const ConvGeneralShape& shape) {
  return shape.in_channels == shape.groups && IsPlanar(shape) && KernelTaps(shape) <= kMostTaps &&
         OutPixels(shape) > 0;
}

size_t Int8DepthwiseScratchSize(const ConvGeneralShape& shape) {
  const PlaneLayout layout(shape);
  const size_t floats = shape.dims[1].in * layout.row_stride + layout.line_size() + SumsSize(shape);
  return std::max(floats * sizeof(float), Int8DepthwiseRowsScratchSize(shape));
}

void RunInt8DepthwisePlane(const Int8ConvArgs& args, size_t picture, size_t channel,
                           const int32_t* weights, std::byte* scratch) {
  const Int8DepthwiseTable& table = TENON_SELECT_TABLE(Int8DepthwiseTable, kInt8DepthwiseTable);
  const Int8GemmTable& products = ActiveInt8Gemm();
  const ConvGeneralShape& shape = args.shape;
  const PlaneLayout layout(shape);
  const ConvDim &height = shape.dims[1], &width = shape.dims[2];
  auto* plane = reinterpret_cast<float*>(scratch);
  float* line = plane + height.in * layout.row_stride;
  auto* sums = reinterpret_cast<int32_t*>(line + layout.line_size());
  const size_t in_channel = channel / (shape.out_channels / shape.groups);
  const uint8_t* in = args.in + (picture * shape.in_channels + in_channel) * InPixels(shape);
  for (size_t y = 0; y < height.in; ++y) {
    WidenRow(table, args, layout, in + y * width.in, line, plane + y * layout.row_stride);
  }
  const bool is_wide =
      args.epilogue.type == Int8Output::kInt32 || args.epilogue.type == Int8Output::kFloat;
  const size_t element = is_wide ? sizeof(int32_t) : 1;
  auto* out = static_cast<std::byte*>(args.out) +
              (picture * shape.out_channels + channel) * OutPixels(shape) * element;
  const Int8Epilogue& epilogue = args.epilogue;
  const RowRounding rounding = {
      .bias = epilogue.bias_rows ? epilogue.bias_rows[channel] : 0,
      .scale = epilogue.scale_rows ? epilogue.scale * epilogue.scale_rows[channel] : epilogue.scale,
      .zero_point = epilogue.zero_point,
      .is_signed = epilogue.type == Int8Output::kInt8};
  static constexpr int32_t kNoSums[kMaxInt8TileColumns] = {};
  RowTap taps[kMostTaps];
  for (size_t y = 0; y < height.out; ++y) {
    const size_t tap_count = FindTaps(shape, layout, plane, weights, y, taps);
    table.sum(taps, tap_count, width.out, sums);
    if (!is_wide) {
      table.round(rounding, sums, width.out, reinterpret_cast<uint8_t*>(out) + y * width.out);
      continue;
    }
    for (size_t x = 0; x < width.out; x += kMaxInt8TileColumns) {
      products.store_row({.count = std::min(kMaxInt8TileColumns, width.out - x),
                          .sums = sums + x,
                          .column_sums = kNoSums,
                          .b_zero = kNoSums,
                          .a_zero = 0,
                          .row_term = 0,
                          .row = channel,
                          .column = 0,
                          .c = out + (y * width.out + x) * element},
                         args.epilogue);
    }
  }
}

}  // namespace tenon::kernels
#endif
