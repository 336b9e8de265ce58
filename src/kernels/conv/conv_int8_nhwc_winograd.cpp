// Convolutions of bytes in NHWC with kernels of 3 x 3 and stride 1, by Winograd's filtering
// F(2 x 2, 3 x 3): for each channel 16 products make four outputs, instead of 36. With AVX2, whose
// products of words are exact but do no more at a time than floats.
//
// All of it is in integers, so the results are those of the formula. Inputs are sums of four bytes,
// which fit in words. Weights are taken four times, as their transform has quarters: at most 9 *
// 128. So the sums are four times those of the formula, and are divided in the end. What they are
// made of may wrap around, as long as they themselves fit in 32 bits.
#include "kernels/conv/conv_int8_depthwise.h"
#include "kernels/conv/conv_int8_nhwc_form.h"
#include "kernels/conv/conv_int8_nhwc_rows.h"

#if defined(__x86_64__)

#include <algorithm>
#include <array>
#include <utility>

#include "kernels/conv/round_channels_avx2.h"
#include "kernels/elementwise/int8_table.h"

namespace tenon::kernels {
namespace {

constexpr size_t kLanes = kChannelLanes, kPanel = kChannelPanel;
constexpr size_t kTile = 4;                   // rows and columns of inputs
constexpr size_t kOut = 2;                    // and of outputs
constexpr size_t kPositions = kTile * kTile;  // products of a tile, a panel and a channel
constexpr size_t kWordLanes = 16;
constexpr size_t kTileRows = 6;  // tiles that are multiplied together: 12 vectors of sums

size_t DivideUp(size_t x, size_t y) { return (x + y - 1) / y; }
size_t RoundUp64(size_t x) { return (x + 63) / 64 * 64; }

// Packed weights: [panels][kPositions][pairs of input channels][kPanel][2] words, then the sums of
// each output channel's weights.
struct PackedWinograd {
  size_t pairs, panels;

  explicit PackedWinograd(const ConvGeneralShape& shape)
      : pairs(DivideUp(shape.in_channels, 2)), panels(DivideUp(shape.out_channels, kPanel)) {}
  size_t PositionWords() const { return pairs * kPanel * 2; }
  size_t PanelWords() const { return kPositions * PositionWords(); }
  size_t SumsOffset() const { return panels * PanelWords() * sizeof(int16_t); }
  size_t bytes() const { return SumsOffset() + RoundUp64(panels * kPanel * sizeof(int32_t)); }
};

// --- Weights ---

// One input channel of kPanel output channels: four times the transformed weights,
// G w G^T with the rows (1, 0, 0), (1, 1, 1) / 2, (1, -1, 1) / 2, (0, 0, 1) in G.
void TransformWeights(const int16_t (&w)[3][3][kPanel], int16_t (&out)[kTile][kTile][kPanel]) {
  int16_t rows[kTile][3][kPanel];
  for (size_t x = 0; x < 3; ++x) {
    for (size_t i = 0; i < kPanel; ++i) {
      const int sum = w[0][x][i] + w[2][x][i];
      rows[0][x][i] = static_cast<int16_t>(2 * w[0][x][i]);
      rows[1][x][i] = static_cast<int16_t>(sum + w[1][x][i]);
      rows[2][x][i] = static_cast<int16_t>(sum - w[1][x][i]);
      rows[3][x][i] = static_cast<int16_t>(2 * w[2][x][i]);
    }
  }
  for (size_t y = 0; y < kTile; ++y) {
    for (size_t i = 0; i < kPanel; ++i) {
      const int sum = rows[y][0][i] + rows[y][2][i];
      out[y][0][i] = static_cast<int16_t>(2 * rows[y][0][i]);
      out[y][1][i] = static_cast<int16_t>(sum + rows[y][1][i]);
      out[y][2][i] = static_cast<int16_t>(sum - rows[y][1][i]);
      out[y][3][i] = static_cast<int16_t>(2 * rows[y][2][i]);
    }
  }
}

// --- Tiles ---

// Transforms a tile's inputs, B^T x B with the rows (1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0),
// (0, 1, 0, -1) in B^T: position p goes to out[p * position_stride], whole vectors of channels.
TENON_AVX2 void TransformInputs(const uint8_t* pixels, size_t row_bytes, size_t channels,
                                int16_t* out, size_t position_stride) {
  const auto difference = [](__m256i a, __m256i b) TENON_AVX2 { return _mm256_sub_epi16(a, b); };
  for (size_t c = 0; c < channels; c += kWordLanes) {
    __m256i rows[kTile][kTile];
#pragma GCC unroll 4
    for (size_t y = 0; y < kTile; ++y) {
      __m256i x[kTile];
#pragma GCC unroll 4
      for (size_t i = 0; i < kTile; ++i) {
        const uint8_t* const at = pixels + y * row_bytes + i * channels + c;
        x[i] = _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
      }
      rows[y][0] = difference(x[0], x[2]);
      rows[y][1] = _mm256_add_epi16(x[1], x[2]);
      rows[y][2] = difference(x[2], x[1]);
      rows[y][3] = difference(x[1], x[3]);
    }
#pragma GCC unroll 4
    for (size_t i = 0; i < kTile; ++i) {
      const __m256i columns[kTile] = {
          difference(rows[0][i], rows[2][i]), _mm256_add_epi16(rows[1][i], rows[2][i]),
          difference(rows[2][i], rows[1][i]), difference(rows[1][i], rows[3][i])};
#pragma GCC unroll 4
      for (size_t y = 0; y < kTile; ++y) {
        int16_t* const to = out + (y * kTile + i) * position_stride + c;
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), columns[y]);
      }
    }
  }
}

