#include "capi/options/arena_config.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "capi/boundary/arguments.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"

namespace tenon::capi {
namespace {

// A setting of CreateArenaCfgV2, and the option with the same meaning.
struct Setting {
  std::string_view name;
  const char* option;
};
constexpr Setting kSettings[] = {
    {"max_mem", "arena.max_mem"},
    {"arena_extend_strategy", "arena.extend_strategy"},
    {"initial_chunk_size_bytes", "arena.initial_chunk_size_bytes"},
    {"max_dead_bytes_per_chunk", "arena.max_dead_bytes_per_chunk"},
    {"initial_growth_chunk_size_bytes", "arena.initial_growth_chunk_size_bytes"},
    {"max_power_of_two_extend_bytes", "arena.max_power_of_two_extend_bytes"},
    // For CUDA's own pools, which replace an arena there.
    {"use_cuda_mempool", "arena.use_cuda_mempool"},
    {"cuda_mempool_release_threshold", "arena.cuda_mempool_release_threshold"},
    {"cuda_mempool_bytes_to_keep_on_shrink", "arena.cuda_mempool_bytes_to_keep_on_shrink"},
};

// One check for all forms of the settings.
Status Make(const StringMap& options, OrtArenaCfg** out) {
  TENON_ASSIGN_OR_RETURN(const ArenaConfig config, ArenaConfigOf(options));
  *out = new OrtArenaCfg{config};
  return OkStatus();
}

}  // namespace

OrtStatus* CreateArenaCfg(size_t max_mem, int arena_extend_strategy, int initial_chunk_size_bytes,
                          int max_dead_bytes_per_chunk, OrtArenaCfg** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(out);
    return Make({{"arena.max_mem", std::to_string(max_mem == SIZE_MAX ? 0 : max_mem)},
                 {"arena.extend_strategy", std::to_string(arena_extend_strategy)},
                 {"arena.initial_chunk_size_bytes", std::to_string(initial_chunk_size_bytes)},
                 {"arena.max_dead_bytes_per_chunk", std::to_string(max_dead_bytes_per_chunk)}},
                out);
  });
}

OrtStatus* CreateArenaCfgV2(const char* const* arena_config_keys, const size_t* arena_config_values,
                            size_t num_keys, OrtArenaCfg** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL_ARRAY(arena_config_keys, num_keys);
    TENON_RETURN_IF_NULL_ARRAY(arena_config_values, num_keys);
    TENON_RETURN_IF_NULL(out);
    StringMap options;
    for (size_t i = 0; i < num_keys; ++i) {
      if (arena_config_keys[i] == nullptr) {
        return InvalidArgument("arena_config_keys[{}] must not be null", i);
      }
      const auto* const setting =
          std::find_if(std::begin(kSettings), std::end(kSettings),
                       [&](const Setting& known) { return known.name == arena_config_keys[i]; });
      if (setting == std::end(kSettings)) {
        return InvalidArgument("there is no setting '{}' of arenas", arena_config_keys[i]);
      }
      // The default, -1, becomes all bits set.
      if (arena_config_values[i] == SIZE_MAX) continue;
      options.insert_or_assign(setting->option, std::to_string(arena_config_values[i]));
    }
    return Make(options, out);
  });
}

void ReleaseArenaCfg(OrtArenaCfg* input) noexcept { delete input; }

}  // namespace tenon::capi
