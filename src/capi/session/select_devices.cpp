#include "capi/session/select_devices.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

#include "capi/boundary/arguments.h"
#include "capi/boundary/key_value_pairs.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/env/ep_device.h"
#include "capi/env/ep_source.h"
#include "capi/graph/context_model.h"
#include "capi/session/session_handle.h"
#include "capi/value/allocator.h"
#include "ir/onnx_reader.h"
#include "runtime/config.h"

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

// The model's compatibility information for the provider, null if there is none.
Status CopyCompatibility(const Model& model, const char* ep_type, OrtAllocator* allocator,
                         char** out) {
  *out = nullptr;
  if (*ep_type == '\0') return InvalidArgument("expected the name of a provider, got ''");
  const auto entry = model.metadata.find(CompatibilityKey(ep_type));
  if (entry == model.metadata.end()) return OkStatus();
  TENON_ASSIGN_OR_RETURN(*out, CopyString(allocator, entry->second));
  return OkStatus();
}

}  // namespace

namespace {

constexpr size_t kMostSelected = 8;

int RankOfType(const OrtEpDevice& device) {
  switch (device.device->type) {
    case OrtHardwareDeviceType_NPU:
      return 0;
    case OrtHardwareDeviceType_GPU:
      return 1;
    default:
      return 2;
  }
}

bool IsDiscrete(const OrtEpDevice& device) {
  const StringMap& metadata = device.device->metadata.entries();
  const auto entry = metadata.find("Discrete");
  return entry != metadata.end() && entry->second == "1";
}

// Whether the provider is from the hardware's vendor.
bool IsOfVendor(const OrtEpDevice& device) {
  return device.source != nullptr && device.source->IsOfVendor(*device.device);
}

// The order in which devices are chosen. The built-in CPU provider comes last.
bool ComesBefore(const OrtEpDevice* a, const OrtEpDevice* b) {
  const auto key = [](const OrtEpDevice& device) {
    return std::tuple(device.source == nullptr, RankOfType(device), !IsDiscrete(device),
                      !IsOfVendor(device), std::string_view(device.ep_name));
  };
  return key(*a) < key(*b);
}

std::vector<const OrtEpDevice*> SortedDevices(const SharedEnvironment& environment) {
  const auto [devices, count] = environment.eps.Devices();
  std::vector<const OrtEpDevice*> sorted(devices, devices + count);
  std::stable_sort(sorted.begin(), sorted.end(), ComesBefore);
  return sorted;
}

Result<std::vector<const OrtEpDevice*>> AskClient(const OrtSessionOptions& options,
                                                  const Model& model,
                                                  std::vector<const OrtEpDevice*> offered) {
  std::array<const OrtEpDevice*, kMostSelected> selected = {};
  size_t count = 0;
  const OrtKeyValuePairs metadata = MetadataOf(model);
  const Status status = TakeOrtStatus(
      options.select_devices(offered.data(), offered.size(), &metadata, nullptr, selected.data(),
                             kMostSelected, &count, options.select_devices_state));
  if (!status.ok()) return Fail("the function that selects devices: {}", status.message());
  if (count == 0) return Fail("the function that selects devices selected none");
  if (count > kMostSelected) {
    return Fail("the function that selects devices selected {} of at most {}", count,
                kMostSelected);
  }
  for (size_t i = 0; i < count; ++i) {
    if (std::find(offered.begin(), offered.end(), selected[i]) == offered.end()) {
      return Fail("the function that selects devices selected one that is none of them");
    }
  }
  return std::vector<const OrtEpDevice*>(selected.begin(), selected.begin() + count);
}

// Applies a policy to sorted devices: the first of the preferred type, and the first CPU.
std::vector<const OrtEpDevice*> ApplyPolicy(OrtExecutionProviderDevicePolicy policy,
                                            const std::vector<const OrtEpDevice*>& sorted) {
  std::vector<const OrtEpDevice*> chosen;
  const auto take_first = [&](OrtHardwareDeviceType type) {
    const auto first = std::find_if(sorted.begin(), sorted.end(), [&](const OrtEpDevice* device) {
      return device->device->type == type;
    });
    if (first != sorted.end()) chosen.push_back(*first);
  };
  switch (policy) {
    case OrtExecutionProviderDevicePolicy_PREFER_NPU:
    case OrtExecutionProviderDevicePolicy_MAX_EFFICIENCY:
    case OrtExecutionProviderDevicePolicy_MIN_OVERALL_POWER:
      take_first(OrtHardwareDeviceType_NPU);
      break;
    case OrtExecutionProviderDevicePolicy_PREFER_GPU:
    case OrtExecutionProviderDevicePolicy_MAX_PERFORMANCE:
      take_first(OrtHardwareDeviceType_GPU);
      break;
    default:
      break;
  }
  take_first(OrtHardwareDeviceType_CPU);
  return chosen;
}

// One choice for each provider, in the order of its first device.
std::vector<ProviderChoice> GroupByProvider(const std::vector<const OrtEpDevice*>& devices) {
  std::vector<ProviderChoice> choices;
  for (const OrtEpDevice* const device : devices) {
    if (device->source == nullptr) continue;
    const auto known =
        std::find_if(choices.begin(), choices.end(),
                     [&](const ProviderChoice& choice) { return choice.name == device->ep_name; });
    if (known == choices.end()) {
      choices.push_back({device->ep_name, {}, {device}});
    } else {
      known->devices.push_back(device);
    }
  }
  return choices;
}

}  // namespace

