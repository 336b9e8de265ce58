#include "kernels/conv/conv_int8.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>

#include "kernels/conv/conv_dims.h"
#include "kernels/conv/conv_int8_depthwise.h"
#include "kernels/dispatch.h"
#include "kernels/gemm/gemm_int8_tile.h"

namespace tenon::kernels {
namespace {

size_t DivideUp(size_t x, size_t y) { return (x + y - 1) / y; }
size_t RoundUp64(size_t x) { return (x + 63) / 64 * 64; }

size_t Depth(const ConvGeneralShape& shape) {
  return shape.in_channels / shape.groups * KernelTaps(shape);
}

// The weights of a group: packed rows, then their sums.
size_t GroupRowsBytes(const ConvGeneralShape& shape, const Int8TileShape& tile) {
  return RoundUp64(shape.out_channels / shape.groups * tile.RowBytes(Depth(shape)));
}
size_t GroupStride(const ConvGeneralShape& shape, const Int8TileShape& tile) {
  return GroupRowsBytes(shape, tile) +
         RoundUp64(shape.out_channels / shape.groups * sizeof(int32_t));
}

// The panels of pixels of one task.
size_t TaskPanels(const ConvGeneralShape& shape, const Int8TileShape& tile) {
  constexpr size_t kTaskCost = 1'000'000;  // multiply-adds
  const size_t panel_cost =
      (shape.out_channels / shape.groups + 8) * std::max<size_t>(1, Depth(shape)) * tile.nr;
  return std::max<size_t>(1, kTaskCost / panel_cost);
}

size_t PixelTasks(const ConvGeneralShape& shape, const Int8TileShape& tile) {
  return DivideUp(DivideUp(OutPixels(shape), tile.nr), TaskPanels(shape, tile));
}

// Output pixels next to each other in one row.
struct Run {
  size_t z, y, x, count;
  size_t position;  // in the panel
};

// Gathers the input bytes for one tap along a run of pixels.
void GatherRun(const ConvGeneralShape& shape, const uint8_t* channel, const size_t (&tap)[3],
               const Run& run, uint8_t zero, uint8_t* into) {
  const ConvDim& depth = shape.dims[0];
  const ConvDim& height = shape.dims[1];
  const ConvDim& width = shape.dims[2];
  const ptrdiff_t z = static_cast<ptrdiff_t>(run.z * depth.stride) + TapShift(depth, tap[0]);
  const ptrdiff_t y = static_cast<ptrdiff_t>(run.y * height.stride) + TapShift(height, tap[1]);
  if (z < 0 || z >= static_cast<ptrdiff_t>(depth.in) || y < 0 ||
      y >= static_cast<ptrdiff_t>(height.in)) {
    std::fill_n(into, run.count, zero);
    return;
  }
  const uint8_t* row =
      channel + (static_cast<size_t>(z) * height.in + static_cast<size_t>(y)) * width.in;
  const ptrdiff_t shift = TapShift(width, tap[2]) + static_cast<ptrdiff_t>(run.x * width.stride);
  const Range inside = StridedInside(run.count, width.stride, shift, width.in);
  std::fill_n(into, inside.first, zero);
  if (inside.first < inside.last) {
    const uint8_t* from = row + (static_cast<ptrdiff_t>(inside.first * width.stride) + shift);
    if (width.stride == 1) {
      std::memcpy(into + inside.first, from, inside.last - inside.first);
    } else {
      for (size_t i = inside.first; i < inside.last; ++i, from += width.stride) into[i] = *from;
    }
  }
  std::fill(into + inside.last, into + run.count, zero);
}

// Rows of `nr` bytes, one for each channel and tap: the inputs for the pixels from `first` on.
void GatherPixels(const ConvGeneralShape& shape, const uint8_t* in, size_t first, size_t count,
                  uint8_t zero, size_t nr, uint8_t* rows) {
  const size_t width = shape.dims[2].out, height = shape.dims[1].out;
  const size_t channels = shape.in_channels / shape.groups;
  for (size_t done = 0; done < count;) {
    const size_t pixel = first + done;
    Run run = {pixel / width / height, pixel / width % height, pixel % width, 0, done};
    run.count = std::min(width - run.x, count - done);
    uint8_t* into = rows + done;
    for (size_t c = 0; c < channels; ++c) {
      const uint8_t* channel = in + c * InPixels(shape);
      ForEachTap(shape, [&](size_t tap_z, size_t tap_y, size_t tap_x) {
        GatherRun(shape, channel, {tap_z, tap_y, tap_x}, run, zero, into);
        into += nr;
      });
    }
    done += run.count;
  }
}

// Gathers the input bytes for a panel's pixels, for small kernels: the runs of each tap are found
// once for all channels.
class PanelGather {
 public:
  // Bytes that Run may write, and read, after the last row and run.
  static constexpr size_t kSlack = 32;

