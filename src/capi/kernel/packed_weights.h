// Weights that plugins' kernels packed, shared among sessions by their content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"

namespace tenon::capi {

// One weight's buffers; each frees itself.
struct PackedWeight {
  std::vector<std::shared_ptr<void>> data;
  std::vector<size_t> sizes;  // bytes
};

// Thread-safe. It owns no weight itself: a weight lives until its last user releases it.
class PackedWeights {
 public:
  // Returns the earlier weight with the content of `made` and the same `key`, or else `made`, which
  // is kept.
  std::shared_ptr<const PackedWeight> Share(const std::string& key,
                                            std::shared_ptr<const PackedWeight> made);

 private:
  Mutex mutex_;
  // By the hash of key and content.
  std::multimap<uint64_t, std::pair<std::string, std::weak_ptr<const PackedWeight>>> weights_;
};

}  // namespace tenon::capi
