// Writes the source of a kernel. Sizes are arguments, so that one program serves all tensors that
// are laid out alike.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan.h"
#include "tensor.h"

namespace codegen {

// The elements of a tensor in memory, counted from the tensor's first one. Kernels know them as
// NameOf(type): those of float16 become floats when they are read, and are rounded, ties to even,
// when they are written.
class Elements {
 public:
  Elements(std::string pointer, DataType type) : pointer_(std::move(pointer)), type_(type) {}

  // Expressions of C.
  std::string Read(std::string_view index) const;
  std::string Write(std::string_view index, std::string_view value) const;
  std::string Address(std::string_view index) const;
  // A macro of one argument, the index of an element to read.
  std::string Macro(std::string_view name) const;

 private:
  std::string pointer_;
  DataType type_;
};

class KernelWriter {
 public:
  // Add a parameter; return its name.
  std::string Int(int64_t value);
  std::string Float(float value);
  // Add a parameter for the tensor's memory.
  Elements Input(const Tensor& tensor);
  Elements Output(const Tensor& tensor);

  // The offset of element number `index` of a row-major tensor of this shape, in a memory with
  // these strides.
  std::string Offset(const Shape& shape, const Shape& strides, const std::string& index);

  // The whole program, and the arguments of its kernel. The body may call round_to_half(x) and
  // round_to_bfloat16(x): the float16 or bfloat16 nearest to a float.
  std::string Program(const std::string& kernel_name, const std::string& body) const;
  const std::vector<Argument>& arguments() const { return arguments_; }

 private:
  Elements Pointer(const Tensor& tensor, const char* qualifier);

  std::string parameters_;
  std::string prologue_;
  std::vector<Argument> arguments_;
};

}  // namespace codegen
