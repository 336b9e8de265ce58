#include "ir/scalar.h"

#include <cmath>

namespace tenon {
namespace {

// The relative error of rounded constants in exported models: some have seven decimal digits.
double Tolerance(DataType type) {
  switch (type) {
    case DataType::kFloat16:
      return 1e-3;
    case DataType::kBfloat16:
      return 8e-3;
    case DataType::kFloat:
    case DataType::kDouble:
      return 1e-6;
    default:
      return 0;
  }
}

template <class T>
Tensor Filled(double value, Shape shape) {
  return Tensor::Of<T>(std::move(shape), {static_cast<T>(value)});
}

}  // namespace

std::optional<double> ScalarOf(const Tensor& tensor) {
  if (tensor.size() != 1 || !tensor.memory().IsHostAccessible()) return std::nullopt;
  switch (tensor.type()) {
    case DataType::kFloat:
      return *tensor.data<float>();
    case DataType::kDouble:
      return *tensor.data<double>();
    case DataType::kFloat16:
      return static_cast<float>(*tensor.data<Float16>());
    case DataType::kBfloat16:
      return static_cast<float>(*tensor.data<Bfloat16>());
    case DataType::kInt8:
      return *tensor.data<int8_t>();
    case DataType::kUint8:
      return *tensor.data<uint8_t>();
    case DataType::kInt32:
      return *tensor.data<int32_t>();
    case DataType::kInt64:
      return static_cast<double>(*tensor.data<int64_t>());
    default:
      return std::nullopt;
  }
}

bool IsScalarNear(const Tensor& tensor, double value) {
  const std::optional<double> scalar = ScalarOf(tensor);
  if (!scalar) return false;
  if (std::abs(*scalar - value) <= Tolerance(tensor.type()) * std::abs(value)) return true;
  const auto rounded = static_cast<float>(value);
  return tensor.type() == DataType::kFloat && (*scalar == static_cast<float>(Float16(rounded)) ||
                                               *scalar == static_cast<float>(Bfloat16(rounded)));
}

Result<Tensor> MakeScalar(DataType type, double value, Shape shape) {
  switch (type) {
    case DataType::kFloat:
      return Filled<float>(value, std::move(shape));
    case DataType::kDouble:
      return Filled<double>(value, std::move(shape));
    case DataType::kFloat16:
      return Tensor::Of<Float16>(std::move(shape), {Float16(static_cast<float>(value))});
    case DataType::kBfloat16:
      return Tensor::Of<Bfloat16>(std::move(shape), {Bfloat16(static_cast<float>(value))});
    case DataType::kInt32:
      return Filled<int32_t>(value, std::move(shape));
    case DataType::kInt64:
      return Filled<int64_t>(value, std::move(shape));
    default:
      return InvalidArgument("no scalar of type {}", DataTypeName(type));
  }
}

}  // namespace tenon
