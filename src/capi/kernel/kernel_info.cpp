#include "capi/kernel/kernel_info.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "capi/boundary/arguments.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/key_value_pairs.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/value/allocator.h"
#include "capi/value/tensor_arguments.h"
#include "ir/graph.h"

namespace tenon::capi {
namespace {

// Runs `body` on the node of an info.
template <class Body>
OrtStatus* OfNode(const OrtKernelInfo* info, const void* out, Body&& body) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(info);
    TENON_RETURN_IF_NULL(out);
    return body(*info->node);
  });
}

// Copies a text into the client's buffer. `*size` is its size, and afterwards the size needed,
// including the null character. With a null `out`, only the size is returned.
Status CopyText(std::string_view text, char* out, size_t* size) {
  const size_t needed = text.size() + 1;
  const size_t room = std::exchange(*size, needed);
  if (out == nullptr) return OkStatus();
  if (room < needed) return InvalidArgument("the text needs {} bytes, got {}", needed, room);
  text.copy(out, text.size());
  out[text.size()] = '\0';
  return OkStatus();
}

template <class T>
Status CopyList(const std::vector<T>& list, T* out, size_t* size) {
  const size_t room = std::exchange(*size, list.size());
  if (out == nullptr) return OkStatus();
  if (room < list.size()) {
    return InvalidArgument("the list has {} elements, got room for {}", list.size(), room);
  }
  std::copy(list.begin(), list.end(), out);
  return OkStatus();
}

template <class T>
Result<const T*> AttributeOf(const NodeDescription& node, const char* name) {
  TENON_RETURN_IF_NULL(name);
  for (const Attribute& attribute : node.attributes) {
    if (attribute.name != name) continue;
    if (const T* const held = attribute.get<T>()) return held;
    const AttributeType expected = Attribute("", Attribute::Held(T())).type();
    return Fail("attribute '{}' is of type {}, not {}", name, AttributeTypeName(attribute.type()),
                AttributeTypeName(expected));
  }
  return Fail("{} has no attribute '{}'", node.op_type, name);
}

template <class T>
OrtStatus* GetNumber(const OrtKernelInfo* info, const char* name, T* out) noexcept {
  return OfNode(info, out, [&](const NodeDescription& node) -> Status {
    TENON_ASSIGN_OR_RETURN(const T* const held, AttributeOf<T>(node, name));
    *out = *held;
    return OkStatus();
  });
}

template <class T>
OrtStatus* GetList(const OrtKernelInfo* info, const char* name, T* out, size_t* size) noexcept {
  return OfNode(info, size, [&](const NodeDescription& node) -> Status {
    TENON_ASSIGN_OR_RETURN(const std::vector<T>* const held,
                           AttributeOf<std::vector<T>>(node, name));
    return CopyList(*held, out, size);
  });
}

using Edges = std::vector<NodeDescription::Edge> NodeDescription::*;

OrtStatus* GetEdgeName(const OrtKernelInfo* info, Edges edges, const char* what, size_t index,
                       char* out, size_t* size) noexcept {
  return OfNode(info, size, [&](const NodeDescription& node) -> Status {
    TENON_RETURN_IF_ERROR(CheckIndex(index, (node.*edges).size(), what));
    return CopyText((node.*edges)[index].name, out, size);
  });
}

OrtStatus* GetEdgeType(const OrtKernelInfo* info, Edges edges, const char* what, size_t index,
                       OrtTypeInfo** type_info) noexcept {
  return OfNode(info, type_info, [&](const NodeDescription& node) -> Status {
    TENON_RETURN_IF_ERROR(CheckIndex(index, (node.*edges).size(), what));
    *type_info = NewHandle<OrtTypeInfo>((node.*edges)[index].type);
    return OkStatus();
  });
}

NodeDescription::Edge EdgeOf(const Graph& graph, ValueId id, const ValueType& type) {
  return {id == ValueId::kNone ? "" : graph.value(id).name, type};
}

}  // namespace

