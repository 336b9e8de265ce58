#include "capi/value/tensor_arguments.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "capi/value/allocator.h"
#include "capi/value/element_type.h"

namespace tenon::capi {

Result<Tensor> ViewOf(const MemoryInfo& memory, void* data, size_t size_bytes, const int64_t* dims,
                      size_t rank, const ONNXTensorElementDataType& element_type,
                      std::shared_ptr<void> owner) {
  TENON_RETURN_IF_NULL_ARRAY(dims, rank);
  TENON_ASSIGN_OR_RETURN(const DataType type, FromElementType(element_type));
  if (type == DataType::kUndefined || type == DataType::kString) {
    return InvalidArgument("a tensor of {} cannot lie in the caller's memory", DataTypeName(type));
  }
  Shape shape(std::span(dims, rank));
  TENON_ASSIGN_OR_RETURN(const int64_t elements, shape.CheckedNumElements());
  TENON_ASSIGN_OR_RETURN(const size_t needed, DataTypeBytes(type, elements));
  if (needed > size_bytes) {
    return InvalidArgument("not enough space: a {} tensor of shape {} needs {} bytes, got {}",
                           DataTypeName(type), shape, needed, size_bytes);
  }
  if (data == nullptr && needed != 0) return InvalidArgument("p_data must not be null");
  return Tensor::View(type, std::move(shape), data, std::move(owner), memory);
}

Result<Tensor> CopyTensor(const Tensor& tensor, OrtAllocator* allocator) {
  TENON_ASSIGN_OR_RETURN(Tensor copy,
                         Tensor::Allocate(tensor.type(), tensor.shape(), FromClient(allocator)));
  TENON_RETURN_IF_ERROR(CopyElements(tensor, copy));
  return copy;
}

Status CopyElements(const Tensor& from, Tensor& into) {
  if (from.type() != into.type() || !(from.shape() == into.shape())) {
    return InvalidArgument("a {} tensor of shape {} cannot be copied into a {} tensor of shape {}",
                           DataTypeName(from.type()), from.shape(), DataTypeName(into.type()),
                           into.shape());
  }
  if (!from.memory().IsHostAccessible() || !into.memory().IsHostAccessible()) {
    return NotImplemented("memory of '{}' cannot be copied into memory of '{}'", from.memory().name,
                          into.memory().name);
  }
  if (from.type() == DataType::kString) {
    std::copy_n(from.data<std::string>(), from.size(), into.data<std::string>());
  } else if (from.bytes() != 0) {
    std::memmove(into.raw(), from.raw(), from.bytes());
  }
  return OkStatus();
}

}  // namespace tenon::capi
