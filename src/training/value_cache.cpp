#include "training/value_cache.h"

#include <utility>

namespace tenon {

Status ValueCache::Insert(std::string_view name, Value value) {
  if (!value.has_value()) return InvalidArgument("the value to be cached as '{}' is empty", name);
  values_.insert_or_assign(std::string(name), std::move(value));
  return OkStatus();
}

Status ValueCache::Remove(std::string_view name) {
  const auto found = values_.find(name);
  if (found == values_.end()) return InvalidArgument("the cache has no value '{}'", name);
  values_.erase(found);
  return OkStatus();
}

const Value* ValueCache::Find(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

std::vector<std::string> ValueCache::Keys() const {
  std::vector<std::string> keys;
  for (const auto& [name, value] : values_) keys.push_back(name);
  return keys;
}

}  // namespace tenon
