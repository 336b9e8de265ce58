// Small integer tensors, such as shapes, computed on the host while a plan is made.
#pragma once

#include <optional>
#include <vector>

#include "tensor.h"

namespace codegen {

// Larger tensors are the device's.
inline constexpr int64_t kMaxKnownElements = 256;

struct KnownTensor {
  DataType type = DataType::kNone;
  Shape shape;
  std::vector<int64_t> values;
};

// Whether such operators are evaluated at all, given known inputs.
bool IsEvaluatedOnHost(const Node& node);
// The node's result, if it can be computed from the known contents or shapes of its inputs (null
// for absent ones).
std::optional<KnownTensor> EvaluateOnHost(const Node& node,
                                          const std::vector<const Tensor*>& inputs);

HostTensor ToHostTensor(DataType type, const Shape& shape, const std::vector<int64_t>& values);

}  // namespace codegen
