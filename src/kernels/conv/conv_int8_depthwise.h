// Convolution of int8 and uint8 with one input channel per group; only for conv_int8.cpp.
#pragma once

#include "kernels/conv/conv_int8_args.h"

namespace tenon::kernels {

// Whether the functions below support the shape: two-dimensional, with kernels whose sums are exact
// in float.
bool IsInt8Depthwise(const ConvGeneralShape& shape);

// Bytes of scratch memory for one plane; a multiple of 64.
size_t Int8DepthwiseScratchSize(const ConvGeneralShape& shape);

// Computes output channel `channel` of one image. weights: [kernel taps], minus their zero point.
void RunInt8DepthwisePlane(const Int8ConvArgs& args, size_t picture, size_t channel,
                           const int32_t* weights, std::byte* scratch);

// The initial values and scales of the sums of an output channel whose output is int8 or uint8.
struct ByteChannelTerms {
  int32_t start;
  float scale;
};
// `weight_sum` is the sum of the channel's weights; inputs count as bytes in [0, 255].
ByteChannelTerms ChannelTermsOf(const Int8ConvArgs& args, size_t channel, int32_t weight_sum);

// A convolution along a row with int8 or uint8 outputs. Taps are in quads.
struct Int8RowConv {
  static constexpr size_t kMostQuads = 64;
  static constexpr size_t kReach = 64;  // bytes that are read from a quad's first one on

  size_t stride = 1;
  size_t quads = 0;
  uint8_t order[64] = {};              // order[4 i + t]: position of the input of output i at tap t
  ptrdiff_t offsets[kMostQuads] = {};  // of the quads' first taps
  int32_t weights[kMostQuads] = {};    // four of int8 each
  int32_t start = 0;                   // added to all sums
  float scale = 1;
  int32_t zero_point = 0;
  bool is_signed = false;
};

// Computes outputs [0, n) from bytes in [0, 255]; reads kReach bytes after each quad's first one.
using Int8RowFunction = void (*)(const Int8RowConv& conv, const uint8_t* in, size_t n, void* out);
// Null if the machine lacks the instructions.
Int8RowFunction FindInt8Row();

// Computes the same as RunInt8DepthwisePlane with Int8RowFunction, for many planes of a
// convolution.
class Int8DepthwiseRows {
 public:
  explicit Int8DepthwiseRows(const Int8ConvArgs& args);

  // Returns false, with nothing written, if the machine, the shape or the weights do not allow it.
  bool RunPlane(size_t picture, size_t channel, const int32_t* weights, std::byte* scratch);

 private:
  bool SetWeights(size_t channel, const int32_t* weights);

  const Int8ConvArgs& args_;
  Int8RowFunction run_ = nullptr;  // null: does not support the convolution
  Int8RowConv conv_;
};

// A convolution of a plane in windows. A window is the input rows for `rows` rows of the output; it
// has fewer bytes than a vector. Outputs of a window are in vectors, and their taps in quads.
struct Int8WindowConv {
  static constexpr size_t kQuad = 4, kOutputs = 16, kLanes = 64, kMostOrders = 48;

  size_t rows = 0, quads = 0, window_rows = 0;
  size_t in_rows = 0, in_columns = 0, out_rows = 0, out_columns = 0;
  size_t stride = 1, pad = 0;  // of rows
  uint8_t zero = 0, flip = 0;  // the value of pads; turns an input into a byte in [0, 255]
  // orders[v * quads + q][4 i + t] is, for vector v and quad q, the position in the window where
  // output i meets tap t. The last lane of a window is a pad.
  uint8_t orders[kMostOrders][kLanes];
  int32_t weights[kMostOrders] = {};  // four of int8 each
  int32_t start = 0;                  // added to all sums
  float scale = 1;
  int32_t zero_point = 0;
  bool is_signed = false;
};

// Computes a whole plane. Reads nothing outside it.
using Int8WindowFunction = void (*)(const Int8WindowConv& conv, const uint8_t* in, uint8_t* out);
// Null if the machine lacks the instructions.
Int8WindowFunction FindInt8Window();

// Whether the planes are small enough.
bool HasInt8Windows(const ConvGeneralShape& shape);

// Computes the same as RunInt8DepthwisePlane with Int8WindowFunction, for many planes.
class Int8DepthwiseWindows {
 public:
  explicit Int8DepthwiseWindows(const Int8ConvArgs& args);

  // Whether the machine and the shape allow it.
  bool serves() const { return run_ != nullptr; }
  // Returns false, with nothing written, if the weights do not allow it.
  bool RunPlane(size_t picture, size_t channel, const int32_t* weights);

 private:
  void SetOrders();

  const Int8ConvArgs& args_;
  Int8WindowFunction run_ = nullptr;
  Int8WindowConv conv_;
};

// Bytes of scratch memory for a plane; a multiple of 64.
size_t Int8DepthwiseRowsScratchSize(const ConvGeneralShape& shape);

}  // namespace tenon::kernels
