#include "runtime/kernel_info.h"

#include "ir/graph.h"

namespace tenon {
namespace {

const ValueType& TypeOf(const Graph& graph, const std::vector<ValueId>& ids, size_t i) {
  static const ValueType* const none = new ValueType();
  return i < ids.size() && ids[i] != ValueId::kNone ? graph.value(ids[i]).type : *none;
}

}  // namespace

const ValueType& KernelInfo::InputType(size_t i) const { return TypeOf(graph_, node_.inputs, i); }
const ValueType& KernelInfo::OutputType(size_t i) const { return TypeOf(graph_, node_.outputs, i); }

const Tensor* KernelInfo::Constant(size_t i) const {
  return HasInput(i) ? graph_.ConstantOf(node_.inputs[i]) : nullptr;
}

const Tensor* KernelInfo::StoredConstant(size_t i) const {
  return HasInput(i) ? graph_.StoredConstantOf(node_.inputs[i]) : nullptr;
}

}  // namespace tenon
