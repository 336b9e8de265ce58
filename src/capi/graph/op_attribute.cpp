// OrtOpAttr: an attribute of a node.
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "capi/boundary/arguments.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/value/tensor_arguments.h"
#include "ir/graph.h"

namespace tenon::capi {
namespace {

template <class T>
std::vector<T> ListAt(const void* data, size_t count) {
  const T* const elements = static_cast<const T*>(data);
  return {elements, elements + count};
}

Result<Attribute::Held> HeldOf(int type, const void* data, size_t count) {
  switch (type) {
    case ORT_OP_ATTR_INT:
      return Attribute::Held(*static_cast<const int64_t*>(data));
    case ORT_OP_ATTR_INTS:
      return Attribute::Held(ListAt<int64_t>(data, count));
    case ORT_OP_ATTR_FLOAT:
      return Attribute::Held(*static_cast<const float*>(data));
    case ORT_OP_ATTR_FLOATS:
      return Attribute::Held(ListAt<float>(data, count));
    case ORT_OP_ATTR_STRING:
      return Attribute::Held(std::string(static_cast<const char*>(data), count));
    case ORT_OP_ATTR_STRINGS: {
      std::vector<std::string> strings;
      for (const char* const text : ListAt<const char*>(data, count)) {
        if (text == nullptr) return InvalidArgument("strings of an attribute must not be null");
        strings.emplace_back(text);
      }
      return Attribute::Held(std::move(strings));
    }
    case ORT_OP_ATTR_TENSOR: {
      TENON_ASSIGN_OR_RETURN(const Tensor* const tensor,
                             TensorOf(static_cast<const OrtValue*>(data)));
      return Attribute::Held(*tensor);
    }
    default:
      return InvalidArgument("an attribute of type {} cannot be made", type);
  }
}

int TypeOf(const Attribute& attribute) {
  switch (attribute.type()) {
    case AttributeType::kInt:
      return ORT_OP_ATTR_INT;
    case AttributeType::kInts:
      return ORT_OP_ATTR_INTS;
    case AttributeType::kFloat:
      return ORT_OP_ATTR_FLOAT;
    case AttributeType::kFloats:
      return ORT_OP_ATTR_FLOATS;
    case AttributeType::kString:
      return ORT_OP_ATTR_STRING;
    case AttributeType::kStrings:
      return ORT_OP_ATTR_STRINGS;
    case AttributeType::kGraph:
      return ORT_OP_ATTR_GRAPH;
    case AttributeType::kTensor:
      return ORT_OP_ATTR_TENSOR;
    default:
      return ORT_OP_ATTR_UNDEFINED;
  }
}

// The attribute's bytes. The strings of a list end in null characters.
Result<std::string> BytesOf(const Attribute& attribute) {
  const auto raw = [](const void* data, size_t bytes) {
    return std::string(static_cast<const char*>(data), bytes);
  };
  if (const auto* held = attribute.get<int64_t>()) return raw(held, sizeof(*held));
  if (const auto* held = attribute.get<float>()) return raw(held, sizeof(*held));
  if (const auto* held = attribute.get<std::vector<int64_t>>()) {
    return raw(held->data(), held->size() * sizeof(int64_t));
  }
  if (const auto* held = attribute.get<std::vector<float>>()) {
    return raw(held->data(), held->size() * sizeof(float));
  }
  if (const auto* held = attribute.get<std::string>()) {
    return *held;
  }
  if (const auto* held = attribute.get<std::vector<std::string>>()) {
    std::string bytes;
    for (const std::string& text : *held) bytes.append(text.c_str(), text.size() + 1);
    return bytes;
  }
  return InvalidArgument("an attribute of type {} cannot be read as bytes",
                         AttributeTypeName(attribute.type()));
}

}  // namespace

OrtStatus* CreateOpAttr(const char* name, const void* data, int len, OrtOpAttrType type,
                        OrtOpAttr** op_attr) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(name);
    TENON_RETURN_IF_NULL(op_attr);
    if (len < 0) return InvalidArgument("len is at least 0, got {}", len);
    const int kind = type;
    const bool is_single =
        kind == ORT_OP_ATTR_INT || kind == ORT_OP_ATTR_FLOAT || kind == ORT_OP_ATTR_TENSOR;
    if (data == nullptr && (len != 0 || is_single)) {
      return InvalidArgument("data must not be null");
    }
    TENON_ASSIGN_OR_RETURN(Attribute::Held held, HeldOf(kind, data, static_cast<size_t>(len)));
    *op_attr = NewHandle<OrtOpAttr>(Attribute(name, std::move(held)));
    return OkStatus();
  });
}

void ReleaseOpAttr(OrtOpAttr* input) noexcept { delete Unwrap(input); }

OrtStatus* ReadOpAttr(const OrtOpAttr* op_attr, OrtOpAttrType type, void* data, size_t len,
                      size_t* out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(op_attr);
    TENON_RETURN_IF_NULL(out);
    const Attribute& attribute = *Unwrap(op_attr);
    if (type != TypeOf(attribute)) {
      return InvalidArgument("attribute '{}' is of type {}, not {}", attribute.name,
                             TypeOf(attribute), static_cast<int>(type));
    }
    TENON_ASSIGN_OR_RETURN(const std::string bytes, BytesOf(attribute));
    *out = bytes.size();
    if (len < bytes.size()) {
      return InvalidArgument("attribute '{}' needs {} bytes, got {}", attribute.name, bytes.size(),
                             len);
    }
    if (bytes.empty()) return OkStatus();
    TENON_RETURN_IF_NULL(data);
    std::memcpy(data, bytes.data(), bytes.size());
    return OkStatus();
  });
}

OrtStatus* OpAttr_GetType(const OrtOpAttr* attribute, OrtOpAttrType* type) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(attribute);
    TENON_RETURN_IF_NULL(type);
    *type = static_cast<OrtOpAttrType>(TypeOf(*Unwrap(attribute)));
    return OkStatus();
  });
}

OrtStatus* OpAttr_GetName(const OrtOpAttr* attribute, const char** name) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(attribute);
    TENON_RETURN_IF_NULL(name);
    *name = Unwrap(attribute)->name.c_str();
    return OkStatus();
  });
}

OrtStatus* OpAttr_GetTensorAttributeAsOrtValue(const OrtOpAttr* attribute,
                                               OrtValue** attr_tensor) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(attribute);
    TENON_RETURN_IF_NULL(attr_tensor);
    const auto* const tensor = Unwrap(attribute)->get<Tensor>();
    if (tensor == nullptr) {
      return InvalidArgument("attribute '{}' is no tensor", Unwrap(attribute)->name);
    }
    *attr_tensor = NewHandle<OrtValue>(*tensor);
    return OkStatus();
  });
}

}  // namespace tenon::capi