  // Whether the table of runs has room for these pixels.
  bool Prepare(const ConvGeneralShape& shape, size_t first, size_t count) {
    const size_t width = shape.dims[2].out, height = shape.dims[1].out;
    const size_t runs = (first + count - 1) / width - first / width + 1;
    stride_ = shape.dims[2].stride;
    if (runs * KernelTaps(shape) > kMostPieces || stride_ > 2) return false;
    ForEachTap(shape, [&](size_t tap_z, size_t tap_y, size_t tap_x) {
      for (size_t done = 0; done < count;) {
        const size_t pixel = first + done;
        Run run = {pixel / width / height, pixel / width % height, pixel % width, 0, done};
        run.count = std::min(width - run.x, count - done);
        const Piece piece = PieceOf(shape, {tap_z, tap_y, tap_x}, run);
        reach_ = std::max(reach_, piece.from + static_cast<ptrdiff_t>(kSlack * stride_));
        pieces_[piece_count_++] = piece;
        done += run.count;
      }
    });
    runs_ = runs;
    return true;
  }

  // Writes rows of `nr` bytes, and up to kSlack bytes after them, for all taps of the plane
  // `channel`; memory from `end` on is not read.
  uint8_t* GatherChannel(const uint8_t* channel, const uint8_t* end, uint8_t zero, size_t nr,
                         uint8_t* into) const {
    if (end - channel >= reach_) {
      return stride_ == 1 ? GatherWhole<1>(channel, zero, nr, into)
                          : GatherWhole<2>(channel, zero, nr, into);
    }
    const Piece* piece = pieces_.data();
    for (const Piece* last = piece + piece_count_; piece < last; into += nr) {
      for (size_t i = 0; i < runs_; ++i, ++piece) {
        Copy(*piece, zero, into, [&](uint8_t* to) {
          const uint8_t* from = channel + piece->from;
          for (size_t k = 0; k < piece->copied; ++k) to[k] = from[k * stride_];
        });
      }
    }
    return into;
  }

 private:
  static constexpr size_t kMostPieces = 512;

  // A piece of a row: `zeros` zeros, `copied` bytes from offset `from`, and zeros up to `count`.
  struct Piece {
    uint8_t position, zeros, copied, count;
    ptrdiff_t from;
  };

  static Piece PieceOf(const ConvGeneralShape& shape, const size_t (&tap)[3], const Run& run) {
    const auto position = static_cast<uint8_t>(run.position);
    const auto count = static_cast<uint8_t>(run.count);
    const ConvDim &depth = shape.dims[0], &height = shape.dims[1], &width = shape.dims[2];
    const ptrdiff_t z = static_cast<ptrdiff_t>(run.z * depth.stride) + TapShift(depth, tap[0]);
    const ptrdiff_t y = static_cast<ptrdiff_t>(run.y * height.stride) + TapShift(height, tap[1]);
    if (z < 0 || z >= static_cast<ptrdiff_t>(depth.in) || y < 0 ||
        y >= static_cast<ptrdiff_t>(height.in)) {
      return {position, count, 0, count, 0};
    }
    const ptrdiff_t shift = TapShift(width, tap[2]) + static_cast<ptrdiff_t>(run.x * width.stride);
    const Range inside = StridedInside(run.count, width.stride, shift, width.in);
    const auto row = static_cast<ptrdiff_t>(
        (static_cast<size_t>(z) * height.in + static_cast<size_t>(y)) * width.in);
    return {position, static_cast<uint8_t>(inside.first),
            static_cast<uint8_t>(inside.last - inside.first), count,
            row + static_cast<ptrdiff_t>(inside.first * width.stride) + shift};
  }

  // Copies whole vectors; bytes written beyond the end are overwritten later.
  template <size_t kStride>
  uint8_t* GatherWhole(const uint8_t* channel, uint8_t zero, size_t nr, uint8_t* into) const {
    const Piece* piece = pieces_.data();
    for (const Piece* last = piece + piece_count_; piece < last; into += nr) {
      for (size_t i = 0; i < runs_; ++i, ++piece) {
        const uint8_t* from = channel + piece->from;
        Copy(*piece, zero, into, [from](uint8_t* to) {
          if constexpr (kStride == 1) {
            std::memcpy(to, from, kSlack);
          } else {
            uint8_t even[kSlack];
            for (size_t k = 0; k < kSlack; ++k) even[k] = from[kStride * k];
            std::memcpy(to, even, kSlack);
          }
        });
      }
    }
    return into;
  }

