#include "runtime/config.h"

#include <charconv>

namespace tenon {

bool ConfigFlag(const StringMap& config, std::string_view key, bool fallback) {
  const auto entry = config.find(key);
  if (entry == config.end()) return fallback;
  if (entry->second == "1") return true;
  return entry->second == "0" ? false : fallback;
}

Result<size_t> ConfigBytes(const StringMap& config, std::string_view key, size_t fallback) {
  const auto entry = config.find(key);
  if (entry == config.end()) return fallback;
  size_t value = 0;
  const char* const end = entry->second.data() + entry->second.size();
  const auto [stop, error] = std::from_chars(entry->second.data(), end, value);
  if (error != std::errc() || stop != end || entry->second.empty()) {
    return InvalidArgument("config entry '{}': expected a number of bytes, got '{}'", key,
                           entry->second);
  }
  return value;
}

}  // namespace tenon
