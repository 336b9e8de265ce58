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

// The elements are a view of `bytes` or of a mapped file where they lie there as the tensor needs
// them and the context has an owner; else a copy. With kAny, large tensors need no alignment, which
// protobuf does not give them: Tensor::is_aligned tells. Errors: kInvalidProtobuf; kInvalidGraph
// where type, shape and elements do not fit together; those of ExternalData; kNotImplemented for
// segments.
Result<NamedTensor> ReadTensorProto(std::string_view bytes, ReadContext& context,
                                    ViewAlignment alignment = ViewAlignment::kOfElements);

// The same for an initializer of the main graph, which `context.initializers` may give another
// tensor. Error: kInvalidArgument where that has another type or shape.
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
