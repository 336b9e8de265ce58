#include "plugins.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "text.h"

namespace tenon::cli {
namespace {

// The library would look in its own folder for a relative path.
std::string AbsolutePath(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

// The devices of a library.
std::vector<Ort::ConstEpDevice> DevicesOf(const Ort::Env& env, const std::string& library) {
  std::vector<Ort::ConstEpDevice> found;
  for (const Ort::ConstEpDevice& device : env.GetEpDevices()) {
    const char* const path = device.EpMetadata().GetValue("library_path");
    if (path != nullptr && path == library) found.push_back(device);
  }
  return found;
}

std::map<std::string, std::vector<Ort::ConstEpDevice>> ByProvider(const Ort::Env& env,
                                                                  const std::string& library) {
  std::map<std::string, std::vector<Ort::ConstEpDevice>> by_provider;
  for (const Ort::ConstEpDevice& device : DevicesOf(env, AbsolutePath(library))) {
    by_provider[device.EpName()].push_back(device);
  }
  return by_provider;
}

int Rank(const Ort::ConstEpDevice& device) {
  switch (device.Device().Type()) {
    case OrtHardwareDeviceType_GPU:
      return 0;
    case OrtHardwareDeviceType_NPU:
      return 1;
    default:
      return 2;
  }
}

Ort::ConstEpDevice Choose(const std::string& provider,
                          const std::vector<Ort::ConstEpDevice>& devices,
                          std::optional<size_t> place) {
  if (!place) return *std::ranges::min_element(devices, {}, Rank);
  if (*place >= devices.size()) {
    Fail("--ep-device {}: {} has {} device(s), counted from 0", *place, provider, devices.size());
  }
  return devices[*place];
}

}  // namespace

void RegisterPlugins(Ort::Env& env, const std::vector<std::string>& libraries) {
  for (const std::string& library : libraries) {
    const std::string path = AbsolutePath(library);
    try {
      env.RegisterExecutionProviderLibrary(path.c_str(), path);
    } catch (const Ort::Exception& exception) {
      Fail("--ep: {}", exception.what());
    }
    if (DevicesOf(env, path).empty()) Fail("--ep: '{}' finds no device that it can use", library);
  }
}

void UsePlugins(Ort::Env& env, const std::vector<std::string>& libraries,
                std::optional<size_t> place, Ort::SessionOptions& options) {
  for (const std::string& library : libraries) {
    for (const auto& [provider, devices] : ByProvider(env, library)) {
      options.AppendExecutionProvider_V2(env, {Choose(provider, devices, place)},
                                         Ort::KeyValuePairs());
    }
  }
}

std::vector<std::string> ProvidersOf(const Ort::Env& env,
                                     const std::vector<std::string>& libraries) {
  std::vector<std::string> names;
  for (const std::string& library : libraries) {
    for (const auto& [provider, devices] : ByProvider(env, library)) names.push_back(provider);
  }
  return names;
}

}  // namespace tenon::cli
