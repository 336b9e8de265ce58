// The values that a session takes and returns in Python, and their conversion to and from NumPy.
#pragma once

#include <utility>
#include <vector>

#include "api.h"
#include "type_info.h"

namespace tenon::python {

// A lent buffer of a Python object. The object lives as long as the buffer.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept : view_(std::exchange(other.view_, Py_buffer{})) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(view_, other.view_);
    return *this;
  }
  ~Buffer() {
    if (view_.obj != nullptr) PyBuffer_Release(&view_);
  }

  // Row-major memory with its format. False if the object has none, with no exception set.
  bool Borrow(nb::handle object);

  const Py_buffer& view() const { return view_; }

 private:
  Py_buffer view_{};
};

// An OrtValue with the Python memory that it refers to, if any: the class OrtValue of the native
// module. Tensors of numbers lend their memory through the buffer protocol.
class Value {
 public:
  Value() = default;
  explicit Value(ValueHandle handle) : handle_(std::move(handle)) {}
  Value(ValueHandle handle, Buffer memory)
      : memory_(std::move(memory)), handle_(std::move(handle)) {}

  Value(ValueHandle handle, nb::object owner)
      : owner_(std::move(owner)), handle_(std::move(handle)) {}

  OrtValue* get() const { return handle_.get(); }
  // Keeps the owner of the memory.
  void Keep(nb::object owner) { owner_ = std::move(owner); }

 private:
  Buffer memory_;  // outlives the handle, as does this:
  nb::object owner_;
  ValueHandle handle_;
};

// Type and shape of a tensor. `shape` lives as long as the value.
struct TensorView {
  ONNXTensorElementDataType type;
  const int64_t* shape;
  size_t rank;
  size_t element_count;
};

TensorView ViewTensor(const OrtValue* value);

// Converts a feed. Arrays of numbers are used without a copy if they are row-major, aligned and in
// the machine's byte order; everything else is converted first. `expected` is the declared type: an
// array keeps its own type, a list or scalar takes this one.
Value ToValue(nb::handle object, const TypeDescription& expected);

// The array of `value`, which is a tensor and the one in the Python object `object`. An array of
// numbers uses the tensor's memory, which lives as long as the array. An array of strings is a
// copy, and so is that of a tensor on a device.
nb::object ArrayOf(nb::handle object, const Value& value);

// The value as a Python object: array, list, dict, or None for an empty optional. Arrays of numbers
// use the value's memory; nothing is copied.
nb::object ToPython(Value value);

// The strings of a tensor of `count` of them, dense or sparse. Bytes that are not UTF-8 become
// surrogates.
nb::list TextsOf(const OrtValue* value, size_t count);

void BindValue(nb::module_& module);

}  // namespace tenon::python
