// Turns a deferred tensor into one kernel.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>

#include "kernel_writer.h"
#include "planner.h"

namespace codegen {

class ExpressionWriter {
 public:
  ExpressionWriter(Planner& planner, Shape shape) : planner_(planner), shape_(std::move(shape)) {}

  // The kernel that computes `tensor` into the memory that `target` describes. Operands that
  // cannot be computed by the same kernel are stored first.
  Result<Launch> Write(const TensorRef& tensor, const Tensor& target);

 private:
  // The name of the tensor's element number `i`; adds to `code_` what computes it.
  Result<std::string> Element(const TensorRef& tensor);
  Result<std::string> Compute(const TensorRef& tensor);
  Result<std::string> Load(const TensorRef& tensor);
  bool CanInline(const Tensor& tensor) const;
  void OrderAxes(const Tensor& target);
  Shape Ordered(const Shape& axes) const;
  bool HasRoot(const Tensor& tensor) const;
  KernelBody ElementwiseBody() const;
  size_t ElementsPerItem() const;
  bool CanBeVector() const;
  Elements InputElements(const Tensor& tensor, std::string& index);

  Planner& planner_;
  Shape shape_;
  std::vector<size_t> order_;  // in which a kernel goes through the axes
  KernelWriter writer_;
  Root root_;
  DataType root_type_ = DataType::kFloat;
  bool is_vector_ = false;  // an item does eight elements that are neighbours
  std::string vectors_;     // what it reads before
  std::string code_;
  int names_ = 0;
  std::unordered_map<const Tensor*, std::string> loaded_;
};

}  // namespace codegen
