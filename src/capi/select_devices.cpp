#include "capi/select_devices.h"

#include <array>
#include <string_view>

#include "capi/allocator.h"
#include "capi/arguments.h"
#include "capi/ep_device.h"
#include "capi/key_value_pairs.h"
#include "capi/session_handle.h"
#include "capi/slots.h"
#include "capi/status.h"
#include "ir/onnx_reader.h"

namespace tenon::capi {
namespace {

OrtKeyValuePairs MetadataOf(const Model& model) {
  StringMap entries(model.metadata.begin(), model.metadata.end());
  entries.insert_or_assign("graph_name", model.graph->name);
  entries.insert_or_assign("graph_description", model.graph->doc_string);
  entries.insert_or_assign("description", model.doc_string);
  entries.insert_or_assign("domain", model.domain);
  entries.insert_or_assign("producer_name", model.producer_name);
  entries.insert_or_assign("version", Format("{}", model.model_version.value_or(0)));
  return OrtKeyValuePairs(std::move(entries));
}

// What the model says for the provider, null if nothing.
Status CopyCompatibility(const Model& model, const char* ep_type, OrtAllocator* allocator,
                         char** out) {
  *out = nullptr;
  const auto entry = model.metadata.find(std::string("ep_compatibility_info.") + ep_type);
  if (entry == model.metadata.end()) return OkStatus();
  TENON_ASSIGN_OR_RETURN(*out, CopyString(allocator, entry->second));
  return OkStatus();
}

}  // namespace

Status SelectDevices(const OrtSessionOptions& options, const Model& model) {
  if (options.select_devices == nullptr) return OkStatus();
  constexpr size_t kMostSelected = 8;
  const OrtEpDevice* offered[] = {&CpuEpDevice()};
  std::array<const OrtEpDevice*, kMostSelected> selected = {};
  size_t count = 0;
  const OrtKeyValuePairs metadata = MetadataOf(model);
  TENON_RETURN_IF_ERROR(TakeOrtStatus(
      options.select_devices(offered, std::size(offered), &metadata, nullptr, selected.data(),
                             kMostSelected, &count, options.select_devices_state)));
  if (count == 0) return Fail("the function that selects devices selected none");
  if (count > kMostSelected) {
    return InvalidArgument("the function that selects devices selected {} of at most {}", count,
                           kMostSelected);
  }
  for (size_t i = 0; i < count; ++i) {
    if (selected[i] != &CpuEpDevice()) {
      return InvalidArgument("the function that selects devices selected one that is none of them");
    }
  }
  return OkStatus();
}

OrtStatus* SessionOptionsSetEpSelectionPolicy(OrtSessionOptions* session_options,
                                              OrtExecutionProviderDevicePolicy policy) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(session_options);
    const int number = NumberOf(policy);
    if (number < OrtExecutionProviderDevicePolicy_DEFAULT ||
        number > OrtExecutionProviderDevicePolicy_MIN_OVERALL_POWER) {
      return InvalidArgument("there is no policy {} for the choice of devices", number);
    }
    session_options->device_policy = policy;
    session_options->select_devices = nullptr;
    return OkStatus();
  });
}

OrtStatus* SessionOptionsSetEpSelectionPolicyDelegate(OrtSessionOptions* session_options,
                                                      EpSelectionDelegate delegate,
                                                      void* delegate_state) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(session_options);
    session_options->select_devices = delegate;
    session_options->select_devices_state = delegate_state;
    return OkStatus();
  });
}

OrtStatus* SessionOptionsAppendExecutionProvider_V2(OrtSessionOptions* session_options, OrtEnv* env,
                                                    const OrtEpDevice* const* ep_devices,
                                                    size_t num_ep_devices,
                                                    const char* const* ep_option_keys,
                                                    const char* const* ep_option_vals,
                                                    size_t num_ep_options) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(session_options);
    TENON_RETURN_IF_NULL(env);
    TENON_RETURN_IF_NULL(ep_devices);
    if (num_ep_devices == 0) return InvalidArgument("at least one device is needed");
    TENON_RETURN_IF_NULL_ARRAY(ep_option_keys, num_ep_options);
    TENON_RETURN_IF_NULL_ARRAY(ep_option_vals, num_ep_options);
    for (size_t i = 0; i < num_ep_devices; ++i) {
      // Every session ends with the CPU, which has no options.
      if (ep_devices[i] != &CpuEpDevice()) {
        return InvalidArgument("ep_devices[{}] is none of the environment's", i);
      }
    }
    return OkStatus();
  });
}

OrtStatus* GetModelCompatibilityForEpDevices(const OrtEpDevice* const* ep_devices,
                                             size_t num_ep_devices, const char* compatibility_info,
                                             OrtCompiledModelCompatibility* out_status) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(ep_devices);
    TENON_RETURN_IF_NULL(compatibility_info);
    TENON_RETURN_IF_NULL(out_status);
    if (num_ep_devices == 0) return InvalidArgument("at least one device is needed");
    for (size_t i = 0; i < num_ep_devices; ++i) {
      if (ep_devices[i] == nullptr) return InvalidArgument("ep_devices[{}] must not be null", i);
    }
    // The CPU compiles nothing ahead of time.
    *out_status = OrtCompiledModelCompatibility_EP_NOT_APPLICABLE;
    return OkStatus();
  });
}

OrtStatus* GetCompatibilityInfoFromModel(const ORTCHAR_T* model_path, const char* ep_type,
                                         OrtAllocator* allocator,
                                         char** compatibility_info) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(model_path);
    TENON_RETURN_IF_NULL(ep_type);
    TENON_RETURN_IF_NULL(allocator);
    TENON_RETURN_IF_NULL(compatibility_info);
    TENON_ASSIGN_OR_RETURN(const Model model, ReadModel(std::string(model_path)));
    return CopyCompatibility(model, ep_type, allocator, compatibility_info);
  });
}

OrtStatus* GetCompatibilityInfoFromModelBytes(const void* model_data, size_t model_data_length,
                                              const char* ep_type, OrtAllocator* allocator,
                                              char** compatibility_info) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(model_data);
    TENON_RETURN_IF_NULL(ep_type);
    TENON_RETURN_IF_NULL(allocator);
    TENON_RETURN_IF_NULL(compatibility_info);
    const std::span bytes(static_cast<const std::byte*>(model_data), model_data_length);
    TENON_ASSIGN_OR_RETURN(const Model model, ReadModel(bytes, nullptr));
    return CopyCompatibility(model, ep_type, allocator, compatibility_info);
  });
}

}  // namespace tenon::capi
