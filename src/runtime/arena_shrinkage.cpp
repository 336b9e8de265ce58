#include "runtime/arena_shrinkage.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>

namespace tenon {
namespace {

constexpr std::string_view kEntry = "memory.enable_memory_arena_shrinkage";

struct NamedDevice {
  std::string_view name;
  DeviceType type;
};
constexpr NamedDevice kDevices[] = {
    {"cpu", DeviceType::kCpu},
    {"gpu", DeviceType::kGpu},
    {"fpga", DeviceType::kFpga},
    {"npu", DeviceType::kNpu},
};

struct Device {
  DeviceType type = DeviceType::kCpu;
  int32_t id = 0;
};

Result<Device> ParseDevice(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const auto* const known =
      std::find_if(std::begin(kDevices), std::end(kDevices),
                   [&](const NamedDevice& device) { return device.name == name; });
  if (known == std::end(kDevices) || colon == std::string_view::npos) {
    return InvalidArgument("'{}': expected cpu, gpu, fpga or npu, ':' and a number, got '{}'",
                           kEntry, text);
  }
  const std::string_view number = text.substr(colon + 1);
  Device device{known->type};
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), device.id);
  if (error != std::errc() || end != number.data() + number.size() || device.id < 0) {
    return InvalidArgument("'{}': '{}' is no number of a device", kEntry, number);
  }
  return device;
}

Status AddArenas(std::string_view text, std::span<const Location> locations,
                 std::vector<Allocator*>& arenas) {
  TENON_ASSIGN_OR_RETURN(const Device device, ParseDevice(text));
  bool is_known = false;
  for (const Location& location : locations) {
    const MemoryInfo& memory = *location.memory;
    if (memory.device_type != device.type || memory.device_id != device.id) continue;
    if (!location.allocator->CanShrink()) {
      return InvalidArgument("'{}': the allocator of '{}' cannot shrink", kEntry, text);
    }
    is_known = true;
    arenas.push_back(location.allocator.get());
  }
  if (is_known) return OkStatus();
  return InvalidArgument("'{}': the session has no allocator of '{}'", kEntry, text);
}

}  // namespace

Result<std::vector<Allocator*>> ArenasToShrink(const StringMap& config,
                                               std::span<const Location> locations) {
  std::vector<Allocator*> arenas;
  const auto entry = config.find(kEntry);
  if (entry == config.end()) return arenas;
  std::string_view rest = entry->second;
  for (bool is_last = false; !is_last;) {
    const size_t end = rest.find(';');
    is_last = end == std::string_view::npos;
    TENON_RETURN_IF_ERROR(AddArenas(rest.substr(0, end), locations, arenas));
    if (!is_last) rest.remove_prefix(end + 1);
  }
  return arenas;
}

}  // namespace tenon
