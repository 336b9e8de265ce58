// Writes the source of a kernel. Sizes are arguments, so that one program serves all tensors that
// are laid out alike.
#pragma once

#include <string>
#include <vector>

#include "plan.h"
#include "tensor.h"

namespace opencl {

class KernelWriter {
 public:
  // Add a parameter; return its name.
  std::string Int(int64_t value);
  std::string Float(float value);
  // A pointer to the tensor's first element.
  std::string Input(const Tensor& tensor);
  std::string Output(const Tensor& tensor);

  // The offset of element number `index` of a row-major tensor of this shape, in a memory with
  // these strides.
  std::string Offset(const Shape& shape, const Shape& strides, const std::string& index);

  // The whole program, and the arguments of its kernel.
  std::string Program(const std::string& kernel_name, const std::string& body) const;
  const std::vector<Argument>& arguments() const { return arguments_; }

 private:
  std::string Pointer(const Tensor& tensor, const char* qualifier);

  std::string parameters_;
  std::string prologue_;
  std::vector<Argument> arguments_;
};

}  // namespace opencl
