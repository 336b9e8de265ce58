#include "tensor/arena_config.h"

#include <charconv>
#include <limits>

namespace tenon {
namespace {

// The number of an entry, from `least` to `most`; -1 if there is none.
Result<int64_t> NumberOf(const StringMap& options, std::string_view key, int64_t least,
                         int64_t most = std::numeric_limits<int64_t>::max()) {
  const auto entry = options.find(key);
  if (entry == options.end()) return -1;
  const std::string& text = entry->second;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < least || number > most) {
    return InvalidArgument("'{}': expected a number from {} to {}, got '{}'", key, least, most,
                           text);
  }
  return number;
}

Status ReadBytes(const StringMap& options, std::string_view key, size_t* bytes) {
  TENON_ASSIGN_OR_RETURN(const int64_t number, NumberOf(options, key, -1));
  if (number >= 0) *bytes = static_cast<size_t>(number);
  return OkStatus();
}

}  // namespace

Result<ArenaConfig> ArenaConfigOf(const StringMap& options) {
  ArenaConfig config;
  TENON_ASSIGN_OR_RETURN(const int64_t most, NumberOf(options, "arena.max_mem", 0));
  if (most > 0) config.max_bytes = static_cast<size_t>(most);
  TENON_ASSIGN_OR_RETURN(const int64_t extend, NumberOf(options, "arena.extend_strategy", -1, 1));
  if (extend == 1) config.extend = ArenaConfig::Extend::kSameAsRequested;
  TENON_RETURN_IF_ERROR(
      ReadBytes(options, "arena.initial_chunk_size_bytes", &config.initial_chunk));
  TENON_RETURN_IF_ERROR(
      ReadBytes(options, "arena.max_dead_bytes_per_chunk", &config.max_dead_bytes));
  TENON_RETURN_IF_ERROR(
      ReadBytes(options, "arena.initial_growth_chunk_size_bytes", &config.initial_growth_chunk));
  TENON_RETURN_IF_ERROR(
      ReadBytes(options, "arena.max_power_of_two_extend_bytes", &config.max_extend));
  return config;
}

}  // namespace tenon
