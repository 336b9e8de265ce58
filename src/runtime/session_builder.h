// Makes the sessions of a model that may need several.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "runtime/session.h"

namespace tenon {

struct FailedNode;

// What a session is to be made with.
struct SessionRequest {
  std::vector<std::string> providers;       // names; the most preferred comes first
  std::shared_ptr<Profiler> profiler;       // of the first session; null: as the options say
  FailedNode* failed;                       // SessionParts::failed
  bool equal_names_are_equal_sizes = true;  // SessionOptions'
  // If set, the session is one of a RunVerifier: its model is rewritten at most so often, and
  // `rewrites`, if not null, receives what was rewritten, in order.
  std::optional<size_t> most_rewrites = std::nullopt;
  std::vector<std::string>* rewrites = nullptr;
};

using SessionBuilder = std::function<Result<std::unique_ptr<Session>>(const SessionRequest&)>;

}  // namespace tenon
