// OrtKeyValuePairs: a map from texts to texts.
#pragma once

#include <onnxruntime_c_api.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/string_map.h"

struct OrtKeyValuePairs {
 public:
  OrtKeyValuePairs() = default;
  explicit OrtKeyValuePairs(tenon::StringMap entries);
  OrtKeyValuePairs(const OrtKeyValuePairs& other) : OrtKeyValuePairs(other.entries_) {}
  OrtKeyValuePairs& operator=(const OrtKeyValuePairs&) = delete;

  const tenon::StringMap& entries() const { return entries_; }
  // The same as null-terminated texts, in the order of the keys. Valid until a change.
  const std::vector<const char*>& keys() const { return keys_; }
  const std::vector<const char*>& values() const { return values_; }

  void Set(std::string key, std::string value);
  void Remove(std::string_view key);

 private:
  void ListEntries();

  tenon::StringMap entries_;
  std::vector<const char*> keys_;
  std::vector<const char*> values_;
};
