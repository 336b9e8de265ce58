#include "plugin/kernel_def.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

#include "capi/boundary/arguments.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/value/element_type.h"
#include "ir/schema.h"

// The type of tensors with elements of `type`.
struct OrtDataType {
  tenon::DataType type;
};

namespace tenon {
namespace {

// The types that `name`, a type parameter or the name of an input or output, has at a node.
std::vector<DataType> TypesAt(const Graph& graph, const Node& node, std::string_view name) {
  std::vector<DataType> types;
  const auto add = [&](std::span<const OpFormal> formals, const std::vector<ValueId>& values) {
    for (size_t i = 0; i < values.size() && !formals.empty(); ++i) {
      const OpFormal& formal = formals[std::min(i, formals.size() - 1)];
      if (formal.type != name && formal.name != name) continue;
      if (values[i] != ValueId::kNone) types.push_back(graph.value(values[i]).type.element_type);
    }
  };
  if (node.schema == nullptr) return types;
  add(node.schema->inputs, node.inputs);
  add(node.schema->outputs, node.outputs);
  return types;
}

}  // namespace
}  // namespace tenon

bool OrtKernelDef::IsFor(const tenon::Graph& graph, const tenon::Node& node) const {
  if (node.op_type != op_type || node.domain != domain) return false;
  const int since = node.schema != nullptr ? node.schema->since : node.opset;
  if (since < first_version || since > last_version) return false;
  return std::all_of(types.begin(), types.end(), [&](const auto& constraint) {
    const auto at = tenon::TypesAt(graph, node, constraint.first);
    return std::all_of(at.begin(), at.end(), [&](tenon::DataType type) {
      return type == tenon::DataType::kUndefined || constraint.second.Contains(type);
    });
  });
}

namespace tenon::capi {
namespace {

// The domain in the form of nodes.
std::string DomainOf(const char* domain) {
  return std::string_view(domain) == "ai.onnx" ? "" : domain;
}

template <class Body>
OrtStatus* Change(OrtKernelDefBuilder* builder, Body&& body) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(builder);
    return body(builder->def);
  });
}

Status SetMemType(std::map<size_t, OrtMemType>& by_index, size_t index, OrtMemType type) {
  const int number = type;
  if (number < OrtMemTypeCPUInput || number > OrtMemTypeDefault) {
    return InvalidArgument("there is no memory type {}", number);
  }
  by_index[index] = type;
  return OkStatus();
}

OrtMemType MemTypeAt(const std::map<size_t, OrtMemType>& by_index, size_t index) {
  const auto found = by_index.find(index);
  return found == by_index.end() ? OrtMemTypeDefault : found->second;
}

Status AddAliases(std::vector<OrtKernelDef::Alias>& aliases, const int* inputs, const int* outputs,
                  size_t count) {
  TENON_RETURN_IF_NULL(inputs);
  TENON_RETURN_IF_NULL(outputs);
  if (count == 0) return InvalidArgument("the list of aliases must not be empty");
  for (size_t i = 0; i < count; ++i) {
    if (inputs[i] < 0 || outputs[i] < 0) {
      return InvalidArgument("alias {}: input {} and output {} must not be negative", i, inputs[i],
                             outputs[i]);
    }
    aliases.push_back({inputs[i], outputs[i]});
  }
  return OkStatus();
}

}  // namespace

OrtStatus* CreateKernelDefBuilder(OrtKernelDefBuilder** kernel_def_builder_out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(kernel_def_builder_out);
    *kernel_def_builder_out = new OrtKernelDefBuilder();
    return OkStatus();
  });
}

void ReleaseKernelDefBuilder(OrtKernelDefBuilder* input) noexcept { delete input; }

OrtStatus* KernelDefBuilder_SetOperatorType(OrtKernelDefBuilder* kernel_def_builder,
                                            const char* op_type) noexcept {
  return Change(kernel_def_builder, [&](OrtKernelDef& def) -> Status {
    TENON_RETURN_IF_NULL(op_type);
    def.op_type = op_type;
    return OkStatus();
  });
}

OrtStatus* KernelDefBuilder_SetDomain(OrtKernelDefBuilder* kernel_def_builder,
                                      const char* domain) noexcept {
  return Change(kernel_def_builder, [&](OrtKernelDef& def) -> Status {
    TENON_RETURN_IF_NULL(domain);
    def.domain = DomainOf(domain);
    return OkStatus();
  });
}

OrtStatus* KernelDefBuilder_SetSinceVersion(OrtKernelDefBuilder* kernel_def_builder,
                                            int since_version_start,
                                            int since_version_end) noexcept {
  return Change(kernel_def_builder, [&](OrtKernelDef& def) -> Status {
    if (since_version_start < 1 || since_version_end < since_version_start) {
      return InvalidArgument("versions {} to {}: expected 1 <= first <= last", since_version_start,
                             since_version_end);
    }
    def.first_version = since_version_start;
    def.last_version = since_version_end;
    return OkStatus();
  });
}

OrtStatus* KernelDefBuilder_SetExecutionProvider(OrtKernelDefBuilder* kernel_def_builder,
                                                 const char* ep_name) noexcept {
  return Change(kernel_def_builder, [&](OrtKernelDef& def) -> Status {
    TENON_RETURN_IF_NULL(ep_name);
    def.provider = ep_name;
    return OkStatus();
  });
}

