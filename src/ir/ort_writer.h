// Writes models in ONNX Runtime's format (.ort).
#pragma once

#include <cstddef>
#include <span>

#include "base/function_ref.h"
#include "base/status.h"
#include "ir/model.h"

namespace tenon {

// Replaces operators for which ONNX Runtime has no kernels, as it does itself when it reads an ONNX
// model: HardSwish, Mish, Swish and SwiGLU by their bodies, CastLike by Cast if the type is known.
// The types of new values are not inferred.
Status ReplaceForOrt(Model& model);

// Passes the model's bytes to `use`. Constant nodes become initializers, as ONNX Runtime has no
// kernels for them; otherwise the nodes and names are those of an ONNX file (ir/onnx_writer.h).
// Dropped, because the format has no place for them: training information, names and metadata of
// graphs, metadata of nodes and values, quantization annotations, device configurations.
// Errors: kInvalidGraph for cycles, for nodes of a version that the model does not import, and for
// values of unknown type; kInvalidArgument for 2 GiB or more; kNotImplemented for what the format
// does not have: calls of functions, values of sparse or optional type, attributes that are sparse
// tensors or types.
Status WriteOrtModel(const Model& model, FunctionRef<Status(std::span<const std::byte>)> use);

}  // namespace tenon
