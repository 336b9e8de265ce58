// OrtModelMetadata: what a model says about itself.
#include "capi/graph/metadata.h"

#include <cstring>
#include <limits>
#include <string_view>
#include <vector>

#include "capi/boundary/arguments.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/value/allocator.h"

namespace tenon::capi {
namespace {

// ONNX Runtime's value for a model that has no version number.
constexpr int64_t kNoVersion = std::numeric_limits<int64_t>::max();

OrtStatus* GetText(const OrtModelMetadata* model_metadata, std::string OrtModelMetadata::*field,
                   OrtAllocator* allocator, char** value) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(model_metadata);
    TENON_RETURN_IF_NULL(allocator);
    TENON_RETURN_IF_NULL(value);
    TENON_ASSIGN_OR_RETURN(*value, CopyString(allocator, model_metadata->*field));
    return OkStatus();
  });
}

}  // namespace

OrtModelMetadata* NewModelMetadata(const Model& model) {
  return new OrtModelMetadata{
      model.producer_name, model.graph->name,       model.domain,
      model.doc_string,    model.graph->doc_string, model.model_version.value_or(kNoVersion),
      model.metadata};
}

void ReleaseModelMetadata(OrtModelMetadata* input) noexcept { delete input; }

OrtStatus* ModelMetadataGetProducerName(const OrtModelMetadata* model_metadata,
                                        OrtAllocator* allocator, char** value) noexcept {
  return GetText(model_metadata, &OrtModelMetadata::producer_name, allocator, value);
}

OrtStatus* ModelMetadataGetGraphName(const OrtModelMetadata* model_metadata,
                                     OrtAllocator* allocator, char** value) noexcept {
  return GetText(model_metadata, &OrtModelMetadata::graph_name, allocator, value);
}

OrtStatus* ModelMetadataGetDomain(const OrtModelMetadata* model_metadata, OrtAllocator* allocator,
                                  char** value) noexcept {
  return GetText(model_metadata, &OrtModelMetadata::domain, allocator, value);
}

OrtStatus* ModelMetadataGetDescription(const OrtModelMetadata* model_metadata,
                                       OrtAllocator* allocator, char** value) noexcept {
  return GetText(model_metadata, &OrtModelMetadata::description, allocator, value);
}

OrtStatus* ModelMetadataGetGraphDescription(const OrtModelMetadata* model_metadata,
                                            OrtAllocator* allocator, char** value) noexcept {
  return GetText(model_metadata, &OrtModelMetadata::graph_description, allocator, value);
}

OrtStatus* ModelMetadataGetVersion(const OrtModelMetadata* model_metadata,
                                   int64_t* value) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(model_metadata);
    TENON_RETURN_IF_NULL(value);
    *value = model_metadata->version;
    return OkStatus();
  });
}

OrtStatus* ModelMetadataLookupCustomMetadataMap(const OrtModelMetadata* model_metadata,
                                                OrtAllocator* allocator, const char* key,
                                                char** value) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(model_metadata);
    TENON_RETURN_IF_NULL(allocator);
    TENON_RETURN_IF_NULL(key);
    TENON_RETURN_IF_NULL(value);
    *value = nullptr;
    for (const auto& [name, text] : model_metadata->custom) {
      if (name != key) continue;
      TENON_ASSIGN_OR_RETURN(*value, CopyString(allocator, text));
      break;
    }
    return OkStatus();
  });
}

OrtStatus* ModelMetadataGetCustomMetadataMapKeys(const OrtModelMetadata* model_metadata,
                                                 OrtAllocator* allocator, char*** keys,
                                                 int64_t* num_keys) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(model_metadata);
    TENON_RETURN_IF_NULL(allocator);
    TENON_RETURN_IF_NULL(keys);
    TENON_RETURN_IF_NULL(num_keys);
    std::vector<std::string_view> names;
    for (const auto& entry : model_metadata->custom) names.push_back(entry.first);
    TENON_ASSIGN_OR_RETURN(*keys, CopyStrings(allocator, names));
    *num_keys = static_cast<int64_t>(names.size());
    return OkStatus();
  });
}

}  // namespace tenon::capi
