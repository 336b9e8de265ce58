// tenon placement: shows which execution provider takes which nodes, and why the others do not.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "plugins.h"
#include "text.h"

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;

// Provider -> operator -> number of nodes.
using Counts = std::map<std::string, std::map<std::string, int>>;

struct AssignedNode {
  std::string provider, name, domain, op_type;
};

std::vector<AssignedNode> NodesOf(const Ort::Session& session) {
  const OrtApi& api = Ort::GetApi();
  const OrtEpAssignedSubgraph* const* subgraphs = nullptr;
  size_t count = 0;
  Ort::ThrowOnError(api.Session_GetEpGraphAssignmentInfo(session, &subgraphs, &count));
  std::vector<AssignedNode> assigned;
  for (size_t i = 0; i < count; ++i) {
    const char* provider = nullptr;
    const OrtEpAssignedNode* const* nodes = nullptr;
    size_t node_count = 0;
    Ort::ThrowOnError(api.EpAssignedSubgraph_GetEpName(subgraphs[i], &provider));
    Ort::ThrowOnError(api.EpAssignedSubgraph_GetNodes(subgraphs[i], &nodes, &node_count));
    for (size_t n = 0; n < node_count; ++n) {
      const char *name = nullptr, *domain = nullptr, *op_type = nullptr;
      Ort::ThrowOnError(api.EpAssignedNode_GetName(nodes[n], &name));
      Ort::ThrowOnError(api.EpAssignedNode_GetDomain(nodes[n], &domain));
      Ort::ThrowOnError(api.EpAssignedNode_GetOperatorType(nodes[n], &op_type));
      assigned.push_back({provider, name, domain, op_type});
    }
  }
  return assigned;
}

Counts CountNodes(const std::vector<AssignedNode>& nodes) {
  Counts counts;
  for (const AssignedNode& node : nodes) ++counts[node.provider][node.op_type];
  return counts;
}

// Why a provider does not run a node that another one runs.
class Refusals {
 public:
  // Providers in order of preference; `errors` is what the library logged.
  Refusals(std::vector<std::string> providers, const Counts& counts,
           const std::vector<std::string>& errors)
      : providers_(std::move(providers)), counts_(counts), errors_(errors) {}

  // Provider and reason, for all that do not run the node.
  std::vector<std::pair<std::string, std::string>> Of(const AssignedNode& node) const {
    const auto taker = std::find(providers_.begin(), providers_.end(), node.provider);
    std::vector<std::pair<std::string, std::string>> refusals;
    for (auto other = providers_.begin(); other != providers_.end(); ++other) {
      if (other == taker) continue;
      refusals.emplace_back(
          *other, other < taker ? WhyNotClaimed(*other, node) : "is asked after " + node.provider);
    }
    return refusals;
  }

 private:
  std::string WhyNotClaimed(const std::string& provider, const AssignedNode& node) const {
    for (const std::string& error : errors_) {
      if (error.starts_with(provider + " could not say")) return error.substr(provider.size() + 1);
    }
    const auto taken = counts_.find(provider);
    if (taken == counts_.end()) return "claimed nothing of this model";
    const auto same = taken->second.find(node.op_type);
    if (same == taken->second.end()) return Format("claimed no {}", node.op_type);
    return Format("claimed {} other {}, but not this one", same->second, node.op_type);
  }

  const std::vector<std::string> providers_;
  const Counts& counts_;
  const std::vector<std::string>& errors_;
};

std::string OperatorsText(const std::map<std::string, int>& operators) {
  std::vector<std::string> texts;
  for (const auto& [op_type, count] : operators) {
    texts.push_back(count == 1 ? op_type : Format("{} x {}", op_type, count));
  }
  return Join(texts, ", ");
}

void PrintText(const std::vector<AssignedNode>& nodes, const Counts& counts,
               const Refusals& refusals) {
  std::vector<std::vector<std::string>> rows = {{"provider", "nodes", "operators"}};
  for (const auto& [provider, operators] : counts) {
    int total = 0;
    for (const auto& [op_type, count] : operators) total += count;
    rows.push_back({provider, std::to_string(total), OperatorsText(operators)});
  }
  Print("{}", TableText(rows, ""));
  // Provider and reason -> operators.
  std::map<std::pair<std::string, std::string>, std::map<std::string, int>> refused;
  for (const AssignedNode& node : nodes) {
    for (const auto& refusal : refusals.Of(node)) ++refused[refusal][node.op_type];
  }
  if (refused.empty()) return;
  rows = {{"not taken by", "because it", "operators"}};
  for (const auto& [refusal, operators] : refused) {
    rows.push_back({refusal.first, refusal.second, OperatorsText(operators)});
  }
  Print("\n{}", TableText(rows, ""));
}

Json ToJson(const std::vector<AssignedNode>& nodes, const Refusals& refusals) {
  Json json = Json::array();
  for (const AssignedNode& node : nodes) {
    Json refused = Json::array();
    for (const auto& [provider, reason] : refusals.Of(node)) {
      refused.push_back({{"ep", provider}, {"reason", reason}});
    }
    json.push_back({{"ep", node.provider},
                    {"name", node.name},
                    {"domain", node.domain},
                    {"op_type", node.op_type},
                    {"refused", refused}});
  }
  return json;
}

}  // namespace

int Placement(const PlacementCommand& command) {
  std::vector<std::string> errors;
  SessionSettings settings = command.session;
  settings.records_placement = true;
  settings.log = &errors;
  const Model model(settings);
  const std::vector<AssignedNode> nodes = NodesOf(model.session);
  const Counts counts = CountNodes(nodes);
  std::vector<std::string> providers = ProvidersOf(model.env, settings.plugins);
  providers.emplace_back("CPUExecutionProvider");
  const Refusals refusals(std::move(providers), counts, errors);
  if (command.json) {
    Print("{}\n", ToJson(nodes, refusals).dump(2, ' ', false, Json::error_handler_t::replace));
  } else {
    PrintText(nodes, counts, refusals);
  }
  return 0;
}

}  // namespace tenon::cli
