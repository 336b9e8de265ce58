// OrtOpSchema: information about operators for plugins.
#include <memory>
#include <string>
#include <vector>

#include "capi/boundary/arguments.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/options/session_options.h"
#include "ir/schema.h"

// A type parameter, and where it is used.
struct OrtOpSchemaTypeConstraint {
  std::string name;
  std::vector<std::string> types;
  std::vector<const char*> type_texts;
  std::vector<size_t> inputs, outputs;
};

struct OrtOpSchema {
  const tenon::OpSchema* schema;
  std::vector<std::string> input_names, output_names;
  std::vector<OrtOpSchemaTypeConstraint> constraints;

  const OrtOpSchemaTypeConstraint* Find(std::string_view name) const {
    for (const OrtOpSchemaTypeConstraint& constraint : constraints) {
      if (constraint.name == name) return &constraint;
    }
    return nullptr;
  }
};

namespace tenon::capi {
namespace {

// Every type of the constraint, as "tensor(float)".
std::vector<std::string> TypesOf(const OpTypeConstraint& constraint) {
  struct Form {
    TypeSet elements;
    const char* prefix;
    const char* suffix;
  };
  const Form forms[] = {{constraint.tensors, "tensor(", ")"},
                        {constraint.sequences, "seq(tensor(", "))"},
                        {constraint.optional_tensors, "optional(tensor(", "))"},
                        {constraint.optional_sequences, "optional(seq(tensor(", ")))"},
                        {constraint.sparse_tensors, "sparse_tensor(", ")"}};
  std::vector<std::string> types;
  for (const Form& form : forms) {
    for (int i = 1; i < kDataTypeCount; ++i) {
      const auto type = static_cast<DataType>(i);
      if (!form.elements.Contains(type)) continue;
      types.push_back(Format("{}{}{}", form.prefix, DataTypeName(type), form.suffix));
    }
  }
  for (const std::string_view other : constraint.others) types.emplace_back(other);
  return types;
}

std::vector<size_t> UsesOf(std::string_view constraint, std::span<const OpFormal> formals) {
  std::vector<size_t> uses;
  for (size_t i = 0; i < formals.size(); ++i) {
    if (formals[i].type == constraint) uses.push_back(i);
  }
  return uses;
}

std::unique_ptr<OrtOpSchema> Describe(const OpSchema& schema) {
  auto described = std::make_unique<OrtOpSchema>();
  described->schema = &schema;
  for (const OpFormal& formal : schema.inputs) described->input_names.emplace_back(formal.name);
  for (const OpFormal& formal : schema.outputs) described->output_names.emplace_back(formal.name);
  described->constraints.reserve(schema.constraints.size());
  for (const OpTypeConstraint& constraint : schema.constraints) {
    OrtOpSchemaTypeConstraint& told = described->constraints.emplace_back();
    told.name = constraint.name;
    told.types = TypesOf(constraint);
    for (const std::string& type : told.types) told.type_texts.push_back(type.c_str());
    told.inputs = UsesOf(constraint.name, schema.inputs);
    told.outputs = UsesOf(constraint.name, schema.outputs);
  }
  return described;
}

// Answers a query about a schema or a constraint.
template <class Asked, class Out, class Body>
OrtStatus* Answer(const Asked* asked, Out* out, Body&& body) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(asked);
    TENON_RETURN_IF_NULL(out);
    return body();
  });
}

template <class T>
OrtStatus* AnswerWithElement(const OrtOpSchema* schema, size_t index, const char* what, T* out,
                             size_t (*count)(const OrtOpSchema&),
                             T (*element)(const OrtOpSchema&, size_t)) noexcept {
  return Answer(schema, out, [&]() -> Status {
    TENON_RETURN_IF_ERROR(CheckIndex(index, count(*schema), what));
    *out = element(*schema, index);
    return OkStatus();
  });
}

size_t CountInputs(const OrtOpSchema& schema) { return schema.input_names.size(); }
size_t CountOutputs(const OrtOpSchema& schema) { return schema.output_names.size(); }

}  // namespace

OrtStatus* GetOpSchema(const char* name, int max_inclusive_version, const char* domain,
                       OrtOpSchema** out_schema) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(name);
    TENON_RETURN_IF_NULL(domain);
    TENON_RETURN_IF_NULL(out_schema);
    const std::string_view plain = domain == std::string_view("ai.onnx") ? "" : domain;
    const OpSchema* const schema = FindSchema(plain, name, max_inclusive_version);
    *out_schema = schema == nullptr ? nullptr : Describe(*schema).release();
    return OkStatus();
  });
}

void ReleaseOpSchema(OrtOpSchema* input) noexcept { delete input; }

OrtStatus* OpSchema_GetSinceVersion(const OrtOpSchema* schema, int* out) noexcept {
  return Answer(schema, out, [&] { return *out = schema->schema->since, OkStatus(); });
}

