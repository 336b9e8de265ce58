// tenon eps and tenon placement: which execution providers there are, and what they take.
#include <map>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "plugins.h"
#include "text.h"

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;

const char* KindOf(OrtHardwareDeviceType type) {
  switch (type) {
    case OrtHardwareDeviceType_GPU:
      return "GPU";
    case OrtHardwareDeviceType_NPU:
      return "NPU";
    default:
      return "CPU";
  }
}

void PrintJson(const Json& json) {
  Print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
}

Json Pairs(const Ort::ConstKeyValuePairs& pairs) {
  Json json = Json::object();
  for (const auto& [key, value] : pairs.GetKeyValuePairs()) json[key] = value;
  return json;
}

Json Describe(const Ort::ConstEpDevice& device) {
  return {{"ep", device.EpName()},
          {"ep_vendor", device.EpVendor()},
          {"device", KindOf(device.Device().Type())},
          {"vendor", device.Device().Vendor()},
          {"vendor_id", device.Device().VendorId()},
          {"device_id", device.Device().DeviceId()},
          {"ep_metadata", Pairs(device.EpMetadata())},
          {"ep_options", Pairs(device.EpOptions())},
          {"device_metadata", Pairs(device.Device().Metadata())}};
}

// Provider -> operator -> how many nodes.
using Counts = std::map<std::string, std::map<std::string, int>>;

struct Assignment {
  Counts counts;
  Json nodes = Json::array();
};

Assignment AssignmentOf(const Ort::Session& session) {
  const OrtApi& api = Ort::GetApi();
  const OrtEpAssignedSubgraph* const* subgraphs = nullptr;
  size_t count = 0;
  Ort::ThrowOnError(api.Session_GetEpGraphAssignmentInfo(session, &subgraphs, &count));
  Assignment assignment;
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
      ++assignment.counts[provider][op_type];
      assignment.nodes.push_back(
          {{"ep", provider}, {"name", name}, {"domain", domain}, {"op_type", op_type}});
    }
  }
  return assignment;
}

}  // namespace

int Eps(const EpsCommand& command) {
  Ort::Env env(ORT_LOGGING_LEVEL_ERROR, "tenon");
  RegisterPlugins(env, command.plugins);
  Json json = Json::array();
  std::vector<std::vector<std::string>> rows = {{"provider", "version", "device", "vendor"}};
  for (const Ort::ConstEpDevice& device : env.GetEpDevices()) {
    json.push_back(Describe(device));
    const char* const version = device.EpMetadata().GetValue("version");
    rows.push_back({device.EpName(), version == nullptr ? "" : version,
                    KindOf(device.Device().Type()), device.Device().Vendor()});
  }
  if (command.json) {
    PrintJson(json);
  } else {
    Print("{}", TableText(rows, ""));
  }
  return 0;
}

int Placement(const PlacementCommand& command) {
  SessionSettings settings = command.session;
  settings.records_placement = true;
  const Model model(settings);
  const Assignment assignment = AssignmentOf(model.session);
  if (command.json) {
    PrintJson(assignment.nodes);
    return 0;
  }
  std::vector<std::vector<std::string>> rows = {{"provider", "nodes", "operators"}};
  for (const auto& [provider, operators] : assignment.counts) {
    int total = 0;
    std::vector<std::string> texts;
    for (const auto& [op_type, count] : operators) {
      total += count;
      texts.push_back(count == 1 ? op_type : Format("{} x {}", op_type, count));
    }
    rows.push_back({provider, std::to_string(total), Join(texts, ", ")});
  }
  Print("{}", TableText(rows, ""));
  return 0;
}

}  // namespace tenon::cli