Result<std::vector<ProviderChoice>> SelectDevices(const OrtSessionOptions& options,
                                                  const Model& model,
                                                  const SharedEnvironment& environment) {
  std::vector<const OrtEpDevice*> chosen;
  if (!options.providers.empty()) return std::vector<ProviderChoice>();
  if (options.select_devices != nullptr) {
    TENON_ASSIGN_OR_RETURN(chosen, AskClient(options, model, SortedDevices(environment)));
  } else if (options.device_policy) {
    chosen = ApplyPolicy(*options.device_policy, SortedDevices(environment));
  } else {
    return std::vector<ProviderChoice>();
  }
  if (ConfigFlag(options.session.config, "session.disable_cpu_ep_fallback", false)) {
    std::erase_if(chosen, [](const OrtEpDevice* device) { return device->source == nullptr; });
  }
  if (chosen.empty()) return Fail("no execution provider was selected");
  return GroupByProvider(chosen);
}

void AddDeviceOptions(const OrtEpDevice& device, bool replace, StringMap& config) {
  const std::string prefix = EpOptionPrefix(device.ep_name);
  for (const auto& [key, value] : device.ep_options.entries()) {
    if (replace) {
      config.insert_or_assign(prefix + key, value);
    } else {
      config.emplace(prefix + key, value);
    }
  }
}

Status AddCustomOpDomains(const OrtEpDevice& device, OrtSessionOptions& options) {
  TENON_ASSIGN_OR_RETURN(const auto domains, device.source->CustomOpDomains());
  for (const OrtCustomOpDomain* const domain : domains) {
    auto& known = options.custom_op_domains;
    const bool is_new = std::find(known.begin(), known.end(), domain) == known.end();
    if (domain != nullptr && is_new) known.push_back(domain);
  }
  return OkStatus();
}

OrtStatus* SessionOptionsSetEpSelectionPolicy(OrtSessionOptions* session_options,
                                              OrtExecutionProviderDevicePolicy policy) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(session_options);
    const int number = policy;
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
    const std::vector<const OrtEpDevice*> group(ep_devices, ep_devices + num_ep_devices);
    for (size_t i = 0; i < group.size(); ++i) {
      TENON_RETURN_IF_ERROR(env->shared->eps.CheckDevice(group[i]));
      if (group[i]->ep_name != group[0]->ep_name || group[i]->source != group[0]->source) {
        return InvalidArgument(
            "all devices must be of one execution provider; ep_devices[{}] is "
            "of {}, ep_devices[0] of {}",
            i, group[i]->ep_name, group[0]->ep_name);
      }
    }
    // Every session ends with the CPU provider, which has no options.
    if (group[0]->source == nullptr) {
      session_options->has_cpu_provider = true;
      return OkStatus();
    }
    for (const ProviderChoice& choice : session_options->providers) {
      if (choice.name != group[0]->ep_name) continue;
      return Fail("{} is already registered with the session options", choice.name);
    }
    StringMap& config = session_options->session.config;
    for (const OrtEpDevice* const device : group) AddDeviceOptions(*device, true, config);
    const std::string prefix = EpOptionPrefix(group[0]->ep_name);
    for (size_t i = 0; i < num_ep_options; ++i) {
      if (ep_option_keys[i] == nullptr) continue;
      config.insert_or_assign(prefix + ep_option_keys[i],
                              ep_option_vals[i] == nullptr ? "" : ep_option_vals[i]);
    }
    TENON_RETURN_IF_ERROR(AddCustomOpDomains(*group[0], *session_options));
    session_options->providers.push_back({group[0]->ep_name, {}, group});
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
    // The CPU provider compiles nothing ahead of time.
    *out_status = OrtCompiledModelCompatibility_EP_NOT_APPLICABLE;
    if (ep_devices[0]->source == nullptr) return OkStatus();
    TENON_ASSIGN_OR_RETURN(*out_status,
                           ep_devices[0]->source->CheckCompatibility(
                               std::span(ep_devices, num_ep_devices), compatibility_info));
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
    if (*model_path == '\0') return InvalidArgument("expected the path of a model, got ''");
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
