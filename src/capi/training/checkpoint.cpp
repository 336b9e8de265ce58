// OrtTrainingApi: checkpoints, their properties and parameters.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "capi/boundary/arguments.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/training/checkpoint_handle.h"
#include "capi/value/allocator.h"
#include "capi/value/tensor_arguments.h"
#include "ir/type.h"

namespace tenon::capi {
namespace {

Status MakeState(Result<Checkpoint> read, OrtCheckpointState** out) {
  TENON_ASSIGN_OR_RETURN(Checkpoint checkpoint, std::move(read));
  *out = new OrtCheckpointState{std::move(checkpoint)};
  return OkStatus();
}

Result<const Tensor*> FindParameter(const Checkpoint& checkpoint, const char* name) {
  const auto found = checkpoint.parameters.find(std::string_view(name));
  if (found == checkpoint.parameters.end()) {
    return InvalidArgument("the checkpoint has no parameter '{}'", name);
  }
  if (checkpoint.is_nominal) {
    return InvalidArgument("parameter '{}' has no value yet: the checkpoint is nominal", name);
  }
  return &found->second.value;
}

Result<Property> PropertyFrom(OrtPropertyType type, const void* value) {
  switch (type) {
    case OrtIntProperty: {
      int64_t number = 0;
      std::memcpy(&number, value, sizeof(number));
      return number;
    }
    case OrtFloatProperty: {
      float number = 0;
      std::memcpy(&number, value, sizeof(number));
      return number;
    }
    case OrtStringProperty:
      return std::string(static_cast<const char*>(value));
  }
  return InvalidArgument("property_type {} is unknown", static_cast<int>(type));
}

// A copy for the client.
template <class T>
Result<void*> CopyNumber(OrtAllocator* allocator, T number) {
  TENON_ASSIGN_OR_RETURN(void* const copy, AllocateFrom(allocator, sizeof(number)));
  std::memcpy(copy, &number, sizeof(number));
  return copy;
}

}  // namespace

OrtStatus* LoadCheckpoint(const ORTCHAR_T* checkpoint_path,
                          OrtCheckpointState** checkpoint_state) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(checkpoint_path);
    TENON_RETURN_IF_NULL(checkpoint_state);
    return MakeState(ReadCheckpoint(std::string(checkpoint_path)), checkpoint_state);
  });
}

OrtStatus* LoadCheckpointFromBuffer(const void* checkpoint_buffer, const size_t num_bytes,
                                    OrtCheckpointState** checkpoint_state) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(checkpoint_buffer);
    TENON_RETURN_IF_NULL(checkpoint_state);
    const auto* const bytes = static_cast<const std::byte*>(checkpoint_buffer);
    return MakeState(ReadCheckpoint(std::span(bytes, num_bytes)), checkpoint_state);
  });
}

OrtStatus* SaveCheckpoint(OrtCheckpointState* checkpoint_state, const ORTCHAR_T* checkpoint_path,
                          const bool include_optimizer_state) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(checkpoint_state);
    TENON_RETURN_IF_NULL(checkpoint_path);
    return WriteCheckpoint(checkpoint_state->checkpoint, checkpoint_path, include_optimizer_state);
  });
}

OrtStatus* AddProperty(OrtCheckpointState* checkpoint_state, const char* property_name,
                       enum OrtPropertyType property_type, void* property_value) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(checkpoint_state);
    TENON_RETURN_IF_NULL(property_name);
    TENON_RETURN_IF_NULL(property_value);
    TENON_ASSIGN_OR_RETURN(Property property, PropertyFrom(property_type, property_value));
    checkpoint_state->checkpoint.properties.insert_or_assign(property_name, std::move(property));
    return OkStatus();
  });
}

OrtStatus* GetProperty(const OrtCheckpointState* checkpoint_state, const char* property_name,
                       OrtAllocator* allocator, enum OrtPropertyType* property_type,
                       void** property_value) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(checkpoint_state);
    TENON_RETURN_IF_NULL(property_name);
    TENON_RETURN_IF_NULL(allocator);
    TENON_RETURN_IF_NULL(property_type);
    TENON_RETURN_IF_NULL(property_value);
    const auto& properties = checkpoint_state->checkpoint.properties;
    const auto found = properties.find(std::string_view(property_name));
    if (found == properties.end()) {
      return InvalidArgument("the checkpoint has no property '{}'", property_name);
    }
    const Property& property = found->second;
    if (const auto* const text = std::get_if<std::string>(&property)) {
      TENON_ASSIGN_OR_RETURN(*property_value, CopyString(allocator, *text));
      *property_type = OrtStringProperty;
    } else if (const auto* const integer = std::get_if<int64_t>(&property)) {
      TENON_ASSIGN_OR_RETURN(*property_value, CopyNumber(allocator, *integer));
      *property_type = OrtIntProperty;
    } else {
      TENON_ASSIGN_OR_RETURN(*property_value, CopyNumber(allocator, std::get<float>(property)));
      *property_type = OrtFloatProperty;
    }
    return OkStatus();
  });
}

OrtStatus* GetParameterTypeAndShape(const OrtCheckpointState* checkpoint_state,
                                    const char* parameter_name,
                                    OrtTensorTypeAndShapeInfo** parameter_type_and_shape) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(checkpoint_state);
    TENON_RETURN_IF_NULL(parameter_name);
    TENON_RETURN_IF_NULL(parameter_type_and_shape);
    TENON_ASSIGN_OR_RETURN(const Tensor* const tensor,
                           FindParameter(checkpoint_state->checkpoint, parameter_name));
    *parameter_type_and_shape = NewHandle<OrtTensorTypeAndShapeInfo>(ValueType::Of(Value(*tensor)));
    return OkStatus();
  });
}

OrtStatus* UpdateParameter(OrtCheckpointState* checkpoint_state, const char* parameter_name,
                           OrtValue* parameter) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(checkpoint_state);
    TENON_RETURN_IF_NULL(parameter_name);
    TENON_RETURN_IF_NULL(parameter);
    TENON_ASSIGN_OR_RETURN(const Tensor* const found,
                           FindParameter(checkpoint_state->checkpoint, parameter_name));
    TENON_ASSIGN_OR_RETURN(const Tensor* const given, TensorOf(parameter));
    Tensor shared = *found;  // the session's feeds share the memory, which therefore stays
    Status status = CopyElements(*given, shared);
    return status.ok() ? status
                       : std::move(status).WithContext(Format("parameter '{}'", parameter_name));
  });
}

OrtStatus* GetParameter(const OrtCheckpointState* checkpoint_state, const char* parameter_name,
                        OrtAllocator* allocator, OrtValue** parameter) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(checkpoint_state);
    TENON_RETURN_IF_NULL(parameter_name);
    TENON_RETURN_IF_NULL(allocator);
    TENON_RETURN_IF_NULL(parameter);
    TENON_ASSIGN_OR_RETURN(const Tensor* const found,
                           FindParameter(checkpoint_state->checkpoint, parameter_name));
    TENON_ASSIGN_OR_RETURN(Tensor copy, CopyTensor(*found, allocator));
    *parameter = NewHandle<OrtValue>(std::move(copy));
    return OkStatus();
  });
}

void ReleaseCheckpointState(OrtCheckpointState* input) noexcept { delete input; }

}  // namespace tenon::capi
