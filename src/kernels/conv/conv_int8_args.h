// The arguments of a convolution of int8 and uint8; see conv_int8.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/conv/conv_general_args.h"
#include "kernels/gemm/gemm_int8_args.h"

namespace tenon::kernels {

struct Int8ConvArgs {
  ConvGeneralShape shape;
  const uint8_t* in = nullptr;  // [batch][in_channels][in dims]
  bool in_is_signed = false;
  int32_t in_zero = 0;
  bool weights_are_signed = false;
  const std::byte* packed_weights = nullptr;  // as PackInt8ConvWeights wrote them
  const int32_t* weight_zero = nullptr;       // [out_channels], or one; null: 0
  bool weight_zero_per_channel = false;
  void* out = nullptr;  // [batch][out_channels][out dims]
  // The epilogue's rows are output channels.
  Int8Epilogue epilogue;
  // Only in NHWC: for each byte that the epilogue makes, the one to store; null: itself.
  const uint8_t* table = nullptr;  // [256]
};

}  // namespace tenon::kernels
