// The state of a session's fallback.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "runtime/failed_node.h"

namespace tenon {

enum class FallbackState { kOff, kArmed, kUsed, kFailed };

struct FallbackReport {
  FallbackState state = FallbackState::kOff;
  std::vector<std::string> from, to;  // names of providers
  FailedNode failed;
  Status cause;
  int64_t rebuild_ms = 0;
  uint64_t replays = 0;
  struct NotReplayed {
    uint64_t run_id;
    std::string reason;
  };
  std::vector<NotReplayed> not_replayed;

  // One JSON object as in python-fallback, FB-39.
  std::string ToJson() const;
};

}  // namespace tenon
