// An array whose size is known when it is made, without an allocation if it is small.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace tenon {

// `size` default-constructed objects; up to kInline of them lie in the array itself.
template <class T, size_t kInline>
class InlineArray {
 public:
  explicit InlineArray(size_t size)
      : heap_(size > kInline ? std::make_unique<T[]>(size) : nullptr), size_(size) {}
  InlineArray(const InlineArray&) = delete;
  InlineArray& operator=(const InlineArray&) = delete;

  size_t size() const { return size_; }
  T* data() { return heap_ ? heap_.get() : inline_; }
  T& operator[](size_t i) { return data()[i]; }
  std::span<T> span() { return {data(), size_}; }

 private:
  T inline_[kInline] = {};
  std::unique_ptr<T[]> heap_;
  size_t size_;
};

}  // namespace tenon
