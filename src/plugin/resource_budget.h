// How much of a device's memory the nodes that its provider claims may need.
#pragma once

#include <onnxruntime_ep_c_api.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "base/logging.h"
#include "base/string_map.h"
#include "runtime/provider.h"

namespace tenon::plugin {

// Keeps the claims of one provider within what it says that its device has left. Only constants
// count: how large other values will be is not known yet.
class ResourceBudget {
 public:
  // Asks the provider. There is no budget if it has no such slot or counts something else, nor if
  // the session's entries set one themselves. Error: the plugin's.
  static Result<ResourceBudget> Of(OrtEp* ep, const OrtEp& table, const StringMap& config);

  // Drops the first claim that does not fit and all that follow it.
  void Limit(const Graph& graph, std::vector<Claim>& claims, const Logger& logger) const;

 private:
  std::optional<uint64_t> bytes_;
};

}  // namespace tenon::plugin
