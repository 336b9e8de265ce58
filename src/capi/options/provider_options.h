// Options of execution providers for other hardware: known by name, stored and returned.
#pragma once

#include <onnxruntime_c_api.h>

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/string_map.h"

namespace tenon::capi {

// An option with its default value.
struct ProviderOption {
  std::string_view key;
  std::string_view value;
};

// The options of one provider, with values as texts.
class ProviderOptions {
 public:
  // `known` lives as long as the process.
  ProviderOptions(const char* provider, std::span<const ProviderOption> known);

  // Sets the options of the keys: all or none. Error: kInvalidArgument for null texts and for keys
  // that the provider does not have.
  Status Update(const char* const* keys, const char* const* values, size_t count);
  // Options that are pointers.
  Status SetPointer(const char* key, void* value);
  Result<void*> Pointer(const char* key) const;
  // "key=value;key=value", in the order of the keys.
  std::string ToString() const;
  const StringMap& values() const { return values_; }

 private:
  Status CheckKey(std::string_view key) const;

  const char* provider_;
  StringMap values_;
  std::map<std::string, void*, std::less<>> pointers_;
};

}  // namespace tenon::capi
