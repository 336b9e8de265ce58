#include "kernels/conv/conv_int8_nhwc.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/conv/conv_int8_depthwise.h"
#include "kernels/conv/conv_int8_nhwc_form.h"
#include "kernels/conv/conv_int8_nhwc_rows.h"
#include "kernels/dispatch.h"
#include "kernels/elementwise/int8_table.h"

namespace tenon::kernels {

#if defined(__x86_64__)

const NhwcForm* ActiveNhwcForm() {
  const Target target = ActiveTarget();
  if (target == Target::kAvx512 && VnniNhwcForm()) return VnniNhwcForm();
  return target == Target::kBaseline ? nullptr : Avx2NhwcForm();
}

namespace {

constexpr size_t kMostLanes = 16, kMostPanel = 32, kMostPixels = 14;  // of all forms

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
    quads = DivideUp(bytes, kQuad);
  }
};

// Packed weights: for each group, panels of up to `panel` output channels, [runs][quads][channels
// of the panel][4]; then the sums of the weights of each output channel; then the rests of each
// vector.
struct PackedShape {
  RunShape runs;
  size_t lanes, panel;
  size_t groups, channels;  // output channels of a group
  size_t panels;
  size_t rest_bytes;  // of a vector

  PackedShape(const ConvGeneralShape& shape, const NhwcForm& form)
      : runs(shape),
        lanes(form.lanes),
        panel(form.panel),
        groups(shape.groups),
        channels(shape.out_channels / shape.groups),
        panels(DivideUp(channels, panel)),
        rest_bytes(form.rest_bytes(runs.count * runs.quads)) {}

  // In whole vectors.
  size_t PanelChannels(size_t i) const { return channels - i * panel > lanes ? panel : lanes; }
  size_t PanelBytes(size_t width) const { return runs.count * runs.quads * width * kQuad; }
  size_t GroupBytes() const {
    return (panels - 1) * PanelBytes(panel) + PanelBytes(PanelChannels(panels - 1));
  }
  size_t vectors() const { return DivideUp(channels, lanes); }  // of a group

  size_t SumsOffset() const { return RoundUp64(groups * GroupBytes()); }
  size_t RestsOffset() const {
    return SumsOffset() + RoundUp64(groups * channels * sizeof(int32_t));
  }
  size_t bytes() const { return RestsOffset() + groups * vectors() * rest_bytes; }
};

// Whether pixels can be read where they are: no pads, no signs, no bytes beyond a run.
bool ReadsInPlace(const ConvGeneralShape& shape, bool is_signed) {
  const RunShape runs(shape);
  const auto is_inside = [](const ConvDim& dim) {
    return dim.pad_begin == 0 && PaddedExtent(dim, dim.out) <= dim.in;
  };
  return !is_signed && runs.bytes % kQuad == 0 && is_inside(shape.dims[1]) &&
         is_inside(shape.dims[2]);
}

// Tasks: chunks of rows, and of panels if there are few rows.
struct Grid {
  NhwcRowChunks rows;
  size_t panel_parts;

  Grid(const ConvGeneralShape& shape, const NhwcForm& form) : rows(shape, WantedRows(shape, form)) {
    constexpr size_t kEnoughTasks = 8;
    const PackedShape packed(shape, form);
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
           static_cast<double>(runs.count * runs.quads * kQuad);
  }
  static size_t WantedRows(const ConvGeneralShape& shape, const NhwcForm& form) {
    constexpr size_t kInputBytes = 192 * 1024;  // of a chunk, which stays in the L2 cache
    const size_t row_bytes =
        PaddedExtent(shape.dims[2], shape.dims[2].out) * shape.in_channels * shape.dims[1].stride;
    const auto by_cost = static_cast<size_t>(kTaskCost / RowCost(shape)) + 1;
    const size_t by_memory = std::max<size_t>(1, kInputBytes / row_bytes);
    // Rows that are copied are copied again for other panels. Weights are read again for each
    // chunk, so it has some tiles.
    const size_t wanted = ReadsInPlace(shape, false) ? by_memory : std::min(by_cost, by_memory);
    const size_t band = RowsOfBand(shape.dims[1].out, RowCost(shape), 2 * kLeastCost);
    return std::max(std::min(wanted, band), DivideUp(4 * form.most_pixels, shape.dims[2].out));
  }
};

