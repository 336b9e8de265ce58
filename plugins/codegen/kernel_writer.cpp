#include "kernel_writer.h"

#include <fmt/format.h>

namespace codegen {
namespace {

// Multiples of 2^-24 below the least normal number, 11 bits of significand from there on.
constexpr const char* kRoundToHalf = R"(
float round_to_half(float x) {
  const uint bits = as_uint(x) & 0x7fffffff;
  float rounded = as_float((bits + 0xfff + (bits >> 13 & 1)) & 0xffffe000);
  if (bits < 0x38800000) rounded = (as_float(bits) + 0.5f) - 0.5f;
  if (rounded > 65504.0f) rounded = INFINITY;
  return isnan(x) ? x : copysign(rounded, x);
}
)";

// The upper half of a float.
constexpr const char* kRoundToBFloat16 = R"(
ushort bfloat16_bits(float x) {
  const uint bits = as_uint(x);
  if (isnan(x)) return (ushort)(bits >> 16 | 0x40);
  return (ushort)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
float round_to_bfloat16(float x) { return as_float((uint)bfloat16_bits(x) << 16); }
)";

}  // namespace

// These functions need no support of float16 by the device.
std::string Elements::Read(std::string_view index) const {
  if (type_ == DataType::kFloat16) return fmt::format("vload_half(0, {} + ({}))", pointer_, index);
  if (type_ == DataType::kBFloat16) {
    return fmt::format("as_float((uint){}[{}] << 16)", pointer_, index);
  }
  return fmt::format("{}[{}]", pointer_, index);
}

std::string Elements::Write(std::string_view index, std::string_view value) const {
  if (type_ == DataType::kFloat16) {
    return fmt::format("vstore_half_rte({}, 0, {} + ({}))", value, pointer_, index);
  }
  if (type_ == DataType::kBFloat16) {
    return fmt::format("{}[{}] = bfloat16_bits({})", pointer_, index, value);
  }
  return fmt::format("{}[{}] = {}", pointer_, index, value);
}

std::string Elements::Address(std::string_view index) const {
  return fmt::format("{} + ({})", pointer_, index);
}

std::string Elements::Macro(std::string_view name) const {
  return fmt::format("#define {}(index_) {}\n", name, Read("index_"));
}

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

Elements KernelWriter::Input(const Tensor& tensor) { return Pointer(tensor, "const "); }

Elements KernelWriter::Output(const Tensor& tensor) { return Pointer(tensor, ""); }

// Buffers have no addresses that an offset could be added to, so it comes beside them.
Elements KernelWriter::Pointer(const Tensor& tensor, const char* qualifier) {
  const size_t number = arguments_.size();
  parameters_ += fmt::format("{}GLOBAL {}{}* b{}, long o{}", parameters_.empty() ? "" : ", ",
                             qualifier, StoredNameOf(tensor.stored_type), number, number);
  prologue_ += fmt::format("  b{} += o{};\n", number, number);
  arguments_.push_back({.kind = Argument::kBuffer,
                        .storage = tensor.storage,
                        .offset = tensor.offset,
                        .element_size = SizeOf(tensor.stored_type)});
  return {fmt::format("b{}", number), tensor.stored_type};
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
  const bool has_half = body.find("round_to_half") != std::string::npos;
  const bool has_bfloat16 = body.find("bfloat16") != std::string::npos;
  return fmt::format("{}{}KERNEL void {}({}) {{\n{}{}\n}}\n", has_half ? kRoundToHalf : "",
                     has_bfloat16 ? kRoundToBFloat16 : "", kernel_name, parameters_, prologue_,
                     body);
}

}  // namespace codegen
