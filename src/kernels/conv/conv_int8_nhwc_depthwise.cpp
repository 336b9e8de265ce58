// Depthwise convolutions of int8 and uint8 in NHWC. For a row of the output, four rows of the input
// at a time are interleaved, so that the bytes of a column that belong to one channel are the
// operand of a dot product.
#include "kernels/conv/conv_int8_depthwise.h"
#include "kernels/conv/conv_int8_nhwc_form.h"
#include "kernels/conv/conv_int8_nhwc_rows.h"
#include "kernels/elementwise/int8_table.h"

namespace tenon::kernels {

bool IsNhwcDepthwise(const ConvGeneralShape& shape) {
  return shape.groups == shape.in_channels && shape.groups == shape.out_channels &&
         shape.groups > 1;
}

#if defined(__x86_64__)

namespace {

constexpr size_t kRows = kInterleavedRows;
constexpr size_t kLanes = 16;  // channels of the longest vector of sums

size_t DivideUp(size_t x, size_t y) { return (x + y - 1) / y; }
size_t RoundUp64(size_t x) { return (x + 63) / 64 * 64; }

// Packed weights: [bands of kRows rows of the kernel][columns of the kernel][channels][kRows], then
// the sums of each channel's weights; channels in whole vectors.
struct PackedDepthwise {
  size_t bands, taps, channels;

  explicit PackedDepthwise(const ConvGeneralShape& shape)
      : bands(DivideUp(shape.dims[1].kernel, kRows)),
        taps(bands * shape.dims[2].kernel),
        channels(DivideUp(shape.out_channels, kLanes) * kLanes) {}
  size_t bytes() const { return taps * channels * kRows; }
};

NhwcRowChunks ChunksOf(const ConvGeneralShape& shape) {
  constexpr double kTaskCost = 200'000;  // bytes that a tap reads
  const PackedDepthwise packed(shape);
  const double row = static_cast<double>(shape.dims[2].out * packed.channels) *
                     static_cast<double>(packed.taps + 6);
  const size_t band = RowsOfBand(shape.dims[1].out, row, kTaskCost / 4);
  return {shape, std::min(static_cast<size_t>(kTaskCost / row) + 1, band)};
}

// Bytes of a band of interleaved rows, with what whole vectors read beyond it.
size_t BandBytes(const ConvGeneralShape& shape) {
  const size_t columns = PaddedExtent(shape.dims[2], shape.dims[2].out);
  return RoundUp64(columns * shape.in_channels * kRows + kLanes * kRows);
}

// Element i of the rows becomes bytes [4 i, 4 i + 4).
void Interleave(const uint8_t* const (&rows)[kRows], size_t count, uint8_t flip, uint8_t* out) {
  size_t i = ActiveNhwcForm()->interleave(rows, count, flip, out);
  for (; i < count; ++i) {
    for (size_t k = 0; k < kRows; ++k) out[i * kRows + k] = rows[k][i] ^ flip;
  }
}

class DepthwiseTask {
 public:
  DepthwiseTask(const Int8ConvArgs& args, const NhwcRows& rows, std::byte* scratch)
      : args_(args),
        packed_(args.shape),
        rows_(rows),
        bands_(reinterpret_cast<uint8_t*>(scratch)),
        pads_(bands_ + packed_.bands * BandBytes(args.shape)),
        starts_(reinterpret_cast<int32_t*>(pads_ + PadBytes(args.shape))),
        scales_(reinterpret_cast<float*>(starts_ + packed_.channels)) {
    const auto* sums = reinterpret_cast<const int32_t*>(args.packed_weights + packed_.bytes());
    for (size_t c = 0; c < packed_.channels; ++c) {
      const bool is_there = c < args.shape.out_channels;
      const ByteChannelTerms terms =
          is_there ? ChannelTermsOf(args, c, sums[c]) : ByteChannelTerms{};
      starts_[c] = terms.start;
      scales_[c] = terms.scale;
    }
    std::memset(pads_, args.in_zero, PadBytes(args.shape));
  }

  // A row of pixels that are the zero point.
  static size_t PadBytes(const ConvGeneralShape& shape) {
    return RoundUp64(shape.dims[2].in * shape.in_channels);
  }
  static size_t ScratchBytes(const ConvGeneralShape& shape) {
    const PackedDepthwise packed(shape);
    return packed.bands * BandBytes(shape) + PadBytes(shape) +
           RoundUp64(packed.channels * (sizeof(int32_t) + sizeof(float)));
  }