NodeDescription::NodeDescription(const KernelInfo& info, int since, const Logger& session_logger,
                                 const StringMap& session_config)
    : name(info.node().name),
      op_type(info.node().op_type),
      domain(info.node().domain),
      since_version(since),
      logger(session_logger),
      config(session_config) {
  for (const Attribute& attribute : info.node().attributes) {
    attributes.push_back(CloneAttribute(attribute));
  }
  for (size_t i = 0; i < info.input_count(); ++i) {
    inputs.push_back(EdgeOf(info.graph(), info.node().inputs[i], info.InputType(i)));
    const Tensor* const constant = info.Constant(i);
    constants.push_back(constant == nullptr ? Value() : Value(*constant));
  }
  for (size_t i = 0; i < info.output_count(); ++i) {
    outputs.push_back(EdgeOf(info.graph(), info.node().outputs[i], info.OutputType(i)));
  }
}

OrtStatus* KernelInfoGetAttribute_float(const OrtKernelInfo* info, const char* name,
                                        float* out) noexcept {
  return GetNumber(info, name, out);
}

OrtStatus* KernelInfoGetAttribute_int64(const OrtKernelInfo* info, const char* name,
                                        int64_t* out) noexcept {
  return GetNumber(info, name, out);
}

OrtStatus* KernelInfoGetAttribute_string(const OrtKernelInfo* info, const char* name, char* out,
                                         size_t* size) noexcept {
  return OfNode(info, size, [&](const NodeDescription& node) -> Status {
    TENON_ASSIGN_OR_RETURN(const std::string* const held, AttributeOf<std::string>(node, name));
    return CopyText(*held, out, size);
  });
}

OrtStatus* KernelInfoGetAttributeArray_float(const OrtKernelInfo* info, const char* name,
                                             float* out, size_t* size) noexcept {
  return GetList(info, name, out, size);
}

OrtStatus* KernelInfoGetAttributeArray_int64(const OrtKernelInfo* info, const char* name,
                                             int64_t* out, size_t* size) noexcept {
  return GetList(info, name, out, size);
}

OrtStatus* KernelInfoGetAttributeArray_string(const OrtKernelInfo* info, const char* name,
                                              OrtAllocator* allocator, char*** out,
                                              size_t* size) noexcept {
  return OfNode(info, out, [&](const NodeDescription& node) -> Status {
    TENON_RETURN_IF_NULL(allocator);
    TENON_RETURN_IF_NULL(size);
    TENON_ASSIGN_OR_RETURN(const auto* const held,
                           AttributeOf<std::vector<std::string>>(node, name));
    const std::vector<std::string_view> texts(held->begin(), held->end());
    TENON_ASSIGN_OR_RETURN(*out, CopyStrings(allocator, texts));
    *size = texts.size();
    return OkStatus();
  });
}

OrtStatus* KernelInfoGetAttribute_tensor(const OrtKernelInfo* info, const char* name,
                                         OrtAllocator* allocator, OrtValue** out) noexcept {
  return OfNode(info, out, [&](const NodeDescription& node) -> Status {
    TENON_RETURN_IF_NULL(allocator);
    TENON_ASSIGN_OR_RETURN(const Tensor* const held, AttributeOf<Tensor>(node, name));
    TENON_ASSIGN_OR_RETURN(Tensor copy, CopyTensor(*held, allocator));
    *out = NewHandle<OrtValue>(std::move(copy));
    return OkStatus();
  });
}

OrtStatus* KernelInfo_GetInputCount(const OrtKernelInfo* info, size_t* out) noexcept {
  return OfNode(info, out, [&](const NodeDescription& node) -> Status {
    *out = node.inputs.size();
    return OkStatus();
  });
}

OrtStatus* KernelInfo_GetOutputCount(const OrtKernelInfo* info, size_t* out) noexcept {
  return OfNode(info, out, [&](const NodeDescription& node) -> Status {
    *out = node.outputs.size();
    return OkStatus();
  });
}

OrtStatus* KernelInfo_GetInputName(const OrtKernelInfo* info, size_t index, char* out,
                                   size_t* size) noexcept {
  return GetEdgeName(info, &NodeDescription::inputs, "inputs", index, out, size);
}

