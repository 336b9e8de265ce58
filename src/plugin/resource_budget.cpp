#include "plugin/resource_budget.h"

#include <set>

#include "ir/graph.h"
#include "plugin/call.h"

namespace tenon::plugin {
namespace {

// The bytes of the claim's constants that are not in `counted` yet; adds them there.
uint64_t BytesOf(const Graph& graph, const Claim& claim, std::set<ValueId>& counted) {
  uint64_t bytes = 0;
  for (const NodeId id : claim.nodes) {
    for (const ValueId input : graph.node(id).inputs) {
      if (input == ValueId::kNone) continue;
      const Tensor* const constant = graph.StoredConstantOf(input);
      if (constant != nullptr && counted.insert(input).second) bytes += constant->bytes();
    }
  }
  return bytes;
}

}  // namespace

Result<ResourceBudget> ResourceBudget::Of(OrtEp* ep, const OrtEp& table, const StringMap& config) {
  ResourceBudget budget;
  const auto own = config.find("session.resource_cuda_partitioning_settings");
  const bool is_set = own != config.end() && !own->second.empty();
  if (is_set || table.GetAvailableResource == nullptr) return budget;
  OrtResourceCount available;
  TENON_RETURN_IF_ERROR(Call([&] { return table.GetAvailableResource(ep, &available); }));
  if (available.kind == OrtResourceCountKind_TotalBytes) budget.bytes_ = available.AsTotalBytes();
  return budget;
}

void ResourceBudget::Limit(const Graph& graph, std::vector<Claim>& claims,
                           const Logger& logger) const {
  if (!bytes_) return;
  std::set<ValueId> counted;
  uint64_t used = 0;
  for (size_t i = 0; i < claims.size(); ++i) {
    used += BytesOf(graph, claims[i], counted);
    if (used <= *bytes_) continue;
    TENON_LOG(logger, kInfo, "{} of {} groups of graph '{}' fit into {} bytes", i, claims.size(),
              graph.name, *bytes_);
    claims.resize(i);
    return;
  }
}

}  // namespace tenon::plugin
