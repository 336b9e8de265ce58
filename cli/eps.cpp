// tenon eps: lists execution providers.
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

}  // namespace tenon::cli
