#include "capi/graph/external_initializer.h"

#include "capi/boundary/arguments.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "ir/external_data.h"

namespace tenon::capi {

std::unique_ptr<OrtExternalInitializerInfo> NewExternalInitializerInfo(const Model& model,
                                                                       const Tensor& tensor) {
  if (model.external_places == nullptr) return nullptr;
  const ExternalLocation* const location = model.external_places->Find(tensor);
  if (location == nullptr) return nullptr;
  return std::make_unique<OrtExternalInitializerInfo>(OrtExternalInitializerInfo{
      location->file, static_cast<int64_t>(location->offset), tensor.bytes()});
}

OrtStatus* CreateExternalInitializerInfo(const ORTCHAR_T* filepath, int64_t file_offset,
                                         size_t byte_size,
                                         OrtExternalInitializerInfo** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(filepath);
    TENON_RETURN_IF_NULL(out);
    if (*filepath == '\0') return InvalidArgument("filepath must not be empty");
    if (file_offset < 0) return InvalidArgument("file_offset is at least 0, got {}", file_offset);
    *out = new OrtExternalInitializerInfo{filepath, file_offset, byte_size};
    return OkStatus();
  });
}

void ReleaseExternalInitializerInfo(OrtExternalInitializerInfo* input) noexcept { delete input; }

// These cannot report a null pointer.
const ORTCHAR_T* ExternalInitializerInfo_GetFilePath(
    const OrtExternalInitializerInfo* info) noexcept {
  return info == nullptr ? "" : info->path.c_str();
}
int64_t ExternalInitializerInfo_GetFileOffset(const OrtExternalInitializerInfo* info) noexcept {
  return info == nullptr ? 0 : info->offset;
}
size_t ExternalInitializerInfo_GetByteSize(const OrtExternalInitializerInfo* info) noexcept {
  return info == nullptr ? 0 : info->bytes;
}

}  // namespace tenon::capi