OrtStatus* OpSchema_GetNumInputs(const OrtOpSchema* schema, size_t* out) noexcept {
  return Answer(schema, out, [&] { return *out = CountInputs(*schema), OkStatus(); });
}

OrtStatus* OpSchema_GetNumOutputs(const OrtOpSchema* schema, size_t* out) noexcept {
  return Answer(schema, out, [&] { return *out = CountOutputs(*schema), OkStatus(); });
}

OrtStatus* OpSchema_GetInputName(const OrtOpSchema* schema, size_t index,
                                 const char** out) noexcept {
  return AnswerWithElement<const char*>(
      schema, index, "inputs", out, CountInputs,
      [](const OrtOpSchema& s, size_t i) { return s.input_names[i].c_str(); });
}

OrtStatus* OpSchema_GetOutputName(const OrtOpSchema* schema, size_t index,
                                  const char** out) noexcept {
  return AnswerWithElement<const char*>(
      schema, index, "outputs", out, CountOutputs,
      [](const OrtOpSchema& s, size_t i) { return s.output_names[i].c_str(); });
}

OrtStatus* OpSchema_GetInputTypeConstraint(const OrtOpSchema* schema, size_t index,
                                           const OrtOpSchemaTypeConstraint** out) noexcept {
  return AnswerWithElement<const OrtOpSchemaTypeConstraint*>(
      schema, index, "inputs", out, CountInputs,
      [](const OrtOpSchema& s, size_t i) { return s.Find(s.schema->inputs[i].type); });
}

OrtStatus* OpSchema_GetOutputTypeConstraint(const OrtOpSchema* schema, size_t index,
                                            const OrtOpSchemaTypeConstraint** out) noexcept {
  return AnswerWithElement<const OrtOpSchemaTypeConstraint*>(
      schema, index, "outputs", out, CountOutputs,
      [](const OrtOpSchema& s, size_t i) { return s.Find(s.schema->outputs[i].type); });
}

OrtStatus* OpSchema_GetTypeConstraintCount(const OrtOpSchema* schema, size_t* out) noexcept {
  return Answer(schema, out, [&] { return *out = schema->constraints.size(), OkStatus(); });
}

OrtStatus* OpSchema_GetTypeConstraint(const OrtOpSchema* schema, size_t index,
                                      const OrtOpSchemaTypeConstraint** out) noexcept {
  return AnswerWithElement<const OrtOpSchemaTypeConstraint*>(
      schema, index, "type constraints", out,
      [](const OrtOpSchema& s) { return s.constraints.size(); },
      [](const OrtOpSchema& s, size_t i) { return &s.constraints[i]; });
}

OrtStatus* OpSchemaTypeConstraint_GetTypeParamName(const OrtOpSchemaTypeConstraint* type_constraint,
                                                   const char** out) noexcept {
  return Answer(type_constraint, out,
                [&] { return *out = type_constraint->name.c_str(), OkStatus(); });
}

OrtStatus* OpSchemaTypeConstraint_GetAllowedTypes(const OrtOpSchemaTypeConstraint* type_constraint,
                                                  const char* const** out_types,
                                                  size_t* num_types) noexcept {
  return Answer(type_constraint, out_types, [&]() -> Status {
    TENON_RETURN_IF_NULL(num_types);
    *out_types = type_constraint->type_texts.data();
    *num_types = type_constraint->type_texts.size();
    return OkStatus();
  });
}

OrtStatus* OpSchemaTypeConstraint_GetInputIndices(const OrtOpSchemaTypeConstraint* type_constraint,
                                                  const size_t** out_indices,
                                                  size_t* count) noexcept {
  return Answer(type_constraint, out_indices, [&]() -> Status {
    TENON_RETURN_IF_NULL(count);
    *out_indices = type_constraint->inputs.data();
    *count = type_constraint->inputs.size();
    return OkStatus();
  });
}

OrtStatus* OpSchemaTypeConstraint_GetOutputIndices(const OrtOpSchemaTypeConstraint* type_constraint,
                                                   const size_t** out_indices,
                                                   size_t* count) noexcept {
  return Answer(type_constraint, out_indices, [&]() -> Status {
    TENON_RETURN_IF_NULL(count);
    *out_indices = type_constraint->outputs.data();
    *count = type_constraint->outputs.size();
    return OkStatus();
  });
}

OrtStatus* SessionOptionsGetWeightlessSourceModelBuffer(const OrtSessionOptions* session_options,
                                                        const void** source_model_data,
                                                        size_t* source_model_data_length) noexcept {
  return Answer(session_options, source_model_data, [&]() -> Status {
    TENON_RETURN_IF_NULL(source_model_data_length);
    *source_model_data = session_options->weightless_source.data();
    *source_model_data_length = session_options->weightless_source.size();
    return OkStatus();
  });
}

}  // namespace tenon::capi
