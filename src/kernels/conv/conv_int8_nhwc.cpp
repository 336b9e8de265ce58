#include "kernels/conv/conv_int8_nhwc.h"

#include <array>
#include <cmath>
#include <utility>

#include "kernels/conv/conv_int8_depthwise.h"
#include "kernels/conv/conv_int8_nhwc_rows.h"
#include "kernels/dispatch.h"
#include "kernels/elementwise/int8_table.h"

#if defined(__x86_64__)
#include "kernels/gemm/requantize_avx512.h"
#include "kernels/transpose_avx512.h"
#endif

namespace tenon::kernels {

#if defined(__x86_64__)

namespace {

#define TENON_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))

// GCC 12's partial redundancy elimination puts the sums of a tile into memory in every step.
#if defined(__clang__)
#define TENON_KEEPS_REGISTERS
#else
#define TENON_KEEPS_REGISTERS __attribute__((optimize("no-tree-pre")))
#endif

constexpr size_t kLanes = 16;          // output channels of a vector
constexpr size_t kPanel = 2 * kLanes;  // and of a panel
constexpr size_t kMostPixels = 14;     // of a tile: 28 vectors of sums

size_t DivideUp(size_t x, size_t y) { return (x + y - 1) / y; }
size_t RoundUp64(size_t x) { return (x + 63) / 64 * 64; }

// The bytes that a pixel of the output reads are runs of neighbours: all channels of a group for
// each tap or, if they are next to each other, for each row of the kernel.
struct RunShape {
  size_t count;  // runs
  size_t bytes;  // of a run
  size_t quads;  // of bytes; those beyond the run meet zeros

  explicit RunShape(const ConvGeneralShape& shape) {
    const ConvDim &height = shape.dims[1], &width = shape.dims[2];
    const bool is_joined = shape.groups == 1 && width.dilation == 1;
    const size_t channels = shape.in_channels / shape.groups;
    count = height.kernel * (is_joined ? 1 : width.kernel);
    bytes = channels * (is_joined ? width.kernel : 1);
    quads = DivideUp(bytes, 4);
  }
};

// Packed weights: for each group, panels of up to kPanel output channels, [runs][quads][channels
// of the panel][4]; then the sums of the weights of each output channel.
struct PackedShape {
  RunShape runs;
  size_t channels;  // output channels of a group
  size_t panels;

  explicit PackedShape(const ConvGeneralShape& shape)
      : runs(shape),
        channels(shape.out_channels / shape.groups),
        panels(DivideUp(channels, kPanel)) {}

  // In whole vectors.
  size_t PanelChannels(size_t panel) const {
    return channels - panel * kPanel > kLanes ? kPanel : kLanes;
  }
  size_t PanelBytes(size_t width) const { return runs.count * runs.quads * width * 4; }
  size_t GroupBytes() const {
    return (panels - 1) * PanelBytes(kPanel) + PanelBytes(PanelChannels(panels - 1));
  }
};

size_t SumsOffset(const ConvGeneralShape& shape) {
  return RoundUp64(shape.groups * PackedShape(shape).GroupBytes());
}

// Whether pixels can be read where they are: no pads, no signs, no bytes beyond a run.
bool ReadsInPlace(const ConvGeneralShape& shape, bool is_signed) {
  const RunShape runs(shape);
  const auto is_inside = [](const ConvDim& dim) {
    return dim.pad_begin == 0 && PaddedExtent(dim, dim.out) <= dim.in;
  };
  return !is_signed && runs.bytes % 4 == 0 && is_inside(shape.dims[1]) && is_inside(shape.dims[2]);
}

// Tasks: chunks of rows, and of panels if there are few rows.
struct Grid {
  NhwcRowChunks rows;
  size_t panel_parts;

  explicit Grid(const ConvGeneralShape& shape) : rows(shape, WantedRows(shape)) {
    constexpr size_t kEnoughTasks = 8;
    const PackedShape packed(shape);
    const size_t panels = shape.groups * packed.panels;
    const size_t chunks = shape.batch * rows.chunks;
    const double cost = static_cast<double>(rows.rows) * RowCost(shape);
    const auto affordable = static_cast<size_t>(cost / kLeastCost);
    panel_parts =
        std::clamp<size_t>(std::min(DivideUp(kEnoughTasks, chunks), affordable), 1, panels);
  }

