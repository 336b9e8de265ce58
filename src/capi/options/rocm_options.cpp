// OrtROCMProviderOptions: a struct that clients may also fill themselves.
#include <charconv>
#include <cstring>
#include <string>
#include <string_view>

#include "base/text.h"
#include "capi/boundary/arguments.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/value/allocator.h"

namespace tenon::capi {
namespace {

struct IntOption {
  std::string_view key;
  int OrtROCMProviderOptions::*field;
};
constexpr IntOption kIntOptions[] = {
    {"device_id", &OrtROCMProviderOptions::device_id},
    {"miopen_conv_exhaustive_search", &OrtROCMProviderOptions::miopen_conv_exhaustive_search},
    {"arena_extend_strategy", &OrtROCMProviderOptions::arena_extend_strategy},
    {"do_copy_in_default_stream", &OrtROCMProviderOptions::do_copy_in_default_stream},
    {"has_user_compute_stream", &OrtROCMProviderOptions::has_user_compute_stream},
    {"enable_hip_graph", &OrtROCMProviderOptions::enable_hip_graph},
    {"tunable_op_enable", &OrtROCMProviderOptions::tunable_op_enable},
    {"tunable_op_tuning_enable", &OrtROCMProviderOptions::tunable_op_tuning_enable},
    {"tunable_op_max_tuning_duration_ms",
     &OrtROCMProviderOptions::tunable_op_max_tuning_duration_ms},
};
constexpr std::string_view kMemoryLimit = "gpu_mem_limit";

template <class T>
Status ParseInto(std::string_view key, std::string_view text, T& field) {
  T number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || text.empty()) {
    return InvalidArgument(
        "option '{}' of the ROCM execution provider: expected a number, got '{}'", key, text);
  }
  field = number;
  return OkStatus();
}

Status SetOption(OrtROCMProviderOptions& options, std::string_view key, std::string_view text) {
  if (key == kMemoryLimit) return ParseInto(key, text, options.gpu_mem_limit);
  for (const IntOption& option : kIntOptions) {
    if (option.key == key) return ParseInto(key, text, options.*option.field);
  }
  return InvalidArgument("the ROCM execution provider has no option '{}'", key);
}

}  // namespace

OrtStatus* CreateROCMProviderOptions(OrtROCMProviderOptions** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(out);
    *out = new OrtROCMProviderOptions();
    return OkStatus();
  });
}

OrtStatus* UpdateROCMProviderOptions(OrtROCMProviderOptions* rocm_options,
                                     const char* const* provider_options_keys,
                                     const char* const* provider_options_values,
                                     size_t num_keys) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(rocm_options);
    TENON_RETURN_IF_NULL_ARRAY(provider_options_keys, num_keys);
    TENON_RETURN_IF_NULL_ARRAY(provider_options_values, num_keys);
    OrtROCMProviderOptions changed = *rocm_options;
    for (size_t i = 0; i < num_keys; ++i) {
      if (provider_options_keys[i] == nullptr || provider_options_values[i] == nullptr) {
        return InvalidArgument("key and value of option {} must not be null", i);
      }
      TENON_RETURN_IF_ERROR(
          SetOption(changed, provider_options_keys[i], provider_options_values[i]));
    }
    *rocm_options = changed;
    return OkStatus();
  });
}

OrtStatus* GetROCMProviderOptionsAsString(const OrtROCMProviderOptions* rocm_options,
                                          OrtAllocator* allocator, char** ptr) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(rocm_options);
    TENON_RETURN_IF_NULL(allocator);
    TENON_RETURN_IF_NULL(ptr);
    std::string text = Format("{}={}", kMemoryLimit, rocm_options->gpu_mem_limit);
    for (const IntOption& option : kIntOptions) {
      text += Format(";{}={}", option.key, rocm_options->*option.field);
    }
    TENON_ASSIGN_OR_RETURN(*ptr, CopyString(allocator, text));
    return OkStatus();
  });
}

void ReleaseROCMProviderOptions(OrtROCMProviderOptions* input) noexcept { delete input; }

}  // namespace tenon::capi