// sums[r] = the products of a tile's inputs at one position with the weights there.
template <size_t kRows>
TENON_AVX2 void Multiply(const int16_t* tiles, size_t stride, const int16_t* weights, size_t pairs,
                         int32_t* sums) {
  __m256i acc[kRows][2];
#pragma GCC unroll 6
  for (size_t r = 0; r < kRows; ++r) acc[r][0] = acc[r][1] = _mm256_setzero_si256();
  for (size_t p = 0; p < pairs; ++p, weights += 2 * kPanel) {
    const __m256i low = LoadVector(weights), high = LoadVector(weights + kPanel);
#pragma GCC unroll 6
    for (size_t r = 0; r < kRows; ++r) {
      const __m256i pair = BroadcastQuad(tiles + r * stride + 2 * p);  // of bytes
      acc[r][0] = _mm256_add_epi32(acc[r][0], _mm256_madd_epi16(pair, low));
      acc[r][1] = _mm256_add_epi32(acc[r][1], _mm256_madd_epi16(pair, high));
    }
  }
#pragma GCC unroll 6
  for (size_t r = 0; r < kRows; ++r) {
    auto* const into = reinterpret_cast<__m256i*>(sums + r * kPanel);
    _mm256_storeu_si256(into, acc[r][0]);
    _mm256_storeu_si256(into + 1, acc[r][1]);
  }
}

template <size_t... kRows>
void MultiplyRows(std::index_sequence<kRows...>, size_t rows, const int16_t* tiles, size_t stride,
                  const int16_t* weights, size_t pairs, int32_t* sums) {
  static constexpr std::array kFunctions = {&Multiply<kRows + 1>...};
  kFunctions[rows - 1](tiles, stride, weights, pairs, sums);
}

struct Outputs {
  __m256i at[kOut][kOut];  // of 8 channels
};

// A^T sums A / 4 + start with the rows (1, 1, 1, 0), (0, 1, -1, -1) in A^T.
TENON_AVX2 Outputs TransformSums(const int32_t* sums, size_t position_stride, __m256i start) {
  __m256i rows[kTile][kOut];
#pragma GCC unroll 4
  for (size_t y = 0; y < kTile; ++y) {
    const int32_t* const at = sums + y * kTile * position_stride;
    const __m256i x1 = LoadInts(at + position_stride), x2 = LoadInts(at + 2 * position_stride);
    rows[y][0] = _mm256_add_epi32(LoadInts(at), _mm256_add_epi32(x1, x2));
    rows[y][1] = _mm256_sub_epi32(_mm256_sub_epi32(x1, x2), LoadInts(at + 3 * position_stride));
  }
  Outputs outputs;
#pragma GCC unroll 2
  for (size_t x = 0; x < kOut; ++x) {
    const __m256i sum = _mm256_add_epi32(rows[1][x], rows[2][x]);
    const __m256i difference = _mm256_sub_epi32(rows[1][x], rows[2][x]);
    const __m256i y0 = _mm256_add_epi32(rows[0][x], sum);
    const __m256i y1 = _mm256_sub_epi32(difference, rows[3][x]);
    outputs.at[0][x] = _mm256_add_epi32(_mm256_srai_epi32(y0, 2), start);
    outputs.at[1][x] = _mm256_add_epi32(_mm256_srai_epi32(y1, 2), start);
  }
  return outputs;
}

