// A dense tensor: element type, shape, and memory that it owns, shares or borrows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>

#include "base/check.h"
#include "base/status.h"
#include "tensor/allocator.h"
#include "tensor/data_type.h"
#include "tensor/shape.h"
#include "tensor/small_floats.h"

namespace tenon {

// The DataType whose elements are stored as the C++ type T, e.g. kInt64 for int64_t.
template <class T>
constexpr DataType DataTypeOf() {
  if constexpr (std::is_same_v<T, float>) return DataType::kFloat;
  if constexpr (std::is_same_v<T, double>) return DataType::kDouble;
  if constexpr (std::is_same_v<T, int8_t>) return DataType::kInt8;
  if constexpr (std::is_same_v<T, int16_t>) return DataType::kInt16;
  if constexpr (std::is_same_v<T, int32_t>) return DataType::kInt32;
  if constexpr (std::is_same_v<T, int64_t>) return DataType::kInt64;
  if constexpr (std::is_same_v<T, uint8_t>) return DataType::kUint8;
  if constexpr (std::is_same_v<T, uint16_t>) return DataType::kUint16;
  if constexpr (std::is_same_v<T, uint32_t>) return DataType::kUint32;
  if constexpr (std::is_same_v<T, uint64_t>) return DataType::kUint64;
  if constexpr (std::is_same_v<T, bool>) return DataType::kBool;
  if constexpr (std::is_same_v<T, std::string>) return DataType::kString;
  if constexpr (std::is_same_v<T, Float16>) return DataType::kFloat16;
  if constexpr (std::is_same_v<T, Bfloat16>) return DataType::kBfloat16;
  return DataType::kUndefined;
}

// Whether elements of `type` are stored as T: in its own C++ type, or as elements that are only
// moved, in an unsigned integer or another type of their size. Packed types are bytes.
template <class T>
bool IsStorageOf(DataType type) {
  if (DataTypeOf<T>() == type) return true;
  if (std::is_same_v<T, std::string> || type == DataType::kString) return false;
  if (DataTypeOf<T>() != DataType::kUndefined && !std::is_unsigned_v<T>) return false;
  const size_t bits = DataTypeBits(type);
  return 8 * sizeof(T) == bits || (sizeof(T) == 1 && bits < 8);
}

// Copies share the memory. Distinct Tensor objects may be used from several threads; accesses to
// the elements are not synchronized.
class Tensor {
 public:
  // No tensor: type kUndefined.
  Tensor() = default;

  // Uninitialised elements (empty strings for kString) from `allocator`, which must outlive them
  // unless shared. Errors: a bad shape, or no memory (the text names the bytes).
  static Result<Tensor> Allocate(DataType type, const Shape& shape,
                                 std::shared_ptr<Allocator> allocator = SharedCpuAllocator());

  // A view of `data`, kept alive by `owner` (null: by the caller). `data` holds
  // DataTypeBytes(type, elements) bytes, aligned for the element type.
  static Tensor View(DataType type, Shape shape, void* data, std::shared_ptr<void> owner = nullptr,
                     const MemoryInfo& memory = CpuMemory());

  // The same for read-only CPU memory, such as a mapped file. An owner of the tensor uses only its
  // const members. If `data` may have any address, is_aligned() tells whether it is aligned.
  static Tensor ReadOnlyView(DataType type, Shape shape, const void* data,
                             std::shared_ptr<void> owner);

  // A CPU tensor with its own copy of `values`; shape.NumElements() == values.size().
  template <class T>
  static Tensor Of(Shape shape, std::span<const T> values);
  template <class T>
  static Tensor Of(Shape shape, std::initializer_list<T> values) {
    return Of(std::move(shape), std::span<const T>(values.begin(), values.size()));
  }

  DataType type() const { return type_; }
  const Shape& shape() const { return shape_; }
  size_t rank() const { return shape_.rank(); }
  int64_t size() const { return elements_; }
  size_t bytes() const { return bytes_; }
  const MemoryInfo& memory() const { return *memory_; }
  bool defined() const { return type_ != DataType::kUndefined; }
  // Whether the elements may be read as their type; if not, only their bytes may be.
  bool is_aligned() const;
  const std::shared_ptr<void>& owner() const { return owner_; }

  void* raw() { return data_; }
  const void* raw() const { return data_; }
  // Elements as T, which IsStorageOf<T>(type()) allows.
  template <class T>
  T* data() {
    TENON_DCHECK(IsStorageOf<T>(type_));
    return static_cast<T*>(data_);
  }
  template <class T>
  const T* data() const {
    TENON_DCHECK(IsStorageOf<T>(type_));
    return static_cast<const T*>(data_);
  }
  template <class T>
  std::span<const T> values() const {
    return {data<T>(), static_cast<size_t>(elements_)};
  }

  // The same elements under another shape with the same number of elements.
  Tensor Reshaped(Shape shape) const;
  // A deep copy in CPU memory; the source must be host-accessible.
  Result<Tensor> Clone() const;

 private:
  Tensor(DataType type, Shape shape, void* data, std::shared_ptr<void> owner,
         const MemoryInfo& memory);

  DataType type_ = DataType::kUndefined;
  Shape shape_;
  int64_t elements_ = 0;
  size_t bytes_ = 0;
  void* data_ = nullptr;
  std::shared_ptr<void> owner_;
  const MemoryInfo* memory_ = &CpuMemory();
};

// Elements of an int32 or int64 tensor, such as axes or a shape, widened.
// Errors: another type, or a tensor that the CPU cannot read.
Result<Shape> IntegersOf(const Tensor& tensor);

template <class T>
Tensor Tensor::Of(Shape shape, std::span<const T> values) {
  auto owner = std::make_shared<std::unique_ptr<T[]>>(std::make_unique<T[]>(values.size()));
  std::copy(values.begin(), values.end(), owner->get());
  void* data = owner->get();
  return View(DataTypeOf<T>(), std::move(shape), data, std::move(owner));
}

}  // namespace tenon
