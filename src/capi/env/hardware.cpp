#include "capi/env/hardware.h"

#include <dirent.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <optional>
#include <string_view>

#include "base/cpu_info.h"

namespace tenon::capi {
namespace {

struct Vendor {
  uint32_t pci_id;
  const char* name;
};
constexpr Vendor kVendors[] = {{0x1002, "AMD"},    {0x10DE, "NVIDIA"},    {0x8086, "Intel"},
                               {0x13B5, "ARM"},    {0x1414, "Microsoft"}, {0x5143, "Qualcomm"},
                               {0x19E5, "Huawei"}, {0x106B, "Apple"}};

const char* VendorName(uint32_t pci_id) {
  const auto* const known = std::find_if(std::begin(kVendors), std::end(kVendors),
                                         [&](const Vendor& v) { return v.pci_id == pci_id; });
  return known == std::end(kVendors) ? "" : known->name;
}

// The number in a file such as "0x10de".
std::optional<uint32_t> ReadHex(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "re"),
                                                             &std::fclose);
  char word[16] = "";
  if (file == nullptr || std::fscanf(file.get(), "%15s", word) != 1) return std::nullopt;
  const std::string_view text = word;
  if (!text.starts_with("0x")) return std::nullopt;
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + text.size(), number, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// The names in a folder except those that begin with a dot; none if it cannot be read.
std::vector<std::string> NamesIn(const std::string& folder) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(opendir(folder.c_str()), &closedir);
  if (open == nullptr) return names;
  while (const dirent* const entry = readdir(open.get())) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  return names;
}

// By base class and subclass of PCI.
std::optional<OrtHardwareDeviceType> TypeOf(uint32_t pci_class) {
  constexpr uint32_t kDisplay = 0x03, kAccelerator = 0x12;
  switch (pci_class >> 16) {
    case kDisplay:
      return OrtHardwareDeviceType_GPU;
    case kAccelerator:
      return OrtHardwareDeviceType_NPU;
    default:
      return std::nullopt;
  }
}

// Cards have a bridge before them, as "0000:01:00.0" shows; parts of the processor are on bus 0.
bool IsOnFirstBus(std::string_view pci_bus_id) {
  const size_t bus = pci_bus_id.find(':');
  return bus != std::string_view::npos && pci_bus_id.substr(bus + 1, 3) == "00:";
}

// A maker of processors, by what its names contain.
struct CpuVendor {
  std::string_view in_model_name;
  const char* name;
  uint32_t pci_id;
};
constexpr CpuVendor kCpuVendors[] = {
    {"AMD", "AMD", 0x1022},
    {"Intel", "Intel", 0x8086},
    {"ARM", "ARM", 0x13B5},
};

std::unique_ptr<OrtHardwareDevice> DescribeCpu() {
  auto cpu = std::make_unique<OrtHardwareDevice>();
  const std::string model = CpuModelName();
  for (const CpuVendor& vendor : kCpuVendors) {
    if (model.find(vendor.in_model_name) == std::string::npos) continue;
    cpu->vendor = vendor.name;
    cpu->vendor_id = vendor.pci_id;
    break;
  }
  if (!model.empty()) cpu->metadata.Set("Description", model);
  return cpu;
}

}  // namespace

const OrtHardwareDevice& CpuHardware() {
  static const OrtHardwareDevice* const cpu = DescribeCpu().release();
  return *cpu;
}

std::vector<std::unique_ptr<OrtHardwareDevice>> FindPciAccelerators(const std::string& folder) {
  std::vector<std::unique_ptr<OrtHardwareDevice>> found;
  for (const std::string& bus_id : NamesIn(folder)) {
    const std::string path = folder + "/" + bus_id;
    const auto pci_class = ReadHex(path + "/class"), vendor = ReadHex(path + "/vendor"),
               device = ReadHex(path + "/device");
    const auto type = pci_class ? TypeOf(*pci_class) : std::nullopt;
    if (!type || !vendor || !device) continue;
    OrtHardwareDevice& hardware = *found.emplace_back(std::make_unique<OrtHardwareDevice>());
    hardware.type = *type;
    hardware.vendor_id = *vendor;
    hardware.vendor = VendorName(*vendor);
    hardware.device_id = *device;
    hardware.metadata.Set("pci_bus_id", bus_id);
    if (*type == OrtHardwareDeviceType_GPU) {
      hardware.metadata.Set("Discrete", IsOnFirstBus(bus_id) ? "0" : "1");
    }
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    const bool a_is_npu = a->type == OrtHardwareDeviceType_NPU;
    const bool b_is_npu = b->type == OrtHardwareDeviceType_NPU;
    if (a_is_npu != b_is_npu) return a_is_npu;
    return a->metadata.entries().at("pci_bus_id") < b->metadata.entries().at("pci_bus_id");
  });
  return found;
}

std::span<const OrtHardwareDevice* const> Hardware() {
  static const auto* const devices = [] {
    auto* const all = new std::vector<const OrtHardwareDevice*>();
    for (auto& accelerator : FindPciAccelerators("/sys/bus/pci/devices")) {
      all->push_back(accelerator.release());
    }
    all->push_back(&CpuHardware());
    return all;
  }();
  return *devices;
}

}  // namespace tenon::capi
