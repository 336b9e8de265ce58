#include "kernel_writer.h"

#include <fmt/format.h>

namespace opencl {

std::string KernelWriter::Int(int64_t value) {
  std::string name = fmt::format("n{}", arguments_.size());
  parameters_ += fmt::format("{}int {}", parameters_.empty() ? "" : ", ", name);
  arguments_.push_back({.kind = Argument::kInt, .integer = static_cast<int32_t>(value)});
  return name;
}

std::string KernelWriter::Float(float value) {
  std::string name = fmt::format("f{}", arguments_.size());
  parameters_ += fmt::format("{}float {}", parameters_.empty() ? "" : ", ", name);
  arguments_.push_back({.kind = Argument::kFloat, .real = value});
  return name;
}

std::string KernelWriter::Input(const Tensor& tensor) { return Pointer(tensor, "const "); }

std::string KernelWriter::Output(const Tensor& tensor) { return Pointer(tensor, ""); }

// Buffers have no addresses that an offset could be added to, so it comes beside them.
std::string KernelWriter::Pointer(const Tensor& tensor, const char* qualifier) {
  const size_t number = arguments_.size();
  parameters_ += fmt::format("{}global {}{}* b{}, long o{}", parameters_.empty() ? "" : ", ",
                             qualifier, NameOf(tensor.type), number, number);
  prologue_ += fmt::format("  b{} += o{};\n", number, number);
  arguments_.push_back({.kind = Argument::kBuffer,
                        .storage = tensor.storage,
                        .offset = tensor.offset,
                        .element_size = SizeOf(tensor.type)});
  return fmt::format("b{}", number);
}

std::string KernelWriter::Offset(const Shape& shape, const Shape& strides,
                                 const std::string& index) {
  // Axes, innermost first; neighbours that are laid out as one are one.
  std::vector<std::pair<int64_t, int64_t>> axes;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 1) continue;
    if (!axes.empty() && strides[i] == axes.back().second * axes.back().first) {
      axes.back().first *= shape[i];
    } else {
      axes.emplace_back(shape[i], strides[i]);
    }
  }
  std::string sum;
  std::string rest = index;
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto [size, stride] = axes[i];
    const bool is_last = i + 1 == axes.size();
    const std::string dim = is_last ? "" : Int(size);
    if (stride != 0) {
      const std::string coordinate = is_last ? rest : fmt::format("({} % {})", rest, dim);
      sum += fmt::format("{}{}", sum.empty() ? "" : " + ", coordinate);
      if (stride != 1) sum += " * " + Int(stride);
    }
    if (!is_last) rest = fmt::format("({} / {})", rest, dim);
  }
  return sum.empty() ? "0" : sum;
}

std::string KernelWriter::Program(const std::string& kernel_name, const std::string& body) const {
  return fmt::format("kernel void {}({}) {{\n{}{}\n}}\n", kernel_name, parameters_, prologue_,
                     body);
}

}  // namespace opencl