OrtStatus* KernelInfo_GetOutputName(const OrtKernelInfo* info, size_t index, char* out,
                                    size_t* size) noexcept {
  return GetEdgeName(info, &NodeDescription::outputs, "outputs", index, out, size);
}

OrtStatus* KernelInfo_GetInputTypeInfo(const OrtKernelInfo* info, size_t index,
                                       OrtTypeInfo** type_info) noexcept {
  return GetEdgeType(info, &NodeDescription::inputs, "inputs", index, type_info);
}

OrtStatus* KernelInfo_GetOutputTypeInfo(const OrtKernelInfo* info, size_t index,
                                        OrtTypeInfo** type_info) noexcept {
  return GetEdgeType(info, &NodeDescription::outputs, "outputs", index, type_info);
}

OrtStatus* KernelInfo_GetNodeName(const OrtKernelInfo* info, char* out, size_t* size) noexcept {
  return OfNode(info, size,
                [&](const NodeDescription& node) { return CopyText(node.name, out, size); });
}

OrtStatus* KernelInfo_GetOperatorDomain(const OrtKernelInfo* info, char* out,
                                        size_t* size) noexcept {
  return OfNode(info, size,
                [&](const NodeDescription& node) { return CopyText(node.domain, out, size); });
}

OrtStatus* KernelInfo_GetOperatorType(const OrtKernelInfo* info, char* out, size_t* size) noexcept {
  return OfNode(info, size,
                [&](const NodeDescription& node) { return CopyText(node.op_type, out, size); });
}

OrtStatus* KernelInfo_GetOperatorSinceVersion(const OrtKernelInfo* info,
                                              int* since_version) noexcept {
  return OfNode(info, since_version, [&](const NodeDescription& node) -> Status {
    *since_version = node.since_version;
    return OkStatus();
  });
}

OrtStatus* KernelInfo_GetConfigEntries(const OrtKernelInfo* info, OrtKeyValuePairs** out) noexcept {
  return OfNode(info, out, [&](const NodeDescription& node) -> Status {
    *out = new OrtKeyValuePairs(node.config);
    return OkStatus();
  });
}

OrtStatus* KernelInfo_GetLogger(const OrtKernelInfo* info, const OrtLogger** logger) noexcept {
  return OfNode(info, logger, [&](const NodeDescription& node) -> Status {
    *logger = Wrap<OrtLogger>(&node.logger);
    return OkStatus();
  });
}

OrtStatus* KernelInfoGetConstantInput_tensor(const OrtKernelInfo* info, size_t index,
                                             int* is_constant, const OrtValue** out) noexcept {
  return OfNode(info, out, [&](const NodeDescription& node) -> Status {
    TENON_RETURN_IF_NULL(is_constant);
    TENON_RETURN_IF_ERROR(CheckIndex(index, node.constants.size(), "inputs"));
    const Value& constant = node.constants[index];
    *is_constant = constant.has_value() ? 1 : 0;
    *out = constant.has_value() ? Wrap<OrtValue>(&constant) : nullptr;
    return OkStatus();
  });
}

OrtStatus* KernelInfoGetAllocator(const OrtKernelInfo* info, OrtMemType mem_type,
                                  OrtAllocator** out) noexcept {
  return OfNode(info, out, [&](const NodeDescription&) -> Status {
    const int number = mem_type;
    if (number < OrtMemTypeCPUInput || number > OrtMemTypeDefault) {
      return InvalidArgument("there is no memory type {}", number);
    }
    *out = NewClientAllocator(SharedCpuAllocator());
    return OkStatus();
  });
}

OrtStatus* CopyKernelInfo(const OrtKernelInfo* info, OrtKernelInfo** info_copy) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(info);
    TENON_RETURN_IF_NULL(info_copy);
    *info_copy = new OrtKernelInfo(*info);
    return OkStatus();
  });
}

void ReleaseKernelInfo(OrtKernelInfo* input) noexcept { delete input; }

}  // namespace tenon::capi