  size_t tasks(const ConvGeneralShape& shape) const {
    return shape.batch * rows.chunks * panel_parts;
  }

 private:
  static constexpr double kLeastCost = 0.5e6, kTaskCost = 3e6;  // multiply-adds

  static double RowCost(const ConvGeneralShape& shape) {
    const RunShape runs(shape);
    return static_cast<double>(shape.dims[2].out) * static_cast<double>(shape.out_channels) *
           static_cast<double>(runs.count * runs.quads * 4);
  }
  static size_t WantedRows(const ConvGeneralShape& shape) {
    constexpr size_t kInputBytes = 192 * 1024;  // of a chunk, which stays in the L2 cache
    const size_t row_bytes =
        PaddedExtent(shape.dims[2], shape.dims[2].out) * shape.in_channels * shape.dims[1].stride;
    const auto by_cost = static_cast<size_t>(kTaskCost / RowCost(shape)) + 1;
    const size_t by_memory = std::max<size_t>(1, kInputBytes / row_bytes);
    // Rows that are copied are copied again for other panels. Weights are read again for each
    // chunk, so it has some tiles.
    const size_t wanted = ReadsInPlace(shape, false) ? by_memory : std::min(by_cost, by_memory);
    const size_t band = RowsOfBand(shape.dims[1].out, RowCost(shape), 2 * kLeastCost);
    return std::max(std::min(wanted, band), DivideUp(4 * kMostPixels, shape.dims[2].out));
  }
};

// One tile: output pixels times a panel's output channels.
struct Tile {
  const uint8_t* const* pixels;  // where the window of each begins
  const int32_t* offsets;        // from there to each quad of bytes
  size_t quads;
  const int8_t* weights;
  const int32_t* starts;  // of the sums, [kPanel]
  const float* scales;    // [kPanel]
  int32_t zero_point;
  bool is_signed;
  uint8_t* out;
  size_t out_stride;
  uint32_t channels;  // a bit for each that is there
  bool has_small_scales;
};

// Rounds a tile's sums, [pixels][kPanel], and stores them.
TENON_VNNI void StoreBounded(const Tile& tile, const int32_t* sums, size_t pixels) {
  const ByteRounding rounding = MakeByteRounding(tile.zero_point, tile.is_signed);
  uint8_t* out = tile.out;
  for (size_t p = 0; p < pixels; ++p, sums += kPanel, out += tile.out_stride) {
    for (size_t half = 0; half < kPanel; half += kLanes) {
      const auto written = static_cast<__mmask16>(tile.channels >> half);
      _mm_mask_storeu_epi8(out + half, written,
                           RoundToBytes(_mm512_load_si512(sums + half),
                                        _mm512_loadu_ps(tile.scales + half), rounding));
    }
  }
}

// The same if the scales are so small that sums need no bounds.
TENON_VNNI void StoreTile(const Tile& tile, const int32_t* sums, size_t pixels) {
  if (!tile.has_small_scales) return StoreBounded(tile, sums, pixels);
  const __m512 low_scale = _mm512_loadu_ps(tile.scales);
  const __m512 high_scale = _mm512_loadu_ps(tile.scales + kLanes);
  uint8_t* out = tile.out;
  for (size_t p = 0; p < pixels; p += 2, sums += 2 * kPanel) {
    const int32_t* next = p + 1 < pixels ? sums + kPanel : sums;
    const __m512i rows[4] = {_mm512_load_si512(sums), _mm512_load_si512(sums + kLanes),
                             _mm512_load_si512(next), _mm512_load_si512(next + kLanes)};
    const __m512i bytes =
        RoundRowsToBytes(rows, low_scale, high_scale, tile.zero_point, tile.is_signed);
    _mm256_mask_storeu_epi8(out, tile.channels, _mm512_maskz_extracti64x4_epi64(0xff, bytes, 0));
    out += tile.out_stride;
    if (p + 1 == pixels) break;
    _mm256_mask_storeu_epi8(out, tile.channels, _mm512_maskz_extracti64x4_epi64(0xff, bytes, 1));
    out += tile.out_stride;
  }
}

struct RowScales {
  __m512 low, high;
};

// The same from pixel kPixel on; recursive, so that the sums are never in memory.
template <size_t kPixel, size_t kPixels, size_t kVectors>
TENON_VNNI __attribute__((always_inline)) inline void StoreFrom(
    const __m512i (&acc)[kPixels][kVectors], const RowScales& scales, const Tile& tile,
    uint8_t* out) {
  if constexpr (kPixel < kPixels) {
    constexpr size_t kNext = kPixel + 1 < kPixels ? kPixel + 1 : kPixel;
    const __m512i rows[4] = {acc[kPixel][0], acc[kPixel][kVectors - 1], acc[kNext][0],
                             acc[kNext][kVectors - 1]};
    const __m512i bytes =
        RoundRowsToBytes(rows, scales.low, scales.high, tile.zero_point, tile.is_signed);
    _mm256_mask_storeu_epi8(out, tile.channels, _mm512_maskz_extracti64x4_epi64(0xff, bytes, 0));
    if constexpr (kNext > kPixel) {
      out += tile.out_stride;
      _mm256_mask_storeu_epi8(out, tile.channels, _mm512_maskz_extracti64x4_epi64(0xff, bytes, 1));
    }
    StoreFrom<kPixel + 2>(acc, scales, tile, out + tile.out_stride);
  }
}

// Tiles of at least so many pixels, which are most, round their sums in registers.
constexpr size_t kLeastKept = 12;

template <size_t kPixels, bool kIsWide>
TENON_KEEPS_REGISTERS TENON_VNNI void RunTile(const Tile& tile) {
  constexpr size_t kVectors = kIsWide ? 2 : 1;
  __m512i acc[kPixels][kVectors];
#pragma GCC unroll 14
  for (size_t p = 0; p < kPixels; ++p) {
    acc[p][0] = _mm512_loadu_si512(tile.starts);
    if constexpr (kIsWide) acc[p][1] = _mm512_loadu_si512(tile.starts + kLanes);
  }
  const int8_t* weights = tile.weights;
  for (size_t q = 0; q < tile.quads; ++q, weights += kVectors * 64) {
    const ptrdiff_t at = tile.offsets[q];
    const __m512i w0 = _mm512_loadu_si512(weights);
    __m512i w1;
    if constexpr (kIsWide) w1 = _mm512_loadu_si512(weights + 64);
#pragma GCC unroll 14
    for (size_t p = 0; p < kPixels; ++p) {
      int32_t four;
      std::memcpy(&four, tile.pixels[p] + at, sizeof(four));
      const __m512i quad = _mm512_set1_epi32(four);
      acc[p][0] = _mm512_dpbusd_epi32(acc[p][0], quad, w0);
      if constexpr (kIsWide) acc[p][1] = _mm512_dpbusd_epi32(acc[p][1], quad, w1);
    }
  }
  if constexpr (kIsWide && kPixels >= kLeastKept) {
    if (tile.has_small_scales) {
      const RowScales scales = {_mm512_loadu_ps(tile.scales),
                                _mm512_loadu_ps(tile.scales + kLanes)};
      StoreFrom<0>(acc, scales, tile, tile.out);
      return;
    }
  }
  alignas(64) int32_t sums[kPixels * kPanel];
#pragma GCC unroll 14
  for (size_t p = 0; p < kPixels; ++p) {
    _mm512_store_si512(sums + p * kPanel, acc[p][0]);
    _mm512_store_si512(sums + p * kPanel + kLanes,
                       kIsWide ? acc[p][kVectors - 1] : _mm512_setzero_si512());
  }
  StoreTile(tile, sums, kPixels);
}

#undef TENON_KEEPS_REGISTERS

template <bool kIsWide, size_t... kPixels>
constexpr auto TileFunctions(std::index_sequence<kPixels...>) {
  return std::array{&RunTile<kPixels + 1, kIsWide>...};
}
constexpr auto kNarrowTiles = TileFunctions<false>(std::make_index_sequence<kMostPixels>());
constexpr auto kWideTiles = TileFunctions<true>(std::make_index_sequence<kMostPixels>());

// The chunk of one task.
class DenseTask {
 public:
  DenseTask(const Int8ConvArgs& args, size_t task, std::byte* scratch)
      : args_(args),
        packed_(args.shape),
        grid_(args.shape),
        offsets_(reinterpret_cast<int32_t*>(scratch)) {
    const ConvGeneralShape& shape = args.shape;
    rows_ = grid_.rows.RowsOf(shape, task / grid_.panel_parts);
    part_ = task % grid_.panel_parts;
    const ConvDim &height = shape.dims[1], &width = shape.dims[2];
    if (ReadsInPlace(shape, args.in_is_signed)) {
      columns_ = width.in;
      in_ = args.in +
            (rows_.image * height.in + rows_.begin * height.stride) * width.in * shape.in_channels;
    } else {
      columns_ = PaddedExtent(width, width.out);
      auto* const copy = reinterpret_cast<uint8_t*>(scratch + OffsetBytes(shape));
      CopyPaddedRows(args, rows_, copy);
      in_ = copy;
    }
    SetOffsets();
  }