  // Writes zeros, the bytes that `copy` copies, and zeros.
  template <class CopyInside>
  static void Copy(const Piece& piece, uint8_t zero, uint8_t* row, CopyInside&& copy) {
    uint8_t* into = row + piece.position;
    for (size_t i = 0; i < piece.zeros; ++i) into[i] = zero;
    if (piece.copied > 0) copy(into + piece.zeros);
    for (size_t i = piece.zeros + piece.copied; i < piece.count; ++i) into[i] = zero;
  }

  size_t stride_ = 1, runs_ = 0, piece_count_ = 0;
  ptrdiff_t reach_ = 0;  // end of the bytes that whole vectors read, from the plane's first
  std::array<Piece, kMostPieces> pieces_;
};

// Describes the input bytes for a panel's pixels as pieces that fit in vectors.
class PanelPieces {
 public:
  // Whether there is a function for such pieces, and the table has room for these pixels.
  bool Prepare(const Int8GemmTable& table, const ConvGeneralShape& shape, size_t first,
               size_t count) {
    if (table.pack_pixels == nullptr) return false;
    if (IsPointwise(shape)) {
      pieces_[0] = PieceAt(0, count, static_cast<ptrdiff_t>(first), 1);
      pixels_.taps = pixels_.pieces_per_tap = pixels_.stride = 1;
      return true;
    }
    const size_t width = shape.dims[2].out, height = shape.dims[1].out;
    const size_t runs = (first + count - 1) / width - first / width + 1;
    pixels_.taps = KernelTaps(shape);
    pixels_.pieces_per_tap = runs;
    pixels_.stride = shape.dims[2].stride;
    if (pixels_.stride > 2 || runs * pixels_.taps > kMostPieces) return false;
    size_t piece = 0;
    ForEachTap(shape, [&](size_t tap_z, size_t tap_y, size_t tap_x) {
      for (size_t done = 0; done < count; ++piece) {
        const size_t pixel = first + done;
        Run run = {pixel / width / height, pixel / width % height, pixel % width, 0, done};
        run.count = std::min(width - run.x, count - done);
        pieces_[piece] = PieceOf(shape, {tap_z, tap_y, tap_x}, run);
        done += run.count;
      }
    });
    return true;
  }

  // The pixels of the planes of a group, which begin at `planes`.
  const Int8Pixels& Of(const uint8_t* planes, const Int8ConvArgs& args) {
    pixels_.planes = planes;
    pixels_.plane_size = InPixels(args.shape);
    pixels_.channels = args.shape.in_channels / args.shape.groups;
    pixels_.pieces = pieces_.data();
    pixels_.zero = static_cast<uint8_t>(args.in_zero);
    pixels_.is_signed = args.in_is_signed;
    return pixels_;
  }

 private:
  static constexpr size_t kMostPieces = 512;

  // `count` columns of the panel from `position` on, which begin at offset `from` of the plane.
  static BytePiece PieceAt(size_t position, size_t count, ptrdiff_t from, size_t stride) {
    if (count == 0) return {0, 0};
    const uint32_t ones = count >= 32 ? ~uint32_t{0} : (uint32_t{1} << count) - 1;
    return {ones << position, from - static_cast<ptrdiff_t>(position * stride)};
  }

  static BytePiece PieceOf(const ConvGeneralShape& shape, const size_t (&tap)[3], const Run& run) {
    const ConvDim &depth = shape.dims[0], &height = shape.dims[1], &width = shape.dims[2];
    const ptrdiff_t z = static_cast<ptrdiff_t>(run.z * depth.stride) + TapShift(depth, tap[0]);
    const ptrdiff_t y = static_cast<ptrdiff_t>(run.y * height.stride) + TapShift(height, tap[1]);
    if (z < 0 || z >= static_cast<ptrdiff_t>(depth.in) || y < 0 ||
        y >= static_cast<ptrdiff_t>(height.in)) {
      return {0, 0};
    }
    const ptrdiff_t shift = TapShift(width, tap[2]) + static_cast<ptrdiff_t>(run.x * width.stride);
    const Range inside = StridedInside(run.count, width.stride, shift, width.in);
    const auto row = static_cast<ptrdiff_t>(
        (static_cast<size_t>(z) * height.in + static_cast<size_t>(y)) * width.in);
    return PieceAt(run.position + inside.first, inside.last - inside.first,
                   row + static_cast<ptrdiff_t>(inside.first * width.stride) + shift, width.stride);
  }

