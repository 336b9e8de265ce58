#include "ops/framework/float_rows.h"

#include <algorithm>
#include <cstring>

#include "kernels/elementwise/convert.h"

namespace tenon {
namespace {

void Widen(DataType type, const uint16_t* from, float* to, size_t n) {
  const auto convert =
      type == DataType::kFloat16 ? kernels::Float16ToFloat : kernels::Bfloat16ToFloat;
  convert(from, to, n);
}

void Narrow(DataType type, const float* from, uint16_t* to, size_t n) {
  const auto convert =
      type == DataType::kFloat16 ? kernels::FloatToFloat16 : kernels::FloatToBfloat16;
  convert(from, to, n);
}

}  // namespace

const float* FloatRow(const Tensor& tensor, size_t first, size_t n, float* buffer) {
  if (tensor.type() == DataType::kFloat) return tensor.data<float>() + first;
  Widen(tensor.type(), static_cast<const uint16_t*>(tensor.raw()) + first, buffer, n);
  return buffer;
}

void CopyFloatRow(const Tensor& tensor, size_t first, size_t n, float* row) {
  if (tensor.type() == DataType::kFloat) {
    std::memcpy(row, static_cast<const std::byte*>(tensor.raw()) + first * sizeof(float),
                n * sizeof(float));
  } else {
    FloatRow(tensor, first, n, row);
  }
}

void StoreFloatRow(const float* values, size_t n, size_t first, Tensor& tensor) {
  if (tensor.type() == DataType::kFloat) {
    std::copy_n(values, n, tensor.data<float>() + first);
  } else {
    Narrow(tensor.type(), values, static_cast<uint16_t*>(tensor.raw()) + first, n);
  }
}

void RoundFloats(DataType type, float* values, size_t n, uint16_t* work) {
  if (type == DataType::kFloat) return;
  Narrow(type, values, work, n);
  Widen(type, work, values, n);
}

}  // namespace tenon
