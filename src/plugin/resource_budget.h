// Limits the device memory of the nodes that its provider claims.
#pragma once

#include <onnxruntime_ep_c_api.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "base/logging.h"
#include "base/string_map.h"
#include "runtime/provider.h"

namespace tenon::plugin {

// Limits the claims of one provider to the memory that its device has left. Only constants count,
// because the sizes of other values are not known yet.
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
