#include "capi/arena_config.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "capi/arguments.h"
#include "capi/slots.h"
#include "capi/status.h"

namespace tenon::capi {
namespace {

// Settings of other arenas, which have no meaning for size classes.
constexpr std::string_view kOtherSettings[] = {
    "arena_extend_strategy", "initial_chunk_size_bytes", "initial_growth_chunk_size_bytes",
    "max_dead_bytes_per_chunk", "max_power_of_two_extend_bytes"};

Status CheckSetting(const char* name, int value, int most) {
  if (value >= -1 && value <= most) return OkStatus();
  return InvalidArgument("{} is at least 0, or -1 for the default, and at most {}, got {}", name,
                         most, value);
}

}  // namespace

OrtStatus* CreateArenaCfg(size_t max_mem, int arena_extend_strategy, int initial_chunk_size_bytes,
                          int max_dead_bytes_per_chunk, OrtArenaCfg** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(out);
    TENON_RETURN_IF_ERROR(CheckSetting("arena_extend_strategy", arena_extend_strategy, 1));
    TENON_RETURN_IF_ERROR(
        CheckSetting("initial_chunk_size_bytes", initial_chunk_size_bytes, INT32_MAX));
    TENON_RETURN_IF_ERROR(
        CheckSetting("max_dead_bytes_per_chunk", max_dead_bytes_per_chunk, INT32_MAX));
    *out = new OrtArenaCfg{max_mem == SIZE_MAX ? 0 : max_mem};
    return OkStatus();
  });
}

OrtStatus* CreateArenaCfgV2(const char* const* arena_config_keys, const size_t* arena_config_values,
                            size_t num_keys, OrtArenaCfg** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL_ARRAY(arena_config_keys, num_keys);
    TENON_RETURN_IF_NULL_ARRAY(arena_config_values, num_keys);
    TENON_RETURN_IF_NULL(out);
    OrtArenaCfg config;
    for (size_t i = 0; i < num_keys; ++i) {
      if (arena_config_keys[i] == nullptr) {
        return InvalidArgument("arena_config_keys[{}] must not be null", i);
      }
      const std::string_view key = arena_config_keys[i];
      if (key == "max_mem") {
        config.max_bytes = arena_config_values[i] == SIZE_MAX ? 0 : arena_config_values[i];
      } else if (std::find(std::begin(kOtherSettings), std::end(kOtherSettings), key) ==
                 std::end(kOtherSettings)) {
        return InvalidArgument("there is no setting '{}' of arenas", key);
      }
    }
    *out = new OrtArenaCfg(config);
    return OkStatus();
  });
}

void ReleaseArenaCfg(OrtArenaCfg* input) noexcept { delete input; }

}  // namespace tenon::capi
