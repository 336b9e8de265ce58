// The operators that the provider has.
#pragma once

#include <span>
#include <string_view>

#include "planner.h"

namespace codegen {

using Lower = Status (*)(Planner& planner, const Node& node);
using Accepts = bool (*)(const Graph& graph, const Node& node);

// Sets of element types, as bits.
constexpr unsigned BitOf(DataType type) { return 1u << static_cast<unsigned>(type); }
inline constexpr unsigned kFloats =
    BitOf(DataType::kFloat) | BitOf(DataType::kFloat16) | BitOf(DataType::kBFloat16);
inline constexpr unsigned kIntegers = BitOf(DataType::kInt64) | BitOf(DataType::kInt32);
inline constexpr unsigned kNumbers = kFloats | kIntegers;
inline constexpr unsigned kAnyType = kNumbers | BitOf(DataType::kBool);

struct Operator {
  std::string_view type;
  Lower lower;
  unsigned types = kAnyType;     // of all inputs and outputs
  unsigned known_inputs = 0;     // bits of inputs whose contents must be known in the plan
  Accepts accepts = nullptr;     // further conditions
  std::string_view domain = "";  // "com.microsoft"
  int since = 1;
};

std::span<const Operator> ElementwiseOperators();
std::span<const Operator> MatrixOperators();
std::span<const Operator> ConvolutionOperators();
std::span<const Operator> PoolingOperators();
std::span<const Operator> ReductionOperators();
std::span<const Operator> NormalizationOperators();
std::span<const Operator> MovementOperators();
std::span<const Operator> GatherOperators();
std::span<const Operator> PadOperators();

// The operators whose kernels are generated: null if there is none of this name.
const Operator* FindGenerated(const Node& node);

}  // namespace codegen
