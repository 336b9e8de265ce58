// Tensors in the arguments of slots.
#pragma once

#include <onnxruntime_c_api.h>

#include <memory>

#include "capi/boundary/arguments.h"
#include "capi/boundary/handles.h"

namespace tenon::capi {

// A tensor over the client's memory. `owner` keeps it alive, or the client if that is null. Error:
// kInvalidArgument if type, shape and size do not match.
Result<Tensor> ViewOf(const MemoryInfo& memory, void* data, size_t size_bytes, const int64_t* dims,
                      size_t rank, const ONNXTensorElementDataType& element_type,
                      std::shared_ptr<void> owner);

// The tensor in a value from a client.
template <class Handle>
auto TensorOf(Handle* value) -> Result<decltype(&Unwrap(value)->tensor())> {
  TENON_RETURN_IF_NULL(value);
  auto* const object = Unwrap(value);
  if (!object->is_tensor()) {
    return InvalidArgument("expected a tensor, got a {}", ValueKindName(object->kind()));
  }
  return &object->tensor();
}

// A copy of a tensor in memory of `allocator`.
Result<Tensor> CopyTensor(const Tensor& tensor, OrtAllocator* allocator);

// Copies the elements of a tensor into another of the same type and shape. Error: kInvalidArgument
// if they differ; kNotImplemented for memory that the CPU cannot access.
Status CopyElements(const Tensor& from, Tensor& into);

}  // namespace tenon::capi
