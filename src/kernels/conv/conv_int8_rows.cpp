#include <algorithm>
#include <cstring>

#include "kernels/conv/conv_dims.h"
#include "kernels/conv/conv_int8_depthwise.h"
#include "kernels/dispatch.h"
#include "kernels/gemm/gemm_int8_tile.h"

namespace tenon::kernels {
namespace {

constexpr size_t kQuad = 4;

size_t RoundUp64(size_t x) { return (x + 63) / 64 * 64; }

// The plane with its pads; rows are next to each other.
struct PaddedPlane {
  size_t rows, columns;
  // Short rows of outputs are computed as one, with the elements between them, and copied.
  bool is_joined;

  explicit PaddedPlane(const ConvGeneralShape& shape)
      : rows(Extent(shape.dims[1])),
        columns(Extent(shape.dims[2])),
        is_joined(shape.dims[1].stride == 1 && shape.dims[2].stride == 1 &&
                  shape.dims[2].out < 40) {}

  static size_t Extent(const ConvDim& dim) {
    return (dim.out - 1) * dim.stride + (dim.kernel - 1) * dim.dilation + 1;
  }
  // Includes the bytes that the last outputs read beyond their row: 16 outputs at a time, at most 4
  // apart.
  size_t bytes() const { return RoundUp64(rows * columns + Int8RowConv::kReach + 64); }
  size_t joined_bytes(const ConvGeneralShape& shape) const {
    return is_joined ? RoundUp64(shape.dims[1].out * columns) : 0;
  }
};

size_t QuadsOf(const ConvGeneralShape& shape) {
  return shape.dims[1].kernel * ((shape.dims[2].kernel + kQuad - 1) / kQuad);
}

bool HasRowForm(const ConvGeneralShape& shape) {
  const ConvDim& width = shape.dims[2];
  const size_t last_tap = std::min(kQuad, width.kernel) - 1;
  return QuadsOf(shape) <= Int8RowConv::kMostQuads && width.stride <= 4 &&
         width.dilation < Int8RowConv::kReach &&
         15 * width.stride + last_tap * width.dilation < Int8RowConv::kReach;
}

Int8RowFunction ActiveInt8Row() {
  static const Int8RowFunction found = FindInt8Row();
  const bool is_used = ActiveTarget() == Target::kAvx512 && ActiveInt8Conv().has_dot_products();
  return is_used ? found : nullptr;
}

// Writes bytes in [0, 255]; pads hold the zero point.
void FillPlane(const Int8ConvArgs& args, const PaddedPlane& plane, const uint8_t* in, uint8_t zero,
               uint8_t* into) {
  const ConvDim &height = args.shape.dims[1], &width = args.shape.dims[2];
  std::memset(into, zero, plane.bytes());
  const size_t first = std::min(width.pad_begin, plane.columns);
  const size_t count = std::min(width.in, plane.columns - first);
  const uint8_t flip = args.in_is_signed ? 0x80 : 0;
  for (size_t y = 0; y < height.in && y + height.pad_begin < plane.rows; ++y) {
    uint8_t* row = into + (y + height.pad_begin) * plane.columns + first;
    const uint8_t* from = in + y * width.in;
    for (size_t x = 0; x < count; ++x) row[x] = from[x] ^ flip;
  }
}

}  // namespace

ByteChannelTerms ChannelTermsOf(const Int8ConvArgs& args, size_t channel, int32_t weight_sum) {
  const Int8Epilogue& epilogue = args.epilogue;
  const int32_t zero = PackedZeroOfB(args.in_is_signed, args.in_zero);
  const auto bias = epilogue.bias_rows ? static_cast<uint32_t>(epilogue.bias_rows[channel]) : 0u;
  const float scale =
      epilogue.scale_rows ? epilogue.scale * epilogue.scale_rows[channel] : epilogue.scale;
  return {static_cast<int32_t>(bias - static_cast<uint32_t>(zero * weight_sum)), scale};
}

size_t Int8DepthwiseRowsScratchSize(const ConvGeneralShape& shape) {
  const PaddedPlane plane(shape);
  return plane.bytes() + plane.joined_bytes(shape);
}

Int8DepthwiseRows::Int8DepthwiseRows(const Int8ConvArgs& args) : args_(args) {
  const Int8Epilogue& epilogue = args.epilogue;
  const bool is_signed = epilogue.type == Int8Output::kInt8;
  if (!(is_signed || epilogue.type == Int8Output::kUint8) || !HasRowForm(args.shape)) return;
  run_ = ActiveInt8Row();
  const PaddedPlane plane(args.shape);
  const ConvDim &height = args.shape.dims[1], &width = args.shape.dims[2];
  conv_.stride = width.stride;
  conv_.zero_point = epilogue.zero_point;
  conv_.is_signed = is_signed;
  for (size_t i = 0; i < sizeof(conv_.order); ++i) {
    const size_t tap = std::min(i % kQuad, width.kernel - 1);
    conv_.order[i] = static_cast<uint8_t>(i / kQuad * width.stride + tap * width.dilation);
  }
  for (size_t ky = 0; ky < height.kernel; ++ky) {
    for (size_t first = 0; first < width.kernel; first += kQuad) {
      conv_.offsets[conv_.quads++] =
          static_cast<ptrdiff_t>(ky * height.dilation * plane.columns + first * width.dilation);
    }
  }
}

// Returns false if a weight is too large for its quad.
bool Int8DepthwiseRows::SetWeights(size_t channel, const int32_t* weights) {
  const ConvDim &height = args_.shape.dims[1], &width = args_.shape.dims[2];
  int32_t sum = 0;
  int32_t* into = conv_.weights;
  for (size_t ky = 0; ky < height.kernel; ++ky, weights += width.kernel) {
    for (size_t first = 0; first < width.kernel; first += kQuad) {
      int8_t quad[kQuad] = {};
      for (size_t t = 0; t < std::min(kQuad, width.kernel - first); ++t) {
        const int32_t weight = weights[first + t];
        if (weight < INT8_MIN || weight > INT8_MAX) return false;
        quad[t] = static_cast<int8_t>(weight);
        sum += weight;
      }
      std::memcpy(into++, quad, sizeof(quad));
    }
  }
  const ByteChannelTerms terms = ChannelTermsOf(args_, channel, sum);
  conv_.start = terms.start;
  conv_.scale = terms.scale;
  return true;
}

bool Int8DepthwiseRows::RunPlane(size_t picture, size_t channel, const int32_t* weights,
                                 std::byte* scratch) {
  if (run_ == nullptr || !SetWeights(channel, weights)) return false;
  const ConvGeneralShape& shape = args_.shape;
  const PaddedPlane plane(shape);
  const size_t in_channel = channel / (shape.out_channels / shape.groups);
  const uint8_t* in = args_.in + (picture * shape.in_channels + in_channel) * InPixels(shape);
  auto* const padded = reinterpret_cast<uint8_t*>(scratch);
  const int32_t zero = PackedZeroOfB(args_.in_is_signed, args_.in_zero);
  FillPlane(args_, plane, in, static_cast<uint8_t>(zero), padded);
  const size_t height = shape.dims[1].out, width = shape.dims[2].out;
  auto* out = static_cast<uint8_t*>(args_.out) +
              (picture * shape.out_channels + channel) * OutPixels(shape);
  if (!plane.is_joined) {
    for (size_t y = 0; y < height; ++y) {
      run_(conv_, padded + y * shape.dims[1].stride * plane.columns, width, out + y * width);
    }
    return true;
  }
  uint8_t* const joined = padded + plane.bytes();
  run_(conv_, padded, (height - 1) * plane.columns + width, joined);
  for (size_t y = 0; y < height; ++y) {
    std::copy_n(joined + y * plane.columns, width, out + y * width);
  }
  return true;
}

}  // namespace tenon::kernels