  static size_t OffsetBytes(const ConvGeneralShape& shape) {
    const RunShape runs(shape);
    return RoundUp64(runs.count * runs.quads * sizeof(int32_t));
  }

  void Run() {
    const size_t panels = args_.shape.groups * packed_.panels;
    const size_t begin = panels * part_ / grid_.panel_parts;
    const size_t end = panels * (part_ + 1) / grid_.panel_parts;
    for (size_t panel = begin; panel < end; ++panel) {
      RunPanel(panel / packed_.panels, panel % packed_.panels);
    }
    if (args_.table) LookUp(FirstChannel(begin), FirstChannel(end));
  }

 private:
  size_t FirstChannel(size_t panel) const {
    return panel / packed_.panels * packed_.channels + panel % packed_.panels * kPanel;
  }

  uint8_t* OutputAt(size_t channel) const {
    const ConvGeneralShape& shape = args_.shape;
    const size_t row = rows_.image * shape.dims[1].out + rows_.begin;
    return static_cast<uint8_t*>(args_.out) + row * shape.dims[2].out * shape.out_channels +
           channel;
  }

  // Replaces channels [begin, end) of the rows by what the table has for them.
  void LookUp(size_t begin, size_t end) const {
    const ConvGeneralShape& shape = args_.shape;
    const size_t pixels = (rows_.end - rows_.begin) * shape.dims[2].out;
    uint8_t* const out = OutputAt(begin);
    if (end - begin == shape.out_channels) {
      LookUpInt8(args_.table, out, pixels * shape.out_channels, out);
    } else {
      LookUpInt8Rows(args_.table, out, shape.out_channels, pixels, end - begin, out,
                     shape.out_channels);
    }
  }

