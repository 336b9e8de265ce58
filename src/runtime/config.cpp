#include "runtime/config.h"

#include <charconv>

namespace tenon {
namespace {

// `what` is the expected form, for the error.
template <class T>
Result<T> ConfigNumber(const StringMap& config, std::string_view key, const char* what,
                       T fallback) {
  const auto entry = config.find(key);
  if (entry == config.end()) return fallback;
  T value = 0;
  const char* const end = entry->second.data() + entry->second.size();
  const auto [stop, error] = std::from_chars(entry->second.data(), end, value);
  if (error != std::errc() || stop != end) {
    return InvalidArgument("config entry '{}': expected {}, got '{}'", key, what, entry->second);
  }
  return value;
}

}  // namespace

bool ConfigFlag(const StringMap& config, std::string_view key, bool fallback) {
  const auto entry = config.find(key);
  if (entry == config.end()) return fallback;
  if (entry->second == "1") return true;
  return entry->second == "0" ? false : fallback;
}

Result<int32_t> ConfigInteger(const StringMap& config, std::string_view key, int32_t fallback) {
  return ConfigNumber<int32_t>(config, key, "a whole number", fallback);
}

Result<size_t> ConfigBytes(const StringMap& config, std::string_view key, size_t fallback) {
  return ConfigNumber<size_t>(config, key, "a number of bytes", fallback);
}

Result<size_t> ConfigCount(const StringMap& config, std::string_view key, size_t fallback) {
  return ConfigNumber<size_t>(config, key, "a number of items", fallback);
}

Result<std::chrono::microseconds> ConfigMicroseconds(const StringMap& config, std::string_view key,
                                                     std::chrono::microseconds fallback) {
  TENON_ASSIGN_OR_RETURN(const uint32_t count,
                         ConfigNumber<uint32_t>(config, key, "a number of microseconds",
                                                static_cast<uint32_t>(fallback.count())));
  return std::chrono::microseconds(count);
}

Result<ModelFormat> ConfigModelFormat(const StringMap& config, std::string_view key) {
  const auto entry = config.find(key);
  if (entry == config.end() || entry->second.empty()) return ModelFormat::kUnspecified;
  if (entry->second == "ONNX") return ModelFormat::kOnnx;
  if (entry->second == "ORT") return ModelFormat::kOrt;
  return InvalidArgument("config entry '{}': expected ONNX or ORT, got '{}'", key, entry->second);
}

}  // namespace tenon