// The outputs of a tile that are inside the image.
struct TileOutputs {
  uint8_t* out;
  size_t row_bytes, pixel_bytes;
  size_t rows, columns;
  size_t channels;  // of the panel
};

TENON_AVX2 void StoreOutputs(const int32_t* sums, size_t position_stride, const int32_t* starts,
                             const Rounding& rounding, const TileOutputs& to) {
  const Outputs low = TransformSums(sums, position_stride, LoadInts(starts));
  const Outputs high = TransformSums(sums + kLanes, position_stride, LoadInts(starts + kLanes));
  for (size_t y = 0; y < to.rows; ++y) {
    const __m256i bytes =
        BytesOfRows(RoundRow<true>(low.at[y][0], high.at[y][0], rounding),
                    RoundRow<true>(low.at[y][1], high.at[y][1], rounding), rounding.is_signed);
    uint8_t* const out = to.out + y * to.row_bytes;
    StoreChannels(_mm256_castsi256_si128(bytes), out, to.channels);
    if (to.columns == kOut) {
      StoreChannels(_mm256_extracti128_si256(bytes, 1), out + to.pixel_bytes, to.channels);
    }
  }
}

// --- Tasks ---

// Chunks of rows of tiles.
struct Grid {
  size_t tile_rows, tile_columns;
  size_t chunks;  // of an image

  explicit Grid(const ConvGeneralShape& shape)
      : tile_rows(DivideUp(shape.dims[1].out, kOut)),
        tile_columns(DivideUp(shape.dims[2].out, kOut)) {
    // All weights are read for each chunk, so it has some tiles.
    constexpr double kTaskCost = 3e6;  // multiply-adds
    constexpr size_t kLeastTiles = 4 * kTileRows;
    const double row_cost = static_cast<double>(tile_columns * kPositions) *
                            static_cast<double>(shape.in_channels * shape.out_channels);
    const size_t rows = std::max(static_cast<size_t>(kTaskCost / row_cost) + 1,
                                 DivideUp(kLeastTiles, tile_columns));
    chunks = DivideUp(tile_rows, rows);
    // Two threads have the same work, and the same half of the image in each layer.
    if (chunks > 1) chunks = std::min(tile_rows, DivideUp(chunks, 2) * 2);
  }
  size_t MostRows() const { return DivideUp(tile_rows, chunks); }
};

// Tiles that are transformed together, so that they stay in the L2 cache.
size_t BlockTiles(size_t channels) {
  constexpr size_t kBytes = 160 * 1024;
  const size_t tiles = kBytes / (kPositions * channels * sizeof(int16_t));
  return std::clamp<size_t>(tiles / kTileRows * kTileRows, 2 * kTileRows, 8 * kTileRows);
}

class WinogradTask {
 public:
  WinogradTask(const Int8ConvArgs& args, size_t task, std::byte* scratch)
      : args_(args), packed_(args.shape), memory_(args.shape, scratch) {
    const Grid grid(args.shape);
    const size_t chunk = task % grid.chunks;
    image_ = task / grid.chunks;
    first_row_ = grid.tile_rows * chunk / grid.chunks;
    tile_columns_ = grid.tile_columns;
    tiles_ = (grid.tile_rows * (chunk + 1) / grid.chunks - first_row_) * tile_columns_;
    CopyRows();
    SetTerms();
  }

  static size_t ScratchBytes(const ConvGeneralShape& shape) { return Memory(shape, nullptr).bytes; }

  void Run() {
    for (size_t begin = 0; begin < tiles_; begin += memory_.block_tiles) {
      RunBlock(begin, std::min(memory_.block_tiles, tiles_ - begin));
    }
    if (args_.table == nullptr) return;
    const ConvGeneralShape& shape = args_.shape;
    const size_t rows = tiles_ / tile_columns_ * kOut, first = first_row_ * kOut;
    const size_t count = std::min(rows, shape.dims[1].out - first) * shape.dims[2].out;
    uint8_t* const out = OutputAt(first, 0);
    LookUpInt8(args_.table, out, count * shape.out_channels, out);
  }

 private:
  // Of a task.
  struct Memory {
    size_t channels;  // of inputs, in whole vectors
    size_t block_tiles;
    size_t row_bytes;  // of the copy of the rows, with pads
    uint8_t* rows;
    int16_t* inputs;  // [kPositions][block_tiles][channels]
    int32_t* sums;    // [kPositions][block_tiles][kPanel]
    int32_t* starts;  // of the sums, in whole panels
    float* scales;
    size_t bytes;