  void RunPanel(size_t group, size_t panel) {
    const ConvGeneralShape& shape = args_.shape;
    const size_t first = panel * kPanel, width = packed_.PanelChannels(panel);
    const size_t count = std::min(width, packed_.channels - first);
    const size_t channel = group * packed_.channels + first;
    const auto* sums =
        reinterpret_cast<const int32_t*>(args_.packed_weights + SumsOffset(shape)) + channel;
    alignas(64) int32_t starts[kPanel] = {};
    alignas(64) float scales[kPanel] = {};
    for (size_t i = 0; i < count; ++i) {
      const ByteChannelTerms terms = ChannelTermsOf(args_, channel + i, sums[i]);
      starts[i] = terms.start;
      scales[i] = terms.scale;
    }
    Tile tile = {};
    tile.offsets = offsets_;
    tile.quads = packed_.runs.count * packed_.runs.quads;
    tile.weights = reinterpret_cast<const int8_t*>(args_.packed_weights) +
                   group * packed_.GroupBytes() + panel * packed_.PanelBytes(kPanel);
    tile.starts = starts;
    tile.scales = scales;
    tile.zero_point = args_.epilogue.zero_point;
    tile.is_signed = args_.epilogue.type == Int8Output::kInt8;
    tile.out_stride = shape.out_channels;
    tile.channels = static_cast<uint32_t>((uint64_t{1} << count) - 1);
    tile.has_small_scales =
        std::all_of(scales, scales + count, [](float s) { return std::abs(s) < 1; });
    RunTiles(group, channel, width == kPanel, tile);
  }

