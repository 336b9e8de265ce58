// The type of a value in a graph, as in ONNX's TypeProto.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/dim.h"
#include "tensor/data_type.h"
#include "tensor/value.h"

namespace tenon {

// kNone means that nothing is known yet. Copies are cheap enough to pass by value in passes.
struct ValueType {
  Value::Kind kind = Value::Kind::kNone;
  // Of a tensor or sparse tensor: the element type. Of a map: the key type.
  DataType element_type = DataType::kUndefined;
  // Of a tensor or sparse tensor; empty if the rank is unknown.
  std::optional<SymbolicShape> shape;
  // Of a sequence, optional or map: the type of its contents.
  std::shared_ptr<const ValueType> held;
  std::string denotation;
  // Of a tensor with a shape: what each axis means, e.g. "DATA_BATCH"; empty if no axis has a
  // denotation.
  std::vector<std::string> dim_denotations = {};

  static ValueType Tensor(DataType element_type, std::optional<SymbolicShape> shape = std::nullopt);
  static ValueType Sequence(ValueType held);
  static ValueType Optional(ValueType held);
  static ValueType Map(DataType key, ValueType held);

  // The type of an existing value; kNone for none. The shapes of a sequence's elements are left
  // out.
  static ValueType Of(const tenon::Value& value);

  bool is_tensor() const { return kind == Value::Kind::kTensor; }
  // ONNX's spelling: "tensor(float)", "seq(map(int64,tensor(float)))", "optional(tensor(int8))".
  std::string TypeName() const;
  // TypeName and the shape: "tensor(float) [batch, 3]".
  std::string ToString() const;
};

// The type of a value of which both `a` and `b` are true. Fails if they contradict each other.
Result<ValueType> MergeTypes(const ValueType& a, const ValueType& b);

// The type of a value that is of type `a` or of type `b`.
ValueType CommonType(const ValueType& a, const ValueType& b);

}  // namespace tenon