OrtStatus* KernelDefBuilder_SetInputMemType(OrtKernelDefBuilder* kernel_def_builder,
                                            size_t input_index, OrtMemType mem_type) noexcept {
  return Change(kernel_def_builder, [&](OrtKernelDef& def) {
    return SetMemType(def.input_memory, input_index, mem_type);
  });
}

OrtStatus* KernelDefBuilder_SetOutputMemType(OrtKernelDefBuilder* kernel_def_builder,
                                             size_t output_index, OrtMemType mem_type) noexcept {
  return Change(kernel_def_builder, [&](OrtKernelDef& def) {
    return SetMemType(def.output_memory, output_index, mem_type);
  });
}

OrtStatus* KernelDefBuilder_AddTypeConstraint(OrtKernelDefBuilder* kernel_def_builder,
                                              const char* arg_name, const OrtDataType* const* types,
                                              size_t num_types) noexcept {
  return Change(kernel_def_builder, [&](OrtKernelDef& def) -> Status {
    TENON_RETURN_IF_NULL(arg_name);
    TENON_RETURN_IF_NULL(types);
    if (num_types == 0) return InvalidArgument("type constraint '{}' needs a type", arg_name);
    TypeSet& allowed = def.types[arg_name];
    for (size_t i = 0; i < num_types; ++i) {
      if (types[i] == nullptr) return InvalidArgument("types[{}] must not be null", i);
      allowed = allowed | TypeSet{types[i]->type};
    }
    return OkStatus();
  });
}

OrtStatus* KernelDefBuilder_AddInputOutputAliases(OrtKernelDefBuilder* kernel_def_builder,
                                                  const int* input_indices,
                                                  const int* output_indices,
                                                  size_t num_io_indices) noexcept {
  return Change(kernel_def_builder, [&](OrtKernelDef& def) {
    return AddAliases(def.aliases, input_indices, output_indices, num_io_indices);
  });
}

OrtStatus* KernelDefBuilder_AddInputOutputMutableAliases(OrtKernelDefBuilder* kernel_def_builder,
                                                         const int* input_indices,
                                                         const int* output_indices,
                                                         size_t num_io_indices) noexcept {
  return Change(kernel_def_builder, [&](OrtKernelDef& def) {
    return AddAliases(def.mutable_aliases, input_indices, output_indices, num_io_indices);
  });
}

OrtStatus* KernelDefBuilder_Build(OrtKernelDefBuilder* kernel_def_builder,
                                  OrtKernelDef** kernel_def_out) noexcept {
  return Change(kernel_def_builder, [&](const OrtKernelDef& def) -> Status {
    TENON_RETURN_IF_NULL(kernel_def_out);
    if (def.op_type.empty()) return InvalidArgument("the kernel has no operator type");
    if (def.provider.empty()) return InvalidArgument("the kernel has no execution provider");
    if (def.first_version < 1) return InvalidArgument("the kernel has no versions");
    *kernel_def_out = new OrtKernelDef(def);
    return OkStatus();
  });
}

void ReleaseKernelDef(OrtKernelDef* input) noexcept { delete input; }

// These cannot report a null pointer.
const char* KernelDef_GetOperatorType(const OrtKernelDef* kernel_def) noexcept {
  return kernel_def == nullptr ? "" : kernel_def->op_type.c_str();
}
const char* KernelDef_GetDomain(const OrtKernelDef* kernel_def) noexcept {
  return kernel_def == nullptr ? "" : kernel_def->domain.c_str();
}
const char* KernelDef_GetExecutionProvider(const OrtKernelDef* kernel_def) noexcept {
  return kernel_def == nullptr ? "" : kernel_def->provider.c_str();
}

OrtStatus* KernelDef_GetSinceVersion(const OrtKernelDef* kernel_def, int* start_version,
                                     int* end_version) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(kernel_def);
    TENON_RETURN_IF_NULL(start_version);
    TENON_RETURN_IF_NULL(end_version);
    *start_version = kernel_def->first_version;
    *end_version = kernel_def->last_version;
    return OkStatus();
  });
}

OrtStatus* KernelDef_GetInputMemType(const OrtKernelDef* kernel_def, size_t input_index,
                                     OrtMemType* mem_type) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(kernel_def);
    TENON_RETURN_IF_NULL(mem_type);
    *mem_type = MemTypeAt(kernel_def->input_memory, input_index);
    return OkStatus();
  });
}

OrtStatus* KernelDef_GetOutputMemType(const OrtKernelDef* kernel_def, size_t output_index,
                                      OrtMemType* mem_type) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(kernel_def);
    TENON_RETURN_IF_NULL(mem_type);
    *mem_type = MemTypeAt(kernel_def->output_memory, output_index);
    return OkStatus();
  });
}

OrtStatus* GetTensorDataType(ONNXTensorElementDataType elem_type,
                             const OrtDataType** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(out);
    TENON_ASSIGN_OR_RETURN(const DataType type, FromElementType(elem_type));
    // One for every number that an element type can have.
    static const auto* const types = [] {
      constexpr int kMost = 64;
      auto* const all = new std::array<OrtDataType, kMost>();
      for (int i = 0; i < kMost; ++i)
        (*all)[static_cast<size_t>(i)].type = static_cast<DataType>(i);
      return all;
    }();
    *out = &types->at(static_cast<size_t>(type));
    return OkStatus();
  });
}

}  // namespace tenon::capi