  void RunTiles(size_t group, size_t channel, bool is_wide, Tile& tile) {
    const ConvGeneralShape& shape = args_.shape;
    const ConvDim &height = shape.dims[1], &width = shape.dims[2];
    const size_t pixels = (rows_.end - rows_.begin) * width.out;
    const size_t tiles = DivideUp(pixels, kMostPixels);
    uint8_t* const out = OutputAt(channel);
    const size_t row_bytes = columns_ * shape.in_channels * height.stride;
    const size_t step = shape.in_channels * width.stride;
    const uint8_t* row = in_ + group * (shape.in_channels / shape.groups);
    size_t x = 0;
    for (size_t i = 0, done = 0; i < tiles; ++i) {
      const size_t count = DivideUp(pixels - done, tiles - i);
      const uint8_t* windows[kMostPixels];
      for (size_t p = 0; p < count; ++p) {
        windows[p] = row + x * step;
        if (++x == width.out) x = 0, row += row_bytes;
      }
      tile.pixels = windows;
      tile.out = out + done * shape.out_channels;
      (is_wide ? kWideTiles : kNarrowTiles)[count - 1](tile);
      done += count;
    }
  }

  void SetOffsets() {
    const ConvGeneralShape& shape = args_.shape;
    const ConvDim &height = shape.dims[1], &width = shape.dims[2];
    const RunShape& runs = packed_.runs;
    const size_t by_row = runs.count / height.kernel;
    int32_t* offset = offsets_;
    for (size_t run = 0; run < runs.count; ++run) {
      const size_t pixel =
          run / by_row * height.dilation * columns_ + run % by_row * width.dilation;
      const size_t first = pixel * shape.in_channels;
      for (size_t q = 0; q < runs.quads; ++q) *offset++ = static_cast<int32_t>(first + q * 4);
    }
  }

  const Int8ConvArgs& args_;
  const PackedShape packed_;
  const Grid grid_;
  NhwcRows rows_ = {};
  size_t part_ = 0;
  size_t columns_ = 0;  // of the input's rows in memory
  const uint8_t* in_ = nullptr;
  int32_t* const offsets_;
};

// Writes bytes [first, first + count) of a run of a channel, whose first tap is `tap`.
void GatherBytes(const uint8_t* weights, size_t channels, size_t taps, size_t tap, size_t first,
                 size_t count, uint8_t* out) {
  tap += first / channels;
  for (size_t c = first % channels; count > 0; c = 0, ++tap) {
    const size_t some = std::min(count, channels - c);
    const uint8_t* from = weights + c * taps + tap;
    for (size_t i = 0; i < some; ++i) out[i] = from[i * taps];
    out += some;
    count -= some;
  }
}

// A vector of up to kLanes output channels: its part of a panel, and the sums of their weights.
TENON_VNNI void PackLanes(const ConvGeneralShape& shape, const PackedShape& form,
                          const uint8_t* weights, bool is_signed, size_t count, size_t width,
                          int8_t* into, int32_t* sums) {
  constexpr size_t kChunk = 64;
  const RunShape& runs = form.runs;
  const size_t channels = shape.in_channels / shape.groups;
  const size_t taps = shape.dims[1].kernel * shape.dims[2].kernel;
  const __m512i flip = _mm512_set1_epi8(is_signed ? 0 : static_cast<char>(0x80));
  const __m512i ones = _mm512_set1_epi8(1);
  __m512i all = _mm512_setzero_si512();
  for (size_t run = 0; run < runs.count; ++run) {
    for (size_t first = 0; first < runs.bytes; first += kChunk) {
      const size_t present = std::min(kChunk, runs.bytes - first);
      const __mmask64 mask = ~uint64_t{0} >> (kChunk - present);
      __m512i words[kLanes];
      for (size_t j = 0; j < kLanes; ++j) {
        words[j] = _mm512_setzero_si512();
        if (j >= count) continue;
        const uint8_t* bytes = weights + j * channels * taps + first;
        uint8_t gathered[kChunk];
        if (taps > 1) {
          GatherBytes(weights + j * channels * taps, channels, taps, taps / runs.count * run, first,
                      present, gathered);
          bytes = gathered;
        }
        words[j] = _mm512_maskz_mov_epi8(
            mask, _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, bytes), flip));
      }
      TransposeLanes(words);
      int8_t* const quads = into + (run * runs.quads + first / 4) * width * 4;
      for (size_t i = 0; i * 4 < present; ++i) {
        _mm512_storeu_si512(quads + i * width * 4, words[i]);
        all = _mm512_dpbusd_epi32(all, ones, words[i]);
      }
    }
  }
  _mm512_mask_storeu_epi32(sums, static_cast<__mmask16>((1u << count) - 1), all);
}