  Int8Pixels pixels_ = {};
  std::array<BytePiece, kMostPieces> pieces_;
};

size_t ElementBytes(Int8Output type) {
  return type == Int8Output::kInt32 || type == Int8Output::kFloat ? 4 : 1;
}

// One group of one image.
class GroupConv {
 public:
  GroupConv(const Int8ConvArgs& args, size_t picture, size_t group, std::byte* scratch)
      : args_(args),
        table_(ActiveInt8Conv()),
        tile_(table_.shape),
        depth_(Depth(args.shape)),
        channels_(args.shape.out_channels / args.shape.groups),
        first_channel_(group * channels_),
        picture_(picture),
        in_(args.in + (picture * args.shape.in_channels +
                       group * (args.shape.in_channels / args.shape.groups)) *
                          InPixels(args.shape)),
        weights_(args.packed_weights + group * GroupStride(args.shape, tile_)),
        panel_(reinterpret_cast<uint8_t*>(scratch)),
        rows_(panel_ + tile_.PanelBytes(depth_)) {
    row_sums_ = reinterpret_cast<const int32_t*>(weights_ + GroupRowsBytes(args.shape, tile_));
    std::fill_n(b_zero_, tile_.nr, PackedZeroOfB(args.in_is_signed, args.in_zero));
  }

  void RunPanel(size_t panel) {
    const size_t pixels = OutPixels(args_.shape);
    const size_t first = panel * tile_.nr, count = std::min(tile_.nr, pixels - first);
    PackPanel(first, count);
    for (size_t c = 0; c < channels_; c += tile_.mr) {
      RunTile(c, std::min(tile_.mr, channels_ - c), first, count);
    }
  }

 private:
  void PackPanel(size_t first, size_t count) {
    PanelPieces pieces;
    if (pieces.Prepare(table_, args_.shape, first, count)) {
      table_.pack_pixels(pieces.Of(in_, args_), panel_, column_sums_);
      return;
    }
    Int8Matrix b = {in_ + first, args_.in_is_signed, InPixels(args_.shape), 1};
    if (!IsPointwise(args_.shape)) {
      Gather(first, count);
      b.data = rows_;
      b.row_stride = tile_.nr;
    }
    table_.PackPanel(b, count, depth_, false, panel_, column_sums_);
  }

  void Gather(size_t first, size_t count) {
    const auto zero = static_cast<uint8_t>(args_.in_zero);
    PanelGather gather;
    if (!gather.Prepare(args_.shape, first, count)) {
      GatherPixels(args_.shape, in_, first, count, zero, tile_.nr, rows_);
      return;
    }
    const size_t pixels = InPixels(args_.shape);
    const uint8_t* end = args_.in + args_.shape.batch * args_.shape.in_channels * pixels;
    uint8_t* into = rows_;
    for (size_t c = 0; c < args_.shape.in_channels / args_.shape.groups; ++c) {
      into = gather.GatherChannel(in_ + c * pixels, end, zero, tile_.nr, into);
    }
  }

  void RunTile(size_t first_row, size_t rows, size_t pixel, size_t count) {
    alignas(64) int32_t sums[kMaxInt8TileRows * kMaxInt8TileColumns];
    table_.run_tile(weights_ + first_row * tile_.RowBytes(depth_), panel_, tile_.Depth(depth_),
                    rows, sums);
    if (StoreTile(sums, first_row, rows, pixel, count)) return;
    const size_t pixels = OutPixels(args_.shape);
    const size_t element = ElementBytes(args_.epilogue.type);
    for (size_t i = 0; i < rows; ++i) {
      const size_t channel = first_channel_ + first_row + i;
      const int32_t zero = PackedZeroOfA(args_.weights_are_signed, WeightZero(channel));
      const size_t at = (picture_ * args_.shape.out_channels + channel) * pixels + pixel;
      table_.store_row({.count = count,
                        .sums = sums + i * tile_.nr,
                        .column_sums = column_sums_,
                        .b_zero = b_zero_,
                        .a_zero = zero,
                        .row_term = static_cast<int32_t>(RowTerm(first_row + i, zero)),
                        .row = channel,
                        .column = 0,
                        .c = static_cast<std::byte*>(args_.out) + at * element},
                       args_.epilogue);
    }
  }

