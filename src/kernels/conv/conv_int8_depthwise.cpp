#include "kernels/conv/conv_int8_depthwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/conv_int8_depthwise.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>
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

// The inputs for one tap of the kernel along consecutive outputs.
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
  // sums[i] = sum over the taps of from[i] * weight; reads and writes whole groups of vectors.
  void (*sum)(const RowTap* taps, size_t tap_count, size_t n, int32_t* sums);
  // out[i] = saturate(round((sums[i] + bias) * scale) + zero_point); reads whole vectors.
  void (*round)(const RowRounding& rounding, const int32_t* sums, size_t n, uint8_t* out);
};

// Elements that may be read or written after the last one.
inline constexpr size_t kDepthwiseSlack = 64;

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
  // As many sums as hide the latency of an addition. An array cannot hold vectors of SVE.
  for (size_t i = 0; i < n; i += 4 * lanes) {
    auto sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    for (const RowTap* tap = taps; tap < taps + tap_count; ++tap) {
      const auto weight = hn::Set(d, tap->weight);
      const float* const from = tap->from + i;
      sum0 = hn::MulAdd(hn::LoadU(d, from), weight, sum0);
      sum1 = hn::MulAdd(hn::LoadU(d, from + lanes), weight, sum1);
      sum2 = hn::MulAdd(hn::LoadU(d, from + 2 * lanes), weight, sum2);
      sum3 = hn::MulAdd(hn::LoadU(d, from + 3 * lanes), weight, sum3);
    }
    hn::StoreU(hn::ConvertTo(di, sum0), di, sums + i);
    hn::StoreU(hn::ConvertTo(di, sum1), di, sums + i + lanes);
    hn::StoreU(hn::ConvertTo(di, sum2), di, sums + i + 2 * lanes);
    hn::StoreU(hn::ConvertTo(di, sum3), di, sums + i + 3 * lanes);
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

// The widened plane with zeros for its pads. Rows and columns of the same phase of the stride lie
// together, so that for each tap the inputs of all outputs do too: those of an output row, then
// some that belong to no output, then those of the next row.
struct PlaneLayout {
  size_t rows, columns;  // of a phase
  size_t phase_stride;   // elements between phases, which are [row phases][column phases]

  explicit PlaneLayout(const ConvGeneralShape& shape)
      : rows(PhaseLength(shape.dims[1])),
        columns(PhaseLength(shape.dims[2])),
        phase_stride((rows * columns + kDepthwiseSlack + 15) / 16 * 16) {}

  static size_t PhaseLength(const ConvDim& dim) {
    const size_t used = (dim.out - 1) * dim.stride + (dim.kernel - 1) * dim.dilation + 1;
    return (used + dim.stride - 1) / dim.stride;
  }
  size_t floats(const ConvGeneralShape& shape) const {
    return phase_stride * shape.dims[1].stride * shape.dims[2].stride;
  }
};

// Of a padded row's first `columns` columns, those of a phase.
size_t ColumnsOfPhase(size_t columns, size_t stride, size_t phase) {
  return (columns + stride - 1 - phase) / stride;
}

// Rows of the output that are computed together: their sums stay in L1.
size_t BlockRows(const ConvGeneralShape& shape, const PlaneLayout& layout) {
  constexpr size_t kBlockSums = 2048;
  return std::clamp<size_t>(kBlockSums / layout.columns, 1, shape.dims[1].out);
}
size_t BlockSums(const ConvGeneralShape& shape, const PlaneLayout& layout) {
  return (BlockRows(shape, layout) * layout.columns + kDepthwiseSlack + 15) / 16 * 16;
}

// Rows of the input that are widened together.
size_t WidenedRows(const ConvDim& height, const ConvDim& width) {
  constexpr size_t kWidened = 2048;
  return std::clamp<size_t>(kWidened / std::max<size_t>(1, width.in), 1,
                            std::max<size_t>(1, height.in));
}
size_t WidenedSize(const ConvGeneralShape& shape) {
  const ConvDim &height = shape.dims[1], &width = shape.dims[2];
  return (WidenedRows(height, width) * width.in + kDepthwiseSlack + 15) / 16 * 16;
}

// Writes a padded row: `n` elements from column `first` on, zeros before and after them.
void PlaceRow(const Int8DepthwiseTable& table, const PlaneLayout& layout, size_t stride,
              const float* in, size_t first, size_t n, float* row) {
  if (stride == 1) {
    std::copy_n(in, n, row + first);
  } else if (stride == 2) {
    float* const even = row + (first + 1) / 2;
    float* const odd = row + layout.phase_stride + first / 2;
    table.split(in, n, first % 2 == 0 ? even : odd, first % 2 == 0 ? odd : even);
  } else {
    for (size_t i = 0; i < n; ++i) {
      row[(first + i) % stride * layout.phase_stride + (first + i) / stride] = in[i];
    }
  }
  // What split wrote after the last element goes, too.
  for (size_t phase = 0; phase < stride; ++phase, row += layout.phase_stride) {
    std::fill_n(row, ColumnsOfPhase(first, stride, phase), 0.0f);
    std::fill(row + ColumnsOfPhase(first + n, stride, phase), row + layout.columns, 0.0f);
  }
}

// `line`: WidenedSize floats.
void WidenPlane(const Int8DepthwiseTable& table, const Int8ConvArgs& args,
                const PlaneLayout& layout, const uint8_t* in, float* line, float* plane) {
  const ConvDim &height = args.shape.dims[1], &width = args.shape.dims[2];
  const size_t used = layout.columns * width.stride;
  const size_t first = std::min(width.pad_begin, used), n = std::min(width.in, used - first);
  const size_t together = WidenedRows(height, width);
  const auto zero = static_cast<float>(args.in_zero);
  for (size_t r = 0; r < layout.rows * height.stride; ++r) {
    float* const row = plane + r % height.stride * width.stride * layout.phase_stride +
                       r / height.stride * layout.columns;
    const size_t y = r - height.pad_begin;  // wraps around in the upper pads
    if (r < height.pad_begin || y >= height.in) {
      PlaceRow(table, layout, width.stride, nullptr, 0, 0, row);
      continue;
    }
    if (y % together == 0) {
      const size_t rows = std::min(together, height.in - y);
      table.widen(in + y * width.in, args.in_is_signed, zero, rows * width.in, line);
    }
    PlaceRow(table, layout, width.stride, line + y % together * width.in, first, n, row);
  }
}

// The taps of the first output.
size_t FindTaps(const ConvGeneralShape& shape, const PlaneLayout& layout, const float* plane,
                const int32_t* weights, RowTap* taps) {
  const ConvDim &height = shape.dims[1], &width = shape.dims[2];
  size_t count = 0;
  for (size_t ky = 0; ky < height.kernel; ++ky) {
    const size_t row = ky * height.dilation;
    for (size_t kx = 0; kx < width.kernel; ++kx) {
      const size_t column = kx * width.dilation;
      const size_t phase = row % height.stride * width.stride + column % width.stride;
      taps[count] = {plane + phase * layout.phase_stride + row / height.stride * layout.columns +
                         column / width.stride,
                     static_cast<float>(weights[count])};
      ++count;
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
  const size_t floats = layout.floats(shape) + WidenedSize(shape) + 2 * BlockSums(shape, layout);
  return std::max((floats * sizeof(float) + 63) / 64 * 64, Int8DepthwiseRowsScratchSize(shape));
}

void RunInt8DepthwisePlane(const Int8ConvArgs& args, size_t picture, size_t channel,
                           const int32_t* weights, std::byte* scratch) {
  const Int8DepthwiseTable& table = TENON_SELECT_TABLE(Int8DepthwiseTable, kInt8DepthwiseTable);
  const Int8GemmTable& products = ActiveInt8Conv();
  const ConvGeneralShape& shape = args.shape;
  const PlaneLayout layout(shape);
  const size_t out_rows = shape.dims[1].out, out_columns = shape.dims[2].out;
  auto* const plane = reinterpret_cast<float*>(scratch);
  float* const line = plane + layout.floats(shape);
  auto* const sums = reinterpret_cast<int32_t*>(line + WidenedSize(shape));
  auto* const rounded = reinterpret_cast<uint8_t*>(sums + BlockSums(shape, layout));
  const size_t in_channel = channel / (shape.out_channels / shape.groups);
  const uint8_t* in = args.in + (picture * shape.in_channels + in_channel) * InPixels(shape);
  WidenPlane(table, args, layout, in, line, plane);
  RowTap taps[kMostTaps];
  const size_t tap_count = FindTaps(shape, layout, plane, weights, taps);
  const Int8Epilogue& epilogue = args.epilogue;
  const bool is_wide = epilogue.type == Int8Output::kInt32 || epilogue.type == Int8Output::kFloat;
  const size_t element = is_wide ? sizeof(int32_t) : 1;
  auto* out = static_cast<std::byte*>(args.out) +
              (picture * shape.out_channels + channel) * OutPixels(shape) * element;
  const RowRounding rounding = {
      .bias = epilogue.bias_rows ? epilogue.bias_rows[channel] : 0,
      .scale = epilogue.scale_rows ? epilogue.scale * epilogue.scale_rows[channel] : epilogue.scale,
      .zero_point = epilogue.zero_point,
      .is_signed = epilogue.type == Int8Output::kInt8};
  static constexpr int32_t kNoSums[kMaxInt8TileColumns] = {};
  const size_t block_rows = BlockRows(shape, layout);
  for (size_t y = 0; y < out_rows; y += block_rows) {
    const size_t rows = std::min(block_rows, out_rows - y);
    const size_t n = (rows - 1) * layout.columns + out_columns;
    table.sum(taps, tap_count, n, sums);
    if (!is_wide) table.round(rounding, sums, n, rounded);
    for (size_t row = 0; row < rows; ++row, out += out_columns * element) {
      const size_t begin = row * layout.columns;
      if (!is_wide) {
        std::memcpy(out, rounded + begin, out_columns);
        continue;
      }
      for (size_t x = 0; x < out_columns; x += kMaxInt8TileColumns) {
        products.store_row({.count = std::min(kMaxInt8TileColumns, out_columns - x),
                            .sums = sums + begin + x,
                            .column_sums = kNoSums,
                            .b_zero = kNoSums,
                            .a_zero = 0,
                            .row_term = 0,
                            .row = channel,
                            .column = 0,
                            .c = out + x * element},
                           epilogue);
      }
    }
    for (size_t t = 0; t < tap_count; ++t) taps[t].from += rows * layout.columns;
  }
}

}  // namespace tenon::kernels
#endif
