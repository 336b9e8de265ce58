#include "devices.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <string>

#include "value.h"

namespace tenon::python {
namespace {

struct HardwareDevice {
  const OrtHardwareDevice* device;
};

// Settings of an arena; -1, or 0 for max_mem, means the default.
struct ArenaConfig {
  size_t max_mem = 0;
  int arena_extend_strategy = -1;
  int initial_chunk_size_bytes = -1;
  int max_dead_bytes_per_chunk = -1;
  int initial_growth_chunk_size_bytes = -1;
  int64_t max_power_of_two_extend_bytes = -1;
};

ArenaConfig ReadArena(const std::map<std::string, int64_t>& entries) {
  ArenaConfig config;
  for (const auto& [key, value] : entries) {
    const int number = static_cast<int>(value);
    if (key == "max_mem") {
      config.max_mem = static_cast<size_t>(value);
    } else if (key == "arena_extend_strategy") {
      config.arena_extend_strategy = number;
    } else if (key == "initial_chunk_size_bytes") {
      config.initial_chunk_size_bytes = number;
    } else if (key == "max_dead_bytes_per_chunk") {
      config.max_dead_bytes_per_chunk = number;
    } else if (key == "initial_growth_chunk_size_bytes") {
      config.initial_growth_chunk_size_bytes = number;
    } else if (key == "max_power_of_two_extend_bytes") {
      config.max_power_of_two_extend_bytes = value;
    } else {
      throw nb::value_error(("an arena has no setting '" + key + "'").c_str());
    }
  }
  return config;
}

// No provider of this package makes one.
struct SyncStream {};

std::map<std::string, std::string> Read(const OrtKeyValuePairs* pairs) {
  const char* const* keys = nullptr;
  const char* const* values = nullptr;
  size_t count = 0;
  Api().GetKeyValuePairs(pairs, &keys, &values, &count);
  std::map<std::string, std::string> entries;
  for (size_t i = 0; i < count; ++i) entries[keys[i]] = values[i];
  return entries;
}

void BindMemory(nb::module_& module) {
  nb::class_<MemoryPlace>(module, "OrtMemoryInfo")
      .def("__init__",
           [](MemoryPlace* self, const std::string& name, int type, int id, int memory) {
             auto handle = Make<MemoryInfoHandle>(Api().CreateMemoryInfo, name.c_str(),
                                                  static_cast<OrtAllocatorType>(type), id,
                                                  static_cast<OrtMemType>(memory));
             const OrtMemoryInfo* const info = handle.get();
             new (self) MemoryPlace{std::move(handle), info};
           })
      .def_static("create_v2",
                  [](const std::string& name, int device_type, uint32_t vendor, int32_t id,
                     int memory, size_t alignment, int type) {
                    auto handle =
                        Make<MemoryInfoHandle>(Api().CreateMemoryInfo_V2, name.c_str(),
                                               static_cast<OrtMemoryInfoDeviceType>(device_type),
                                               vendor, id, static_cast<OrtDeviceMemoryType>(memory),
                                               alignment, static_cast<OrtAllocatorType>(type));
                    const OrtMemoryInfo* const info = handle.get();
                    return MemoryPlace{std::move(handle), info};
                  })
      .def_prop_ro("name",
                   [](const MemoryPlace& self) {
                     return std::string(Get<const char*>(Api().MemoryInfoGetName, self.info));
                   })
      .def_prop_ro(
          "device_id",
          [](const MemoryPlace& self) { return Get<int>(Api().MemoryInfoGetId, self.info); })
      .def_prop_ro("mem_type",
                   [](const MemoryPlace& self) {
                     return Get<OrtMemType>(Api().MemoryInfoGetMemType, self.info);
                   })
      .def_prop_ro("allocator_type",
                   [module](const MemoryPlace& self) {
                     const int type = Get<OrtAllocatorType>(Api().MemoryInfoGetType, self.info);
                     return module.attr("OrtAllocatorType")(type);
                   })
      .def_prop_ro(
          "device_mem_type",
          [](const MemoryPlace& self) { return Api().MemoryInfoGetDeviceMemType(self.info); })
      .def_prop_ro("device_vendor_id",
                   [](const MemoryPlace& self) { return Api().MemoryInfoGetVendorId(self.info); });
  nb::class_<ArenaConfig>(module, "OrtArenaCfg")
      .def("__init__",
           [](ArenaConfig* self, size_t max_mem, int strategy, int chunk, int dead) {
             new (self) ArenaConfig{max_mem, strategy, chunk, dead};
           })
      .def("__init__",
           [](ArenaConfig* self, const std::map<std::string, int64_t>& entries) {
             new (self) ArenaConfig(ReadArena(entries));
           })
      .def_rw("max_mem", &ArenaConfig::max_mem)
      .def_rw("arena_extend_strategy", &ArenaConfig::arena_extend_strategy)
      .def_rw("initial_chunk_size_bytes", &ArenaConfig::initial_chunk_size_bytes)
      .def_rw("max_dead_bytes_per_chunk", &ArenaConfig::max_dead_bytes_per_chunk)
      .def_rw("initial_growth_chunk_size_bytes", &ArenaConfig::initial_growth_chunk_size_bytes)
      .def_rw("max_power_of_two_extend_bytes", &ArenaConfig::max_power_of_two_extend_bytes);
}

void BindHardware(nb::module_& module) {
  nb::class_<HardwareDevice>(module, "OrtHardwareDevice")
      .def_prop_ro(
          "type", [](const HardwareDevice& self) { return Api().HardwareDevice_Type(self.device); })
      .def_prop_ro(
          "vendor",
          [](const HardwareDevice& self) { return Api().HardwareDevice_Vendor(self.device); })
      .def_prop_ro(
          "vendor_id",
          [](const HardwareDevice& self) { return Api().HardwareDevice_VendorId(self.device); })
      .def_prop_ro(
          "device_id",
          [](const HardwareDevice& self) { return Api().HardwareDevice_DeviceId(self.device); })
      .def_prop_ro("metadata", [](const HardwareDevice& self) {
        return Read(Api().HardwareDevice_Metadata(self.device));
      });
  nb::class_<SyncStream>(module, "OrtSyncStream").def("get_handle", [](const SyncStream&) {
    return 0;
  });
  nb::class_<EpDevice>(module, "OrtEpDevice")
      .def_prop_ro("ep_name",
                   [](const EpDevice& self) { return Api().EpDevice_EpName(self.device); })
      .def_prop_ro("ep_vendor",
                   [](const EpDevice& self) { return Api().EpDevice_EpVendor(self.device); })
      .def_prop_ro(
          "ep_metadata",
          [](const EpDevice& self) { return Read(Api().EpDevice_EpMetadata(self.device)); })
      .def_prop_ro("ep_options",
                   [](const EpDevice& self) { return Read(Api().EpDevice_EpOptions(self.device)); })
      .def_prop_ro(
          "device",
          [](const EpDevice& self) { return HardwareDevice{Api().EpDevice_Device(self.device)}; })
      .def("memory_info",
           [](const EpDevice& self, OrtDeviceMemoryType type) -> nb::object {
             const OrtMemoryInfo* const info = Api().EpDevice_MemoryInfo(self.device, type);
             return info == nullptr ? nb::none() : nb::cast(MemoryPlace{nullptr, info});
           })
      .def("create_sync_stream", [](const EpDevice& self) {
        OrtSyncStream* stream = nullptr;
        Check(Api().CreateSyncStreamForEpDevice(self.device, nullptr, &stream));
        return SyncStream();
      });
}

nb::list ListEpDevices() {
  const OrtEpDevice* const* devices = nullptr;
  size_t count = 0;
  Check(Api().GetEpDevices(Environment().get(), &devices, &count));
  nb::list list;
  for (size_t i = 0; i < count; ++i) list.append(nb::cast(EpDevice{devices[i]}));
  return list;
}

nb::object TextOrNone(char* text) {
  return text == nullptr ? nb::none() : nb::object(nb::str(TakeString(text).c_str()));
}

// What a compiled model says for a provider; None if nothing.
nb::object CompatibilityInfo(const std::string& path, const std::string& provider) {
  char* text = nullptr;
  CheckPlain(Api().GetCompatibilityInfoFromModel(path.c_str(), provider.c_str(), DefaultAllocator(),
                                                 &text));
  return TextOrNone(text);
}

nb::object CompatibilityInfoOfBytes(nb::bytes model, const std::string& provider) {
  char* text = nullptr;
  CheckPlain(Api().GetCompatibilityInfoFromModelBytes(model.c_str(), model.size(), provider.c_str(),
                                                      DefaultAllocator(), &text));
  return TextOrNone(text);
}

using IncompatibilityHandle =
    Handle<OrtDeviceEpIncompatibilityDetails, &OrtApi::ReleaseDeviceEpIncompatibilityDetails>;

nb::dict Incompatibility(const std::string& provider, const HardwareDevice& device) {
  const auto details =
      Make<IncompatibilityHandle>(Api().GetHardwareDeviceEpIncompatibilityDetails,
                                  Environment().get(), provider.c_str(), device.device);
  const auto* notes =
      Get<const char*>(Api().DeviceEpIncompatibilityDetails_GetNotes, details.get());
  nb::dict dict;
  dict["reasons_bitmask"] =
      Get<uint32_t>(Api().DeviceEpIncompatibilityDetails_GetReasonsBitmask, details.get());
  dict["notes"] = notes == nullptr ? nb::none() : nb::object(nb::str(notes));
  dict["error_code"] =
      Get<int32_t>(Api().DeviceEpIncompatibilityDetails_GetErrorCode, details.get());
  return dict;
}

nb::list ListHardware() {
  const auto count = Get<size_t>(Api().GetNumHardwareDevices, Environment().get());
  std::vector<const OrtHardwareDevice*> devices(count);
  Check(Api().GetHardwareDevices(Environment().get(), devices.data(), count));
  nb::list list;
  for (const OrtHardwareDevice* device : devices) list.append(nb::cast(HardwareDevice{device}));
  return list;
}

using ArenaHandle = Handle<OrtArenaCfg, &OrtApi::ReleaseArenaCfg>;

ArenaHandle MakeArena(const ArenaConfig& config) {
  const char* keys[] = {"max_mem",
                        "arena_extend_strategy",
                        "initial_chunk_size_bytes",
                        "max_dead_bytes_per_chunk",
                        "initial_growth_chunk_size_bytes",
                        "max_power_of_two_extend_bytes"};
  const int64_t wanted[] = {
      static_cast<int64_t>(config.max_mem),   config.arena_extend_strategy,
      config.initial_chunk_size_bytes,        config.max_dead_bytes_per_chunk,
      config.initial_growth_chunk_size_bytes, config.max_power_of_two_extend_bytes};
  std::vector<const char*> names;
  std::vector<size_t> values;
  for (size_t i = 0; i < std::size(keys); ++i) {
    if (wanted[i] < 0) continue;
    names.push_back(keys[i]);
    values.push_back(static_cast<size_t>(wanted[i]));
  }
  return Make<ArenaHandle>(Api().CreateArenaCfgV2, names.data(), values.data(), names.size());
}

void CopyTensors(nb::handle sources, nb::handle destinations, nb::handle) {
  std::vector<const OrtValue*> from;
  std::vector<OrtValue*> into;
  for (const nb::handle value : sources) from.push_back(nb::cast<Value&>(value).get());
  for (const nb::handle value : destinations) into.push_back(nb::cast<Value&>(value).get());
  if (from.size() != into.size()) throw nb::value_error("expected as many sources as destinations");
  Check(Api().CopyTensors(Environment().get(), from.data(), into.data(), nullptr, from.size()));
}

}  // namespace

std::vector<const OrtEpDevice*> ReadDevices(nb::handle devices) {
  std::vector<const OrtEpDevice*> list;
  for (const nb::handle device : devices) list.push_back(nb::cast<EpDevice&>(device).device);
  return list;
}

void BindDevices(nb::module_& module) {
  using Options = std::map<std::string, std::string>;
  BindMemory(module);
  BindHardware(module);
  module.def("get_ep_devices", &ListEpDevices);
  module.def("get_hardware_devices", &ListHardware);
  module.def("copy_tensors", &CopyTensors, nb::arg("src"), nb::arg("dst"),
             nb::arg("stream") = nb::none());
  module.def("get_model_compatibility_for_ep_devices",
             [](nb::handle devices, const std::string& info) {
               const auto list = ReadDevices(devices);
               OrtCompiledModelCompatibility result{};
               CheckPlain(Api().GetModelCompatibilityForEpDevices(list.data(), list.size(),
                                                                  info.c_str(), &result));
               return result;
             });
  module.def("get_compatibility_info_from_model", &CompatibilityInfo);
  module.def("get_compatibility_info_from_model_bytes", &CompatibilityInfoOfBytes);
  module.def("get_hardware_device_ep_incompatibility_details", &Incompatibility);
  module.def(
      "create_and_register_allocator",
      [](const MemoryPlace& memory, const ArenaConfig* config) {
        const ArenaHandle arena = config == nullptr ? nullptr : MakeArena(*config);
        Check(Api().CreateAndRegisterAllocator(Environment().get(), memory.info, arena.get()));
      },
      nb::arg(), nb::arg().none());
  module.def(
      "create_and_register_allocator_v2",
      [](const std::string& provider, const MemoryPlace& memory, const Options&,
         const ArenaConfig* config) {
        const ArenaHandle arena = config == nullptr ? nullptr : MakeArena(*config);
        Check(Api().CreateAndRegisterAllocatorV2(Environment().get(), provider.c_str(), memory.info,
                                                 arena.get(), nullptr, nullptr, 0));
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg().none());
  module.def("register_execution_provider_library", [](const std::string& name,
                                                       const std::string& path) {
    Check(Api().RegisterExecutionProviderLibrary(Environment().get(), name.c_str(), path.c_str()));
  });
  module.def("unregister_execution_provider_library", [](const std::string& name) {
    Check(Api().UnregisterExecutionProviderLibrary(Environment().get(), name.c_str()));
  });
}

}  // namespace tenon::python