    Memory(const ConvGeneralShape& shape, std::byte* scratch)
        : channels(DivideUp(shape.in_channels, kWordLanes) * kWordLanes),
          block_tiles(BlockTiles(channels)) {
      const Grid grid(shape);
      row_bytes = (grid.tile_columns * kOut + kTile - kOut) * shape.in_channels;
      const size_t terms = DivideUp(shape.out_channels, kPanel) * kPanel;
      bytes = 0;
      const auto take = [&](size_t count) {
        std::byte* const at = scratch ? scratch + bytes : nullptr;
        bytes += RoundUp64(count);
        return at;
      };
      // A vector may reach beyond the last pixel.
      rows = reinterpret_cast<uint8_t*>(
          take((grid.MostRows() * kOut + kTile - kOut) * row_bytes + kWordLanes));
      inputs =
          reinterpret_cast<int16_t*>(take(kPositions * block_tiles * channels * sizeof(int16_t)));
      sums = reinterpret_cast<int32_t*>(take(kPositions * block_tiles * kPanel * sizeof(int32_t)));
      starts = reinterpret_cast<int32_t*>(take(terms * sizeof(int32_t)));
      scales = reinterpret_cast<float*>(take(terms * sizeof(float)));
    }
  };

  void CopyRows() {
    Int8ConvArgs whole_tiles = args_;
    whole_tiles.shape.dims[2].out = tile_columns_ * kOut;
    const size_t rows = tiles_ / tile_columns_;
    CopyPaddedRows(whole_tiles, {image_, first_row_ * kOut, (first_row_ + rows) * kOut},
                   memory_.rows);
    const size_t bytes = (rows * kOut + kTile - kOut) * memory_.row_bytes;
    std::memset(memory_.rows + bytes, 0, kWordLanes);
  }

  void SetTerms() {
    const auto* sums =
        reinterpret_cast<const int32_t*>(args_.packed_weights + packed_.SumsOffset());
    for (size_t c = 0; c < packed_.panels * kPanel; ++c) {
      const bool is_there = c < args_.shape.out_channels;
      const ByteChannelTerms terms =
          is_there ? ChannelTermsOf(args_, c, sums[c]) : ByteChannelTerms{};
      memory_.starts[c] = terms.start;
      memory_.scales[c] = terms.scale;
    }
  }

  uint8_t* OutputAt(size_t y, size_t x) const {
    const ConvGeneralShape& shape = args_.shape;
    const size_t row = image_ * shape.dims[1].out + y;
    return static_cast<uint8_t*>(args_.out) + (row * shape.dims[2].out + x) * shape.out_channels;
  }

  // Tiles [begin, begin + count) of the task.
  void RunBlock(size_t begin, size_t count) {
    const size_t position_inputs = memory_.block_tiles * memory_.channels;
    for (size_t i = 0; i < count; ++i) {
      const size_t y = (begin + i) / tile_columns_, x = (begin + i) % tile_columns_;
      const uint8_t* const pixels =
          memory_.rows + y * kOut * memory_.row_bytes + x * kOut * args_.shape.in_channels;
      TransformInputs(pixels, memory_.row_bytes, args_.shape.in_channels,
                      memory_.inputs + i * memory_.channels, position_inputs);
    }
    for (size_t panel = 0; panel < packed_.panels; ++panel) {
      MultiplyPanel(panel, count);
      StorePanel(panel, begin, count);
    }
  }

  void MultiplyPanel(size_t panel, size_t count) {
    const auto* weights =
        reinterpret_cast<const int16_t*>(args_.packed_weights) + panel * packed_.PanelWords();
    for (size_t p = 0; p < kPositions; ++p, weights += packed_.PositionWords()) {
      const int16_t* tile = memory_.inputs + p * memory_.block_tiles * memory_.channels;
      int32_t* sums = memory_.sums + p * memory_.block_tiles * kPanel;
      for (size_t left = count, groups = DivideUp(count, kTileRows); groups > 0; --groups) {
        const size_t rows = DivideUp(left, groups);
        MultiplyRows(std::make_index_sequence<kTileRows>(), rows, tile, memory_.channels, weights,
                     packed_.pairs, sums);
        tile += rows * memory_.channels;
        sums += rows * kPanel;
        left -= rows;
      }
    }
  }

