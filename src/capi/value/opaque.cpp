// OrtValue of types that only the client knows: bytes under the name of a type.
#include <cstring>
#include <memory>

#include "capi/boundary/arguments.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"

namespace tenon::capi {

OrtStatus* CreateOpaqueValue(const char* domain_name, const char* type_name,
                             const void* data_container, size_t data_container_size,
                             OrtValue** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(domain_name);
    TENON_RETURN_IF_NULL(type_name);
    TENON_RETURN_IF_NULL_ARRAY(data_container, data_container_size);
    TENON_RETURN_IF_NULL(out);
    const auto* const bytes = static_cast<const std::byte*>(data_container);
    *out = NewHandle<OrtValue>(std::make_shared<Opaque>(
        Opaque{domain_name, type_name, {bytes, bytes + data_container_size}}));
    return OkStatus();
  });
}

OrtStatus* GetOpaqueValue(const char* domain_name, const char* type_name, const OrtValue* in,
                          void* data_container, size_t data_container_size) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(domain_name);
    TENON_RETURN_IF_NULL(type_name);
    TENON_RETURN_IF_NULL(in);
    TENON_RETURN_IF_NULL_ARRAY(data_container, data_container_size);
    const Value& value = *Unwrap(in);
    if (value.kind() != Value::Kind::kOpaque) {
      return InvalidArgument("expected an opaque value, got a {}", ValueKindName(value.kind()));
    }
    const Opaque& opaque = value.opaque();
    if (opaque.domain != domain_name || opaque.name != type_name) {
      return InvalidArgument("expected an opaque value of type '{}.{}', got one of '{}.{}'",
                             domain_name, type_name, opaque.domain, opaque.name);
    }
    if (opaque.bytes.size() != data_container_size) {
      return InvalidArgument("the opaque value has {} bytes, got room for {}", opaque.bytes.size(),
                             data_container_size);
    }
    if (data_container_size != 0) {
      std::memcpy(data_container, opaque.bytes.data(), data_container_size);
    }
    return OkStatus();
  });
}

}  // namespace tenon::capi
