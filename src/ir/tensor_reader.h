// Reads TensorProto and SparseTensorProto.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "ir/read_context.h"
#include "tensor/value.h"

namespace tenon {

struct NamedTensor {
  std::string name;
  std::string doc_string;
  Metadata metadata;
  Tensor tensor;
};

// Whether a tensor may be a view of bytes that are not aligned for its elements.
enum class ViewAlignment : uint8_t { kOfElements, kAny };

// The elements are a view of `bytes` or of a mapped file if they are stored there in the tensor's
// form and the context has an owner; otherwise a copy. With kAny, large tensors need no alignment,
// which protobuf does not provide: see Tensor::is_aligned. Errors: kInvalidProtobuf; kInvalidGraph
// if type, shape and elements do not match; those of ExternalData; kNotImplemented for segments.
Result<NamedTensor> ReadTensorProto(std::string_view bytes, ReadContext& context,
                                    ViewAlignment alignment = ViewAlignment::kOfElements);

// The same for an initializer of the main graph, which `context.initializers` may replace by
// another tensor. Error: kInvalidArgument if that has another type or shape.
Result<NamedTensor> ReadInitializer(std::string_view bytes, ReadContext& context);

struct NamedSparseTensor {
  std::string name;
  std::string doc_string;
  Metadata metadata;
  std::shared_ptr<SparseTensor> tensor;
};

// Checks that the indices are in range, ascending and without duplicates.
Result<NamedSparseTensor> ReadSparseTensorProto(std::string_view bytes, ReadContext& context);

}  // namespace tenon