  void StorePanel(size_t panel, size_t begin, size_t count) {
    const ConvGeneralShape& shape = args_.shape;
    const size_t channel = panel * kPanel;
    const Rounding rounding = MakeRounding(memory_.scales + channel, args_.epilogue.zero_point,
                                           args_.epilogue.type == Int8Output::kInt8);
    TileOutputs to = {};
    to.row_bytes = shape.dims[2].out * shape.out_channels;
    to.pixel_bytes = shape.out_channels;
    to.channels = std::min(kPanel, shape.out_channels - channel);
    for (size_t i = 0; i < count; ++i) {
      const size_t y = (first_row_ + (begin + i) / tile_columns_) * kOut;
      const size_t x = (begin + i) % tile_columns_ * kOut;
      to.out = OutputAt(y, x) + channel;
      to.rows = std::min(kOut, shape.dims[1].out - y);
      to.columns = std::min(kOut, shape.dims[2].out - x);
      StoreOutputs(memory_.sums + i * kPanel, memory_.block_tiles * kPanel,
                   memory_.starts + channel, rounding, to);
    }
  }

  const Int8ConvArgs& args_;
  const PackedWinograd packed_;
  const Memory memory_;
  size_t image_ = 0, first_row_ = 0;  // of tiles
  size_t tile_columns_ = 0, tiles_ = 0;
};

}  // namespace

bool IsNhwcWinograd(const ConvGeneralShape& shape) {
  // Below, transforming takes longer than it saves; above, weights of 32 bytes each come from
  // memory, or sums may not fit in 32 bits.
  constexpr size_t kLeastChannels = 16, kMostChannels = 1024, kMostWeights = 256 * 256;
  const auto is_three = [](const ConvDim& dim) {
    return dim.kernel == 3 && dim.stride == 1 && dim.dilation == 1;
  };
  return shape.groups == 1 && is_three(shape.dims[1]) && is_three(shape.dims[2]) &&
         shape.in_channels >= kLeastChannels && shape.in_channels <= kMostChannels &&
         shape.out_channels >= kLeastChannels &&
         shape.in_channels * shape.out_channels <= kMostWeights &&
         ActiveNhwcForm() == Avx2NhwcForm();
}

size_t PackedWinogradNhwcSize(const ConvGeneralShape& shape) {
  return PackedWinograd(shape).bytes();
}

size_t PackWinogradNhwcTaskCount(const ConvGeneralShape& shape) {
  return PackedWinograd(shape).panels;
}

void RunPackWinogradNhwcTask(const ConvGeneralShape& shape, const uint8_t* weights, bool is_signed,
                             size_t task, std::byte* packed) {
  constexpr size_t kTaps = 9;
  const PackedWinograd form(shape);
  const size_t first = task * kPanel, count = std::min(kPanel, shape.out_channels - first);
  const uint8_t flip = is_signed ? 0 : 0x80;
  auto* const words = reinterpret_cast<int16_t*>(packed) + task * form.PanelWords();
  int32_t sums[kPanel] = {};
  for (size_t c = 0; c < 2 * form.pairs; ++c) {
    int16_t taps[3][3][kPanel] = {};
    for (size_t i = 0; i < count && c < shape.in_channels; ++i) {
      const uint8_t* const from = weights + ((first + i) * shape.in_channels + c) * kTaps;
      for (size_t t = 0; t < kTaps; ++t) {
        const auto weight = static_cast<int8_t>(from[t] ^ flip);
        taps[t / 3][t % 3][i] = weight;
        sums[i] += weight;
      }
    }
    int16_t transformed[kTile][kTile][kPanel];
    TransformWeights(taps, transformed);
    for (size_t p = 0; p < kPositions; ++p) {
      int16_t* const to = words + p * form.PositionWords() + c / 2 * kPanel * 2 + c % 2;
      for (size_t i = 0; i < kPanel; ++i) to[2 * i] = transformed[p / kTile][p % kTile][i];
    }
  }
  std::memcpy(packed + form.SumsOffset() + first * sizeof(int32_t), sums, sizeof(sums));
}

size_t WinogradNhwcTaskCount(const ConvGeneralShape& shape) {
  return shape.batch * Grid(shape).chunks;
}

size_t WinogradNhwcScratchSize(const ConvGeneralShape& shape) {
  return WinogradTask::ScratchBytes(shape);
}

void RunWinogradNhwcTask(const Int8ConvArgs& args, size_t task, std::byte* scratch) {
  WinogradTask(args, task, scratch).Run();
}

}  // namespace tenon::kernels

#endif
