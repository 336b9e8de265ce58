// Depthwise convolutions of planes so small that the input rows for some output rows fit in one
// vector: a permutation of that vector finds all taps of an output.
#include <algorithm>
#include <cstring>

#include "kernels/conv/conv_dims.h"
#include "kernels/conv/conv_int8_depthwise.h"
#include "kernels/dispatch.h"
#include "kernels/gemm/gemm_int8_tile.h"

namespace tenon::kernels {
namespace {

constexpr size_t kQuad = Int8WindowConv::kQuad, kOutputs = Int8WindowConv::kOutputs;
constexpr size_t kLanes = Int8WindowConv::kLanes;

size_t DivideUp(size_t x, size_t by) { return (x + by - 1) / by; }

// How many input rows `rows` rows of the output need.
size_t WindowRows(const ConvDim& height, size_t rows) {
  return (rows - 1) * height.stride + (height.kernel - 1) * height.dilation + 1;
}

// How many rows of the output one window computes; 0: it cannot hold one.
size_t RowsOfWindow(const ConvGeneralShape& shape) {
  const ConvDim &height = shape.dims[1], &width = shape.dims[2];
  constexpr size_t kMostExtent = 100;  // columns are compared as bytes
  const size_t columns = (width.out - 1) * width.stride + (width.kernel - 1) * width.dilation + 1;
  if (columns > kMostExtent || width.pad_begin > kMostExtent || width.in == 0) return 0;
  const size_t quads = DivideUp(height.kernel * width.kernel, kQuad);
  size_t rows = 0;
  // The last lane holds the pads' value.
  while (rows < height.out && WindowRows(height, rows + 1) * width.in < kLanes &&
         DivideUp((rows + 1) * width.out, kOutputs) * quads <= Int8WindowConv::kMostOrders) {
    ++rows;
  }
  return rows;
}

Int8WindowFunction ActiveInt8Window() {
  static const Int8WindowFunction found = FindInt8Window();
  const bool is_used = ActiveTarget() == Target::kAvx512 && ActiveInt8Conv().has_dot_products();
  return is_used ? found : nullptr;
}

}  // namespace

bool HasInt8Windows(const ConvGeneralShape& shape) { return RowsOfWindow(shape) > 0; }

Int8DepthwiseWindows::Int8DepthwiseWindows(const Int8ConvArgs& args) : args_(args) {
  const Int8Epilogue& epilogue = args.epilogue;
  const bool is_signed = epilogue.type == Int8Output::kInt8;
  if (!is_signed && epilogue.type != Int8Output::kUint8) return;
  const ConvDim &height = args.shape.dims[1], &width = args.shape.dims[2];
  conv_.rows = RowsOfWindow(args.shape);
  if (conv_.rows == 0) return;
  run_ = ActiveInt8Window();
  conv_.quads = DivideUp(height.kernel * width.kernel, kQuad);
  conv_.window_rows = WindowRows(height, conv_.rows);
  conv_.in_rows = height.in;
  conv_.in_columns = width.in;
  conv_.out_rows = height.out;
  conv_.out_columns = width.out;
  conv_.stride = height.stride;
  conv_.pad = height.pad_begin;
  conv_.zero = static_cast<uint8_t>(PackedZeroOfB(args.in_is_signed, args.in_zero));
  conv_.flip = args.in_is_signed ? 0x80 : 0;
  conv_.zero_point = epilogue.zero_point;
  conv_.is_signed = is_signed;
  SetOrders();
}

// Lanes and columns are sums, in bytes, of a part for the output and a part for the tap. A column
// left of the plane wraps around to a large one.
void Int8DepthwiseWindows::SetOrders() {
  const ConvDim &height = args_.shape.dims[1], &width = args_.shape.dims[2];
  const size_t taps = height.kernel * width.kernel, outputs = conv_.rows * width.out;
  uint8_t tap_lanes[Int8WindowConv::kMostOrders][kQuad] = {};
  uint8_t tap_columns[Int8WindowConv::kMostOrders][kQuad] = {};
  for (size_t tap = 0, ky = 0, kx = 0; tap < taps; ++tap) {
    const size_t column = kx * width.dilation;
    tap_columns[tap / kQuad][tap % kQuad] = static_cast<uint8_t>(column);
    tap_lanes[tap / kQuad][tap % kQuad] =
        static_cast<uint8_t>(ky * height.dilation * width.in + column);
    if (++kx == width.kernel) kx = 0, ++ky;
  }
  const auto columns = static_cast<uint8_t>(width.in);
  size_t row = 0, x = 0;
  for (size_t first = 0; first < outputs; first += kOutputs) {
    uint8_t lanes[kLanes], own_columns[kLanes];
    for (size_t i = 0; i < kOutputs; ++i) {
      const size_t column = x * width.stride - width.pad_begin;
      const size_t lane = row * height.stride * width.in + column;
      std::fill_n(lanes + i * kQuad, kQuad, static_cast<uint8_t>(lane));
      std::fill_n(own_columns + i * kQuad, kQuad, static_cast<uint8_t>(column));
      if (++x == width.out) x = 0, ++row;
    }
    for (size_t quad = 0; quad < conv_.quads; ++quad) {
      uint8_t* order = conv_.orders[first / kOutputs * conv_.quads + quad];
      for (size_t i = 0; i < kLanes; ++i) {
        const auto column = static_cast<uint8_t>(own_columns[i] + tap_columns[quad][i % kQuad]);
        const auto lane = static_cast<uint8_t>(lanes[i] + tap_lanes[quad][i % kQuad]);
        order[i] = column < columns ? lane : static_cast<uint8_t>(kLanes - 1);
      }
    }
  }
}

bool Int8DepthwiseWindows::RunPlane(size_t picture, size_t channel, const int32_t* weights) {
  const ConvGeneralShape& shape = args_.shape;
  auto* const bytes = reinterpret_cast<int8_t*>(conv_.weights);
  const size_t taps = KernelTaps(shape);
  int32_t sum = 0, lost = 0;
  for (size_t tap = 0; tap < taps; ++tap) {
    bytes[tap] = static_cast<int8_t>(weights[tap]);
    lost |= bytes[tap] ^ weights[tap];
    sum += weights[tap];
  }
  if (lost != 0) return false;
  const ByteChannelTerms terms = ChannelTermsOf(args_, channel, sum);
  conv_.start = terms.start;
  conv_.scale = terms.scale;
  const size_t in_channel =
      shape.out_channels == shape.groups ? channel : channel / (shape.out_channels / shape.groups);
  run_(conv_, args_.in + (picture * shape.in_channels + in_channel) * InPixels(shape),
       static_cast<uint8_t*>(args_.out) +
           (picture * shape.out_channels + channel) * OutPixels(shape));
  return true;
}

}  // namespace tenon::kernels