// The chunk of one task.
class DenseTask {
 public:
  DenseTask(const Int8ConvArgs& args, size_t task, std::byte* scratch)
      : args_(args),
        form_(*ActiveNhwcForm()),
        packed_(args.shape, form_),
        grid_(args.shape, form_),
        words_memory_(scratch + OffsetBytes(packed_.runs) + RowsBytes(args.shape, form_)),
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
      auto* const copy = reinterpret_cast<uint8_t*>(scratch + OffsetBytes(packed_.runs));
      CopyPaddedRows(args, rows_, copy);
      in_ = copy;
    }
    SetOffsets();
  }

  // Of the rows that a task reads, in memory or padded, with what quads read beyond the last pixel.
  static size_t RowsBytes(const ConvGeneralShape& shape, const NhwcForm& form) {
    constexpr size_t kSlack = 64;
    const ConvDim &height = shape.dims[1], &width = shape.dims[2];
    return RoundUp64(PaddedExtent(height, Grid(shape, form).rows.rows) *
                         std::max(width.in, PaddedExtent(width, width.out)) * shape.in_channels +
                     kSlack);
  }
  static size_t OffsetBytes(const RunShape& runs) {
    return RoundUp64(runs.count * runs.quads * sizeof(int32_t));
  }

  static size_t ScratchBytes(const ConvGeneralShape& shape, const NhwcForm& form) {
    const size_t words = form.widen ? sizeof(int16_t) * RowsBytes(shape, form) : 0;
    return OffsetBytes(RunShape(shape)) + RowsBytes(shape, form) + words;
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
    return panel / packed_.panels * packed_.channels + panel % packed_.panels * packed_.panel;
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
    const size_t first = panel * packed_.panel, width = packed_.PanelChannels(panel);
    const size_t count = std::min(width, packed_.channels - first);
    const size_t channel = group * packed_.channels + first;
    const auto* sums =
        reinterpret_cast<const int32_t*>(args_.packed_weights + packed_.SumsOffset()) + channel;
    alignas(64) int32_t starts[kMostPanel] = {};
    alignas(64) float scales[kMostPanel] = {};
    for (size_t i = 0; i < count; ++i) {
      const ByteChannelTerms terms = ChannelTermsOf(args_, channel + i, sums[i]);
      starts[i] = terms.start;
      scales[i] = terms.scale;
    }
    NhwcTile tile = {};
    tile.offsets = offsets_;
    tile.runs = packed_.runs.count;
    tile.run_quads = packed_.runs.quads;
    tile.weights = reinterpret_cast<const int8_t*>(args_.packed_weights) +
                   group * packed_.GroupBytes() + panel * packed_.PanelBytes(packed_.panel);
    tile.rest_bytes = packed_.rest_bytes;
    tile.rests = args_.packed_weights + packed_.RestsOffset() +
                 (group * packed_.vectors() + first / packed_.lanes) * packed_.rest_bytes;
    tile.starts = starts;
    tile.scales = scales;
    tile.zero_point = args_.epilogue.zero_point;
    tile.is_signed = args_.epilogue.type == Int8Output::kInt8;
    tile.out_stride = shape.out_channels;
    tile.channels = count;
    tile.has_small_scales =
        std::all_of(scales, scales + count, [](float s) { return std::abs(s) < 1; });
    tile.reads_words =
        form_.reads_words && form_.reads_words(tile.rests, tile.runs * tile.run_quads);
    RunTiles(group, channel, width == packed_.panel, tile);
  }

  // The rows as words.
  const uint8_t* Words() {
    if (words_ == nullptr) {
      const size_t rows = PaddedExtent(args_.shape.dims[1], rows_.end - rows_.begin);
      auto* const words = reinterpret_cast<int16_t*>(words_memory_);
      form_.widen(in_, rows * columns_ * args_.shape.in_channels, words);
      words_ = reinterpret_cast<const uint8_t*>(words);
    }
    return words_;
  }

  void RunTiles(size_t group, size_t channel, bool is_wide, NhwcTile& tile) {
    const ConvGeneralShape& shape = args_.shape;
    const ConvDim &height = shape.dims[1], &width = shape.dims[2];
    const size_t pixels = (rows_.end - rows_.begin) * width.out;
    const size_t tiles = DivideUp(pixels, form_.most_pixels);
    uint8_t* const out = OutputAt(channel);
    const size_t pixel_bytes = shape.in_channels * (tile.reads_words ? sizeof(int16_t) : 1);
    const size_t row_bytes = columns_ * pixel_bytes * height.stride;
    const size_t step = pixel_bytes * width.stride;
    const uint8_t* row = (tile.reads_words ? Words() : in_) + group * (pixel_bytes / shape.groups);
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
      form_.run_tile(tile, count, is_wide);
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
      for (size_t q = 0; q < runs.quads; ++q) *offset++ = static_cast<int32_t>(first + q * kQuad);
    }
  }

  const Int8ConvArgs& args_;
  const NhwcForm& form_;
  const PackedShape packed_;
  const Grid grid_;
  NhwcRows rows_ = {};
  size_t part_ = 0;
  size_t columns_ = 0;  // of the input's rows in memory
  const uint8_t* in_ = nullptr;
  const uint8_t* words_ = nullptr;
  std::byte* const words_memory_;
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

