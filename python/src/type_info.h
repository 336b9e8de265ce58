// Declared types: those of a model's inputs and outputs, and of values.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "api.h"

namespace tenon::python {

// Size, name, or neither.
using Dimension = std::variant<std::monostate, int64_t, std::string>;

struct TypeDescription {
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  ONNXTensorElementDataType element_type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;  // map: keys
  std::vector<Dimension> shape;                                                      // of tensors
  std::shared_ptr<TypeDescription> item;  // of sequences, optionals and a map's values

  // As in "seq(tensor(float))".
  std::string ToString() const;
};

TypeDescription Describe(const OrtTypeInfo& info);

// An input, output or initializer of a model.
struct NodeArg {
  std::string name;
  TypeDescription type;
};

void BindNodeArg(nb::module_& module);

}  // namespace tenon::python