  void Run() {
    const ConvGeneralShape& shape = args_.shape;
    const ConvDim &height = shape.dims[1], &width = shape.dims[2];
    NhwcDepthwiseRow row = {};
    row.bands = bands_;
    row.band_bytes = BandBytes(shape);
    row.bands_count = packed_.bands;
    row.kernel_width = width.kernel;
    row.tap_stride = width.dilation * shape.in_channels * kRows;
    row.step = width.stride * shape.in_channels * kRows;
    row.weights = reinterpret_cast<const int8_t*>(args_.packed_weights);
    row.weight_stride = packed_.channels * kRows;
    row.starts = starts_;
    row.scales = scales_;
    row.zero_point = args_.epilogue.zero_point;
    row.is_signed = args_.epilogue.type == Int8Output::kInt8;
    row.width = width.out;
    row.channels = shape.out_channels;
    const auto run = ActiveNhwcForm()->run_depthwise_row;
    for (size_t y = rows_.begin; y < rows_.end; ++y) {
      for (size_t band = 0; band < packed_.bands; ++band) FillBand(y, band);
      row.out = static_cast<uint8_t*>(args_.out) +
                (rows_.image * height.out + y) * width.out * shape.out_channels;
      run(row);
      if (args_.table) LookUpInt8(args_.table, row.out, width.out * shape.out_channels, row.out);
    }
  }

 private:
  // Interleaves the input rows of one band for output row y, with pads left and right.
  void FillBand(size_t y, size_t band) {
    const ConvGeneralShape& shape = args_.shape;
    const ConvDim &height = shape.dims[1], &width = shape.dims[2];
    const size_t channels = shape.in_channels;
    const uint8_t flip = args_.in_is_signed ? 0x80 : 0;
    const auto zero = static_cast<uint8_t>(static_cast<uint8_t>(args_.in_zero) ^ flip);
    const uint8_t* rows[kRows];
    for (size_t k = 0; k < kRows; ++k) {
      // Huge above the image. Rows beyond the kernel meet zeros.
      const size_t tap = band * kRows + k;
      const size_t in_y = y * height.stride + tap * height.dilation - height.pad_begin;
      const bool is_there = tap < height.kernel && in_y < height.in;
      rows[k] =
          is_there ? args_.in + (rows_.image * height.in + in_y) * width.in * channels : pads_;
    }
    const size_t columns = PaddedExtent(width, width.out);
    const size_t first = std::min(width.pad_begin, columns);
    const size_t inside = std::min(width.in, columns - first);
    uint8_t* into = bands_ + band * BandBytes(shape);
    std::memset(into, zero, first * channels * kRows);
    into += first * channels * kRows;
    Interleave(rows, inside * channels, flip, into);
    std::memset(into + inside * channels * kRows, zero,
                (columns - first - inside) * channels * kRows);
  }

  const Int8ConvArgs& args_;
  const PackedDepthwise packed_;
  const NhwcRows rows_;
  uint8_t* const bands_;
  uint8_t* const pads_;
  int32_t* const starts_;
  float* const scales_;
};

}  // namespace

bool HasDepthwiseNhwc(const ConvGeneralShape& shape, const NhwcForm& form) {
  return PackedDepthwise(shape).taps <= form.most_taps;
}

size_t PackedDepthwiseNhwcSize(const ConvGeneralShape& shape) {
  const PackedDepthwise packed(shape);
  return packed.bytes() + RoundUp64(packed.channels * sizeof(int32_t));
}

void PackDepthwiseNhwc(const ConvGeneralShape& shape, const uint8_t* weights, bool is_signed,
                       std::byte* packed) {
  const PackedDepthwise form(shape);
  const size_t kernel_width = shape.dims[2].kernel, taps = shape.dims[1].kernel * kernel_width;
  const uint8_t flip = is_signed ? 0 : 0x80;
  std::memset(packed, 0, PackedDepthwiseNhwcSize(shape));
  auto* const into = reinterpret_cast<int8_t*>(packed);
  auto* const sums = reinterpret_cast<int32_t*>(packed + form.bytes());
  for (size_t channel = 0; channel < shape.out_channels; ++channel) {
    for (size_t tap = 0; tap < taps; ++tap) {
      const auto weight = static_cast<int8_t>(weights[channel * taps + tap] ^ flip);
      const size_t y = tap / kernel_width, x = tap % kernel_width;
      into[((y / kRows * kernel_width + x) * form.channels + channel) * kRows + y % kRows] = weight;
      sums[channel] += weight;
    }
  }
}

size_t DepthwiseNhwcTaskCount(const ConvGeneralShape& shape) {
  return shape.batch * ChunksOf(shape).chunks;
}

size_t DepthwiseNhwcScratchSize(const ConvGeneralShape& shape) {
  return DepthwiseTask::ScratchBytes(shape);
}

void RunDepthwiseNhwcTask(const Int8ConvArgs& args, size_t task, std::byte* scratch) {
  DepthwiseTask(args, ChunksOf(args.shape).RowsOf(args.shape, task), scratch).Run();
}

#endif

}  // namespace tenon::kernels
