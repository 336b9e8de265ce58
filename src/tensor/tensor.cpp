#include "tensor/tensor.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "tensor/arena.h"

namespace tenon {
namespace {

// Frees a block, and destroys the strings in it, through the allocator that it keeps alive.
struct BlockOwner {
  BlockOwner(std::shared_ptr<Allocator> from, void* memory)
      : allocator(std::move(from)), block(memory) {}
  BlockOwner(const BlockOwner&) = delete;
  BlockOwner& operator=(const BlockOwner&) = delete;
  ~BlockOwner() {
    for (int64_t i = 0; i < strings; ++i) static_cast<std::string*>(block)[i].~basic_string();
    allocator->Free(block);
  }
  std::shared_ptr<Allocator> allocator;
  void* block;
  int64_t strings = 0;
};

// The memory of tensors' control blocks, so that a steady run does not use the heap. Never
// destroyed: tensors may outlive every other object of the library.
CachingArena& ControlBlocks() {
  static auto* const arena = new CachingArena(SharedCpuAllocator());
  return *arena;
}

template <class T>
struct ControlBlockAllocator {
  using value_type = T;
  ControlBlockAllocator() = default;
  template <class U>
  ControlBlockAllocator(const ControlBlockAllocator<U>&) {}  // NOLINT(google-explicit-constructor)
  T* allocate(size_t count) {
    void* block = ControlBlocks().Allocate(count * sizeof(T));
    if (block == nullptr) std::abort();  // not even a cache line is left
    return static_cast<T*>(block);
  }
  void deallocate(T* block, size_t) { ControlBlocks().Free(block); }
  template <class U>
  bool operator==(const ControlBlockAllocator<U>&) const {
    return true;
  }
};

}  // namespace

Tensor::Tensor(DataType type, Shape shape, void* data, std::shared_ptr<void> owner,
               const MemoryInfo& memory)
    : type_(type),
      shape_(std::move(shape)),
      elements_(shape_.NumElements()),
      bytes_(static_cast<size_t>((static_cast<uint64_t>(elements_) * DataTypeBits(type) + 7) / 8)),
      data_(data),
      owner_(std::move(owner)),
      memory_(&memory) {}

Result<Tensor> Tensor::Allocate(DataType type, const Shape& shape,
                                std::shared_ptr<Allocator> allocator) {
  TENON_ASSIGN_OR_RETURN(const int64_t elements, shape.CheckedNumElements());
  TENON_ASSIGN_OR_RETURN(const size_t bytes, DataTypeBytes(type, elements));
  void* block = allocator->Allocate(bytes);
  if (block == nullptr) {
    return RuntimeException("out of memory: {} bytes for a {} tensor of shape {}", bytes,
                            DataTypeName(type), shape);
  }
  const MemoryInfo& memory = allocator->info();
  auto owner = std::allocate_shared<BlockOwner>(ControlBlockAllocator<BlockOwner>(),
                                                std::move(allocator), block);
  if (type == DataType::kString) {
    for (int64_t i = 0; i < elements; ++i) new (static_cast<std::string*>(block) + i) std::string();
    owner->strings = elements;
  }
  return Tensor(type, shape, block, std::move(owner), memory);
}

Tensor Tensor::View(DataType type, Shape shape, void* data, std::shared_ptr<void> owner,
                    const MemoryInfo& memory) {
  return Tensor(type, std::move(shape), data, std::move(owner), memory);
}

Tensor Tensor::ReadOnlyView(DataType type, Shape shape, const void* data,
                            std::shared_ptr<void> owner) {
  // One class is for memory that may be written and for memory that may not.
  return View(type, std::move(shape), const_cast<void*>(data), std::move(owner));
}

bool Tensor::is_aligned() const {
  const size_t alignment = std::clamp<size_t>(DataTypeBits(type_) / 8, 1, alignof(double));
  return reinterpret_cast<uintptr_t>(data_) % alignment == 0;
}

Tensor Tensor::Reshaped(Shape shape) const {
  Tensor result = *this;
  result.shape_ = std::move(shape);
  return result;
}

Result<Tensor> Tensor::Clone() const {
  TENON_ASSIGN_OR_RETURN(Tensor copy, Allocate(type_, shape_));
  if (type_ == DataType::kString) {
    std::copy_n(data<std::string>(), elements_, copy.data<std::string>());
  } else if (bytes_ > 0) {
    std::memcpy(copy.raw(), data_, bytes_);
  }
  return copy;
}

Result<Shape> IntegersOf(const Tensor& tensor) {
  if (!tensor.memory().IsHostAccessible()) {
    return InvalidArgument("expected a tensor in CPU memory, got one in {}", tensor.memory().name);
  }
  Shape result(static_cast<size_t>(tensor.size()), 0);
  if (tensor.type() == DataType::kInt64) {
    std::copy_n(tensor.data<int64_t>(), tensor.size(), result.data());
  } else if (tensor.type() == DataType::kInt32) {
    std::copy_n(tensor.data<int32_t>(), tensor.size(), result.data());
  } else {
    return InvalidArgument("expected int32 or int64 elements, got {}", DataTypeName(tensor.type()));
  }
  return result;
}

}  // namespace tenon