  // False if the tile is to be stored row by row.
  bool StoreTile(const int32_t* sums, size_t first_row, size_t rows, size_t pixel, size_t count) {
    const Int8Epilogue& epilogue = args_.epilogue;
    const bool is_signed = epilogue.type == Int8Output::kInt8;
    if (table_.store_tile == nullptr || !(is_signed || epilogue.type == Int8Output::kUint8)) {
      return false;
    }
    static constexpr int32_t kNoTerms[kMaxInt8TileColumns] = {};
    const size_t first_channel = first_channel_ + first_row;
    int32_t terms[kMaxInt8TileRows], factors[kMaxInt8TileRows];
    float scales[kMaxInt8TileRows];
    bool has_factors = false;
    for (size_t i = 0; i < rows; ++i) {
      const size_t channel = first_channel + i;
      const int32_t zero = PackedZeroOfA(args_.weights_are_signed, WeightZero(channel));
      factors[i] = -zero;
      has_factors |= zero != 0;
      uint32_t term = RowTerm(first_row + i, zero) * static_cast<uint32_t>(b_zero_[0]);
      if (epilogue.bias_rows) term += static_cast<uint32_t>(epilogue.bias_rows[channel]);
      terms[i] = static_cast<int32_t>(term);
      scales[i] =
          epilogue.scale_rows ? epilogue.scale * epilogue.scale_rows[channel] : epilogue.scale;
    }
    const size_t pixels = OutPixels(args_.shape);
    const size_t at = (picture_ * args_.shape.out_channels + first_channel) * pixels + pixel;
    table_.store_tile({.rows = rows,
                       .columns = count,
                       .sums = sums,
                       .row_terms = terms,
                       .column_terms = kNoTerms,
                       .row_factors = has_factors ? factors : nullptr,
                       .column_factors = has_factors ? column_sums_ : nullptr,
                       .row_scales = scales,
                       .zero_point = epilogue.zero_point,
                       .is_signed = is_signed,
                       .c = static_cast<std::byte*>(args_.out) + at,
                       .ldc = pixels});
    return true;
  }

  // As in Int8RowOutput, of a row with this zero point.
  uint32_t RowTerm(size_t row, int32_t zero) const {
    return static_cast<uint32_t>(depth_) * static_cast<uint32_t>(zero) -
           static_cast<uint32_t>(row_sums_[row]);
  }

  int32_t WeightZero(size_t channel) const {
    if (args_.weight_zero == nullptr) return 0;
    return args_.weight_zero[args_.weight_zero_per_channel ? channel : 0];
  }

  const Int8ConvArgs& args_;
  const Int8GemmTable& table_;
  const Int8TileShape& tile_;
  const size_t depth_, channels_, first_channel_, picture_;
  const uint8_t* const in_;
  const std::byte* const weights_;
  uint8_t* const panel_;
  uint8_t* const rows_;
  const int32_t* row_sums_;
  int32_t column_sums_[kMaxInt8TileColumns];
  int32_t b_zero_[kMaxInt8TileColumns];
};

// The planes of a convolution whose groups have one input channel: one for each output channel of
// each image.
size_t DepthwisePlanes(const ConvGeneralShape& shape) { return shape.batch * shape.out_channels; }
size_t DepthwiseTaskPlanes(const ConvGeneralShape& shape) {
  constexpr size_t kTaskCost = 200'000;
  size_t plane_cost = (OutPixels(shape) + 64) * (KernelTaps(shape) + 8);
  if (HasInt8Windows(shape)) plane_cost /= 4;
  return std::max<size_t>(1, kTaskCost / plane_cost);
}

// The weights of depthwise channels, as packed.
class DepthwiseWeights {
 public:
  explicit DepthwiseWeights(const Int8ConvArgs& args)
      : args_(args),
        in_group_(args.shape.out_channels / args.shape.groups),
        taps_(Depth(args.shape)),
        has_bytes_(ActiveInt8Conv().shape.a_bytes == 1),
        row_bytes_(ActiveInt8Conv().shape.RowBytes(taps_)),
        group_stride_(GroupStride(args.shape, ActiveInt8Conv().shape)) {}

