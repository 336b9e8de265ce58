#include "capi/boundary/key_value_pairs.h"

#include <utility>

#include "capi/boundary/slots.h"

OrtKeyValuePairs::OrtKeyValuePairs(tenon::StringMap entries) : entries_(std::move(entries)) {
  ListEntries();
}

void OrtKeyValuePairs::Set(std::string key, std::string value) {
  entries_.insert_or_assign(std::move(key), std::move(value));
  ListEntries();
}

void OrtKeyValuePairs::Remove(std::string_view key) {
  const auto entry = entries_.find(key);
  if (entry == entries_.end()) return;
  entries_.erase(entry);
  ListEntries();
}

void OrtKeyValuePairs::ListEntries() {
  keys_.clear();
  values_.clear();
  for (const auto& [key, value] : entries_) {
    keys_.push_back(key.c_str());
    values_.push_back(value.c_str());
  }
}

namespace tenon::capi {

// These slots cannot report a failure: null arguments have no effect, and if memory runs out, the
// process ends.

void CreateKeyValuePairs(OrtKeyValuePairs** out) noexcept { *out = new OrtKeyValuePairs(); }

void AddKeyValuePair(OrtKeyValuePairs* kvps, const char* key, const char* value) noexcept {
  if (kvps == nullptr || key == nullptr || *key == '\0' || value == nullptr) return;
  kvps->Set(key, value);
}

const char* GetKeyValue(const OrtKeyValuePairs* kvps, const char* key) noexcept {
  if (kvps == nullptr || key == nullptr) return nullptr;
  const auto entry = kvps->entries().find(std::string_view(key));
  return entry == kvps->entries().end() ? nullptr : entry->second.c_str();
}

void GetKeyValuePairs(const OrtKeyValuePairs* kvps, const char* const** keys,
                      const char* const** values, size_t* num_entries) noexcept {
  *keys = kvps->keys().data();
  *values = kvps->values().data();
  *num_entries = kvps->keys().size();
}

void RemoveKeyValuePair(OrtKeyValuePairs* kvps, const char* key) noexcept {
  if (kvps != nullptr && key != nullptr) kvps->Remove(key);
}

void ReleaseKeyValuePairs(OrtKeyValuePairs* input) noexcept { delete input; }

}  // namespace tenon::capi
