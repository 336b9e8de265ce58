// The element-wise functions of one input, as data. unary_functions.inc has one entry for each. All
// else is made from these entries: here names, parameters and traits; in kernels/elementwise the
// code on float and double; in ops the operators and where they may be fused; in ir which operators
// take images in any layout. They are in base because ir and kernels do not include each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace tenon {

enum class UnaryOp : uint8_t {
#define UNARY_FUNCTION(name, ...) k##name,
#include "base/unary_functions.inc"
};

// A float attribute of the operator, and its value where the attribute is left out.
struct UnaryParameter {
  std::string_view name;  // "" where the function has no such parameter
  float fallback = 0;
};

enum UnaryTraits : uint8_t {
  kNoTraits = 0,
  kCheap = 1,      // costs little more than to read and to write an element
  kFinite = 2,     // has neither poles nor gaps, and grows no faster than a product
  kFused = 4 | 2,  // an activation, which may be the last step of a product or a convolution
  kCell = 8,       // an activation of LSTM, GRU and RNN
};

struct UnaryInfo {
  std::string_view name;
  bool is_operator;  // `name` is an operator of ONNX
  UnaryParameter parameters[2];
  unsigned traits;

  constexpr bool Has(UnaryTraits trait) const { return (traits & trait) == trait; }
  constexpr size_t parameter_count() const {
    return parameters[0].name.empty() ? 0 : parameters[1].name.empty() ? 1 : 2;
  }
};

// The words of the table.
namespace unary_table {

struct Parameters {
  UnaryParameter first = {}, second = {};
};
constexpr Parameters None() { return {}; }
constexpr Parameters One(std::string_view name, float fallback) { return {{name, fallback}}; }
constexpr Parameters Two(std::string_view first, float first_fallback, std::string_view second,
                         float second_fallback) {
  return {{first, first_fallback}, {second, second_fallback}};
}
constexpr float kLowest = std::numeric_limits<float>::lowest();
constexpr float kHighest = std::numeric_limits<float>::max();

constexpr UnaryInfo Entry(std::string_view name, bool is_operator, const Parameters& parameters,
                          unsigned traits) {
  return {name, is_operator, {parameters.first, parameters.second}, traits};
}

inline constexpr UnaryInfo kEntries[] = {
#define UNARY_FUNCTION(name, parameters, traits, ...) Entry(#name, false, parameters, traits),
#define UNARY_OPERATOR(name, parameters, traits, ...) Entry(#name, true, parameters, traits),
#include "base/unary_functions.inc"
};

}  // namespace unary_table

// In the order of UnaryOp.
inline constexpr const auto& kUnaryFunctions = unary_table::kEntries;
inline constexpr size_t kUnaryOpCount = std::size(kUnaryFunctions);

constexpr const UnaryInfo& InfoOf(UnaryOp op) { return kUnaryFunctions[static_cast<size_t>(op)]; }

// An operator of com.microsoft that is one of the functions.
struct UnaryAlias {
  std::string_view op_type;
  UnaryOp op;
};
inline constexpr UnaryAlias kUnaryAliases[] = {
#define UNARY_ALIAS(op_type, name) {#op_type, UnaryOp::k##name},
#include "base/unary_functions.inc"
};

// The function with this name.
std::optional<UnaryOp> FindUnaryOp(std::string_view name);

// What an operator computes of its first input, element by element, if it is one of the functions.
// Gelu of ONNX is kGelu here; its attribute may choose kGeluTanh.
std::optional<UnaryOp> FindUnaryOperator(std::string_view domain, std::string_view op_type);

}  // namespace tenon