#undef TENON_VNNI

}  // namespace

bool HasInt8NhwcConv(const ConvGeneralShape& shape) {
  static const bool has_instructions = __builtin_cpu_supports("avx512vnni") &&
                                       __builtin_cpu_supports("avx512bw") &&
                                       __builtin_cpu_supports("avx512vl");
  const ConvDim& depth = shape.dims[0];
  const bool is_flat = depth.kernel == 1 && depth.in == 1 && depth.out == 1;
  return has_instructions && ActiveTarget() == Target::kAvx512 && is_flat;
}

size_t PackedInt8NhwcWeightsSize(const ConvGeneralShape& shape) {
  if (IsNhwcDepthwise(shape)) return PackedDepthwiseNhwcSize(shape);
  return SumsOffset(shape) + RoundUp64(shape.out_channels * sizeof(int32_t));
}

size_t PackInt8NhwcWeightsTaskCount(const ConvGeneralShape& shape) {
  if (IsNhwcDepthwise(shape)) return 1;
  return shape.groups * DivideUp(shape.out_channels / shape.groups, kLanes);
}

void RunPackInt8NhwcWeightsTask(const ConvGeneralShape& shape, const uint8_t* weights,
                                bool is_signed, size_t task, std::byte* packed) {
  if (IsNhwcDepthwise(shape)) return PackDepthwiseNhwc(shape, weights, is_signed, packed);
  const PackedShape form(shape);
  const size_t vectors = DivideUp(form.channels, kLanes);
  const size_t group = task / vectors, vector = task % vectors, panel = vector * kLanes / kPanel;
  const size_t in_group = vector * kLanes, channel = group * form.channels + in_group;
  const size_t channel_size =
      shape.in_channels / shape.groups * shape.dims[1].kernel * shape.dims[2].kernel;
  PackLanes(shape, form, weights + channel * channel_size, is_signed,
            std::min(kLanes, form.channels - in_group), form.PanelChannels(panel),
            reinterpret_cast<int8_t*>(packed) + group * form.GroupBytes() +
                panel * form.PanelBytes(kPanel) + in_group % kPanel * 4,
            reinterpret_cast<int32_t*>(packed + SumsOffset(shape)) + channel);
}

size_t Int8NhwcConvTaskCount(const ConvGeneralShape& shape) {
  return IsNhwcDepthwise(shape) ? DepthwiseNhwcTaskCount(shape) : Grid(shape).tasks(shape);
}

size_t Int8NhwcConvScratchSize(const ConvGeneralShape& shape) {
  if (IsNhwcDepthwise(shape)) return DepthwiseNhwcScratchSize(shape);
  constexpr size_t kSlack = 64;  // that quads may read beyond the last pixel
  const ConvDim &height = shape.dims[1], &width = shape.dims[2];
  return DenseTask::OffsetBytes(shape) +
         RoundUp64(PaddedExtent(height, Grid(shape).rows.rows) * PaddedExtent(width, width.out) *
                       shape.in_channels +
                   kSlack);
}

void RunInt8NhwcConvTask(const Int8ConvArgs& args, size_t task, std::byte* scratch) {
  if (IsNhwcDepthwise(args.shape)) return RunDepthwiseNhwcTask(args, task, scratch);
  DenseTask(args, task, scratch).Run();
}

#else

bool HasInt8NhwcConv(const ConvGeneralShape&) { return false; }
size_t PackedInt8NhwcWeightsSize(const ConvGeneralShape&) { return 0; }
size_t PackInt8NhwcWeightsTaskCount(const ConvGeneralShape&) { return 0; }
void RunPackInt8NhwcWeightsTask(const ConvGeneralShape&, const uint8_t*, bool, size_t, std::byte*) {
}
size_t Int8NhwcConvTaskCount(const ConvGeneralShape&) { return 0; }
size_t Int8NhwcConvScratchSize(const ConvGeneralShape&) { return 0; }
void RunInt8NhwcConvTask(const Int8ConvArgs&, size_t, std::byte*) {}

#endif

}  // namespace tenon::kernels
