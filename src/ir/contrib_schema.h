// Short names for the hand-written schemas: com.microsoft's operators, ONNX Runtime's additions to
// the standard's domain, and com.tenon's parts of gradients. A schema is written as
//
//   // FastGelu-1
//   constexpr OpFormal kFastGeluInputs[] = {In("X", "T"), Opt("bias", "T")};
//   constexpr OpFormal kFastGeluOutputs[] = {In("Y", "T")};
//   constexpr OpTypeConstraint kFastGeluTypes[] = {{"T", kFloats}};
//
// and a row of its file's table joins these. Attributes are sorted by name.
#pragma once

#include <climits>

#include "ir/schema.h"

namespace tenon::contrib {

inline constexpr std::string_view kMicrosoft = "com.microsoft";
inline constexpr std::string_view kInternalNhwc = "com.ms.internal.nhwc";
// Of operators that only gradients are made of.
inline constexpr std::string_view kTenon = "com.tenon";

inline constexpr TypeSet kFloatAndHalf = {DataType::kFloat, DataType::kFloat16};
inline constexpr TypeSet kFloatAndHalves = {DataType::kFloat, DataType::kFloat16,
                                            DataType::kBfloat16};
inline constexpr TypeSet kIeeeFloats = {DataType::kFloat, DataType::kFloat16, DataType::kDouble};
inline constexpr TypeSet kBytes = {DataType::kInt8, DataType::kUint8};

// --- Inputs and outputs ---

constexpr OpFormal In(std::string_view name, std::string_view type) { return {name, type}; }
constexpr OpFormal Opt(std::string_view name, std::string_view type) {
  return {.name = name, .type = type, .kind = FormalKind::kOptional};
}
// Any number from `min_arity` on; of one type each or, if not homogeneous, of several.
constexpr OpFormal Many(std::string_view name, std::string_view type, bool homogeneous = true,
                        uint8_t min_arity = 1) {
  return {.name = name,
          .type = type,
          .kind = FormalKind::kVariadic,
          .homogeneous = homogeneous,
          .min_arity = min_arity};
}

// --- Attributes, without a default or with one ---

constexpr OpAttribute Required(std::string_view name, AttributeType type) {
  return {.name = name, .type = type, .required = true};
}
constexpr OpAttribute Int(std::string_view name) {
  return {.name = name, .type = AttributeType::kInt};
}
constexpr OpAttribute Int(std::string_view name, int64_t value) {
  return {.name = name, .type = AttributeType::kInt, .has_default = true, .default_int = value};
}
constexpr OpAttribute Float(std::string_view name) {
  return {.name = name, .type = AttributeType::kFloat};
}
constexpr OpAttribute Float(std::string_view name, float value) {
  return {.name = name, .type = AttributeType::kFloat, .has_default = true, .default_float = value};
}
constexpr OpAttribute Text(std::string_view name) {
  return {.name = name, .type = AttributeType::kString};
}
constexpr OpAttribute Text(std::string_view name, std::string_view value) {
  return {
      .name = name, .type = AttributeType::kString, .has_default = true, .default_string = value};
}
constexpr OpAttribute Ints(std::string_view name) {
  return {.name = name, .type = AttributeType::kInts};
}
constexpr OpAttribute Floats(std::string_view name) {
  return {.name = name, .type = AttributeType::kFloats};
}
constexpr OpAttribute Texts(std::string_view name) {
  return {.name = name, .type = AttributeType::kStrings};
}
constexpr OpAttribute Subgraph(std::string_view name) {
  return {.name = name, .type = AttributeType::kGraph};
}

// --- Rows ---

struct Arity {
  int32_t least = 0, most = 0;
};

// Optional entries at the end may be absent.
constexpr Arity ArityOf(std::span<const OpFormal> formals) {
  Arity arity;
  for (const OpFormal& formal : formals) {
    if (formal.kind == FormalKind::kVariadic) return {arity.most + formal.min_arity, INT32_MAX};
    ++arity.most;
    if (formal.kind == FormalKind::kSingle) arity.least = arity.most;
  }
  return arity;
}

constexpr OpSchema Row(std::string_view name, std::span<const OpFormal> inputs,
                       std::span<const OpFormal> outputs, std::span<const OpAttribute> attributes,
                       std::span<const OpTypeConstraint> constraints) {
  const Arity in = ArityOf(inputs), out = ArityOf(outputs);
  return {.name = name,
          .domain = kMicrosoft,
          .since = 1,
          .min_inputs = in.least,
          .max_inputs = in.most,
          .min_outputs = out.least,
          .max_outputs = out.most,
          .inputs = inputs,
          .outputs = outputs,
          .attributes = attributes,
          .constraints = constraints};
}

constexpr OpSchema NonDeterministic(OpSchema schema) {
  schema.non_deterministic = true;
  return schema;
}

constexpr OpSchema Yielding(OpSchema schema) {
  schema.yields = true;
  return NonDeterministic(schema);
}

constexpr OpSchema InDomain(std::string_view domain, OpSchema schema) {
  schema.domain = domain;
  return schema;
}

}  // namespace tenon::contrib