// A vector of output channels: its part of a panel, and the sums of the weights.
void PackLanes(const ConvGeneralShape& shape, const uint8_t* weights, NhwcWeightChunk chunk) {
  const RunShape runs(shape);
  const size_t channels = shape.in_channels / shape.groups;
  const size_t taps = shape.dims[1].kernel * shape.dims[2].kernel;
  int32_t sums[kMostLanes] = {};
  int32_t* const all_sums = std::exchange(chunk.sums, sums);
  int8_t* const begin = chunk.into;
  uint8_t gathered[kMostLanes][kWeightChunk];
  for (size_t run = 0; run < runs.count; ++run) {
    for (size_t first = 0; first < runs.bytes; first += kWeightChunk) {
      chunk.bytes = std::min(kWeightChunk, runs.bytes - first);
      for (size_t j = 0; j < chunk.count; ++j) {
        const uint8_t* const row = weights + j * channels * taps;
        chunk.rows[j] = row + first;
        if (taps == 1) continue;
        GatherBytes(row, channels, taps, taps / runs.count * run, first, chunk.bytes, gathered[j]);
        chunk.rows[j] = gathered[j];
      }
      chunk.into = begin + (run * runs.quads + first / kQuad) * chunk.quad_distance;
      ActiveNhwcForm()->pack_weights(chunk);
    }
  }
  std::copy_n(sums, chunk.count, all_sums);
}

}  // namespace

bool HasInt8NhwcConv(const ConvGeneralShape& shape) {
  const NhwcForm* form = ActiveNhwcForm();
  const ConvDim& depth = shape.dims[0];
  const bool is_flat = depth.kernel == 1 && depth.in == 1 && depth.out == 1;
  return form && is_flat && (!IsNhwcDepthwise(shape) || HasDepthwiseNhwc(shape, *form));
}

size_t PackedInt8NhwcWeightsSize(const ConvGeneralShape& shape) {
  if (IsNhwcDepthwise(shape)) return PackedDepthwiseNhwcSize(shape);
  if (IsNhwcWinograd(shape)) return PackedWinogradNhwcSize(shape);
  return PackedShape(shape, *ActiveNhwcForm()).bytes();
}

size_t PackInt8NhwcWeightsTaskCount(const ConvGeneralShape& shape) {
  if (IsNhwcDepthwise(shape)) return 1;
  if (IsNhwcWinograd(shape)) return PackWinogradNhwcTaskCount(shape);
  return shape.groups * PackedShape(shape, *ActiveNhwcForm()).panels;
}

void RunPackInt8NhwcWeightsTask(const ConvGeneralShape& shape, const uint8_t* weights,
                                bool is_signed, size_t task, std::byte* packed) {
  if (IsNhwcDepthwise(shape)) return PackDepthwiseNhwc(shape, weights, is_signed, packed);
  if (IsNhwcWinograd(shape)) {
    return RunPackWinogradNhwcTask(shape, weights, is_signed, task, packed);
  }
  const NhwcForm& form = *ActiveNhwcForm();
  const PackedShape to(shape, form);
  const size_t group = task / to.panels, panel = task % to.panels, first = panel * to.panel;
  const size_t channel = group * to.channels + first;
  const size_t vectors = to.PanelChannels(panel) / to.lanes;
  const size_t channel_size =
      shape.in_channels / shape.groups * shape.dims[1].kernel * shape.dims[2].kernel;
  auto* const quads =
      reinterpret_cast<int8_t*>(packed) + group * to.GroupBytes() + panel * to.PanelBytes(to.panel);
  std::byte* const rests =
      packed + to.RestsOffset() + (group * to.vectors() + first / to.lanes) * to.rest_bytes;
  for (size_t v = 0, done = 0; v < vectors; ++v, done += to.lanes) {
    NhwcWeightChunk chunk = {};
    chunk.count = std::min(to.lanes, to.channels - first - done);
    chunk.flip = is_signed ? 0 : 0x80;
    chunk.into = quads + done * kQuad;
    chunk.quad_distance = to.PanelChannels(panel) * kQuad;
    chunk.sums = reinterpret_cast<int32_t*>(packed + to.SumsOffset()) + channel + done;
    PackLanes(shape, weights + (channel + done) * channel_size, chunk);
  }
  if (form.finish_panel) form.finish_panel(quads, to.runs.count * to.runs.quads, vectors, rests);
}

size_t Int8NhwcConvTaskCount(const ConvGeneralShape& shape) {
  if (IsNhwcDepthwise(shape)) return DepthwiseNhwcTaskCount(shape);
  if (IsNhwcWinograd(shape)) return WinogradNhwcTaskCount(shape);
  return Grid(shape, *ActiveNhwcForm()).tasks(shape);
}

size_t Int8NhwcConvScratchSize(const ConvGeneralShape& shape) {
  if (IsNhwcDepthwise(shape)) return DepthwiseNhwcScratchSize(shape);
  if (IsNhwcWinograd(shape)) return WinogradNhwcScratchSize(shape);
  return DenseTask::ScratchBytes(shape, *ActiveNhwcForm());
}

void RunInt8NhwcConvTask(const Int8ConvArgs& args, size_t task, std::byte* scratch) {
  if (IsNhwcDepthwise(args.shape)) return RunDepthwiseNhwcTask(args, task, scratch);
  if (IsNhwcWinograd(args.shape)) return RunWinogradNhwcTask(args, task, scratch);
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
