// Reading the config entries of sessions and runs.
#pragma once

#include <chrono>
#include <string_view>

#include "base/status.h"
#include "base/string_map.h"
#include "ir/model_format.h"

namespace tenon {

// "1" is true and "0" is false; for anything else, and without an entry, the result is `fallback`.
bool ConfigFlag(const StringMap& config, std::string_view key, bool fallback);

// An integer in decimal. Error: kInvalidArgument naming key and value.
Result<int32_t> ConfigInteger(const StringMap& config, std::string_view key, int32_t fallback);

// A number of bytes in decimal. Error: kInvalidArgument naming key and value.
Result<size_t> ConfigBytes(const StringMap& config, std::string_view key, size_t fallback);

// A count in decimal. Error: kInvalidArgument naming key and value.
Result<size_t> ConfigCount(const StringMap& config, std::string_view key, size_t fallback);

// A number of microseconds in decimal. Error: kInvalidArgument naming key and value.
Result<std::chrono::microseconds> ConfigMicroseconds(const StringMap& config, std::string_view key,
                                                     std::chrono::microseconds fallback);

// "ONNX" or "ORT"; kUnspecified without an entry or for "". Error: kInvalidArgument naming key and
// value.
Result<ModelFormat> ConfigModelFormat(const StringMap& config, std::string_view key);

}  // namespace tenon