  // Writes [kernel taps] weights minus their zero point.
  void Fill(size_t channel, int32_t* weights) const {
    // A division takes as long as a small plane.
    const bool has_one = in_group_ == 1;
    const std::byte* row = args_.packed_weights +
                           (has_one ? channel : channel / in_group_) * group_stride_ +
                           (has_one ? 0 : channel % in_group_ * row_bytes_);
    int32_t zero = 0;
    if (args_.weight_zero) zero = args_.weight_zero[args_.weight_zero_per_channel ? channel : 0];
    zero = PackedZeroOfA(args_.weights_are_signed, zero);
    for (size_t tap = 0; tap < taps_; ++tap) {
      const int32_t packed = has_bytes_ ? reinterpret_cast<const int8_t*>(row)[tap]
                                        : reinterpret_cast<const int16_t*>(row)[tap];
      weights[tap] = packed - zero;
    }
  }

 private:
  const Int8ConvArgs& args_;
  const size_t in_group_, taps_;
  const bool has_bytes_;
  const size_t row_bytes_, group_stride_;
};

void RunDepthwiseTask(const Int8ConvArgs& args, size_t task, std::byte* scratch) {
  auto* weights = reinterpret_cast<int32_t*>(scratch);
  scratch += RoundUp64(Depth(args.shape) * sizeof(int32_t));
  const DepthwiseWeights source(args);
  Int8DepthwiseWindows windows(args);
  Int8DepthwiseRows rows(args);
  const size_t step = DepthwiseTaskPlanes(args.shape), begin = task * step;
  const size_t end = std::min(begin + step, DepthwisePlanes(args.shape));
  size_t picture = begin / args.shape.out_channels, channel = begin % args.shape.out_channels;
  for (size_t plane = begin; plane < end; ++plane) {
    source.Fill(channel, weights);
    const bool is_done = windows.serves() ? windows.RunPlane(picture, channel, weights)
                                          : rows.RunPlane(picture, channel, weights, scratch);
    if (!is_done) RunInt8DepthwisePlane(args, picture, channel, weights, scratch);
    if (++channel == args.shape.out_channels) channel = 0, ++picture;
  }
}

}  // namespace

bool ConvolvesBytesFaster() {
  const Target target = ActiveTarget();
  return HasByteDotProducts() || (target != Target::kAvx2 && target != Target::kAvx512);
}

size_t PackedInt8ConvWeightsSize(const ConvGeneralShape& shape) {
  return shape.groups * GroupStride(shape, ActiveInt8Conv().shape);
}

void PackInt8ConvWeights(const ConvGeneralShape& shape, const uint8_t* weights, bool is_signed,
                         std::byte* packed) {
  const Int8GemmTable& table = ActiveInt8Conv();
  const size_t depth = Depth(shape), channels = shape.out_channels / shape.groups;
  for (size_t group = 0; group < shape.groups; ++group) {
    table.PackRows({weights, is_signed, depth, 1}, channels, depth, packed,
                   reinterpret_cast<int32_t*>(packed + GroupRowsBytes(shape, table.shape)));
    weights += channels * depth;
    packed += GroupStride(shape, table.shape);
  }
}

size_t Int8ConvTaskCount(const ConvGeneralShape& shape) {
  if (IsInt8Depthwise(shape)) {
    return DivideUp(DepthwisePlanes(shape), DepthwiseTaskPlanes(shape));
  }
  return shape.batch * shape.groups * PixelTasks(shape, ActiveInt8Conv().shape);
}

size_t Int8ConvScratchSize(const ConvGeneralShape& shape) {
  if (IsInt8Depthwise(shape)) {
    return RoundUp64(Depth(shape) * sizeof(int32_t)) + Int8DepthwiseScratchSize(shape);
  }
  const Int8TileShape& tile = ActiveInt8Conv().shape;
  const size_t depth = Depth(shape);
  return tile.PanelBytes(depth) +
         (IsPointwise(shape) ? 0 : RoundUp64(depth * tile.nr + PanelGather::kSlack));
}

void RunInt8ConvTask(const Int8ConvArgs& args, size_t task, std::byte* scratch) {
  if (IsInt8Depthwise(args.shape)) return RunDepthwiseTask(args, task, scratch);
  const Int8TileShape& tile = ActiveInt8Conv().shape;
  const size_t tasks = PixelTasks(args.shape, tile);
  const size_t panels = DivideUp(OutPixels(args.shape), tile.nr);
  const size_t begin = task % tasks * TaskPanels(args.shape, tile);
  const size_t end = std::min(panels, begin + TaskPanels(args.shape, tile));
  GroupConv conv(args, task / tasks / args.shape.groups, task / tasks % args.shape.groups, scratch);
  for (size_t panel = begin; panel < end; ++panel) conv.RunPanel(panel);
}

}  // namespace tenon::kernels
