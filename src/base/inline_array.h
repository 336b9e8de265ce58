// An array whose size is known when it is made. A small one needs no memory but its own.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "base/block_pool.h"

namespace tenon {

// `size` default-constructed objects; up to kInline of them lie in the array itself, more in a
// block of the thread's pool.
template <class T, size_t kInline>
class InlineArray {
 public:
  explicit InlineArray(size_t size) : size_(size) {
    if (size <= kInline) return;
    block_ = static_cast<T*>(TakePooledBlock(size * sizeof(T)));
    std::uninitialized_value_construct_n(block_, size);
  }
  ~InlineArray() {
    if (block_ == nullptr) return;
    std::destroy_n(block_, size_);
    ReturnPooledBlock(block_, size_ * sizeof(T));
  }
  InlineArray(const InlineArray&) = delete;
  InlineArray& operator=(const InlineArray&) = delete;

  size_t size() const { return size_; }
  T* data() { return block_ != nullptr ? block_ : inline_; }
  T& operator[](size_t i) { return data()[i]; }
  std::span<T> span() { return {data(), size_}; }

 private:
  T inline_[kInline] = {};
  T* block_ = nullptr;
  const size_t size_;
};

}  // namespace tenon
