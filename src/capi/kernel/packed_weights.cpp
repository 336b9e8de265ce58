#include "capi/kernel/packed_weights.h"

#include <cstring>
#include <functional>
#include <string_view>
#include <utility>

namespace tenon::capi {
namespace {

uint64_t HashOf(const std::string& key, const PackedWeight& weight) {
  uint64_t hash = std::hash<std::string>()(key);
  for (size_t i = 0; i < weight.data.size(); ++i) {
    const std::string_view content(static_cast<const char*>(weight.data[i].get()), weight.sizes[i]);
    hash = hash * 0x100000001b3 ^ std::hash<std::string_view>()(content);
  }
  return hash;
}

bool AreEqual(const PackedWeight& a, const PackedWeight& b) {
  if (a.sizes != b.sizes) return false;
  for (size_t i = 0; i < a.data.size(); ++i) {
    if (a.sizes[i] == 0) continue;
    if (std::memcmp(a.data[i].get(), b.data[i].get(), a.sizes[i]) != 0) return false;
  }
  return true;
}

}  // namespace

std::shared_ptr<const PackedWeight> PackedWeights::Share(const std::string& key,
                                                         std::shared_ptr<const PackedWeight> made) {
  const uint64_t hash = HashOf(key, *made);
  const MutexLock lock(mutex_);
  std::erase_if(weights_, [](const auto& entry) { return entry.second.second.expired(); });
  const auto [begin, end] = weights_.equal_range(hash);
  for (auto entry = begin; entry != end; ++entry) {
    const auto known = entry->second.second.lock();
    if (entry->second.first == key && known != nullptr && AreEqual(*known, *made)) return known;
  }
  weights_.emplace(hash, std::pair(key, made));
  return made;
}

}  // namespace tenon::capi
