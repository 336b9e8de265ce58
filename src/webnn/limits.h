// The limits of a WebNN context, from the text of its opSupportLimits().
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/string_map.h"
#include "tensor/data_type.h"
#include "tensor/shape.h"

namespace tenon::webnn {

// The names of WebNN's MLOperandDataType; "" for an element type that WebNN does not have.
std::string_view OperandTypeName(DataType type);
// kUndefined for a name that it does not have.
DataType OperandTypeFromName(std::string_view name);

// The limits of one operand of an operator: MLTensorLimits, or MLDataTypeLimits.
struct OperandLimits {
  TypeSet types;
  size_t min_rank = 0;
  size_t max_rank = SIZE_MAX;

  bool Allows(DataType type, size_t rank) const {
    return types.Contains(type) && rank >= min_rank && rank <= max_rank;
  }
};

// Immutable.
class Limits {
 public:
  // Error: kInvalidArgument for text that is no JSON object. Missing entries are not supported;
  // unknown data types are ignored.
  static Result<Limits> Parse(std::string_view json);

  // Null if the context does not have the operand, or the operator.
  const OperandLimits* Find(std::string_view op, std::string_view operand) const;

  const OperandLimits& input() const { return input_; }
  const OperandLimits& constant() const { return constant_; }
  const OperandLimits& output() const { return output_; }
  // preferredInputLayout is nhwc.
  bool prefers_channels_last() const { return prefers_channels_last_; }
  // maxTensorByteLength.
  double max_bytes() const { return max_bytes_; }

  // The type that a value of a model has in programs (WB-54): bool is uint8, and integers that
  // inputs, constants or outputs of a graph cannot have are int32. kUndefined: it has none.
  DataType TypeFor(DataType type) const;

 private:
  bool IsEverywhere(DataType type) const {
    return input_.types.Contains(type) && constant_.types.Contains(type) &&
           output_.types.Contains(type);
  }

  OperandLimits input_, constant_, output_;
  bool prefers_channels_last_ = false;
  double max_bytes_ = 0;
  // By operator and then by operand.
  std::map<std::string, std::map<std::string, OperandLimits, std::less<>>, std::less<>> operators_;
};

}  // namespace tenon::webnn
