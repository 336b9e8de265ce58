// OrtHardwareDevice: the processors and accelerators of this machine.
#pragma once

#include <onnxruntime_c_api.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "capi/boundary/key_value_pairs.h"

struct OrtHardwareDevice {
  OrtHardwareDeviceType type = OrtHardwareDeviceType_CPU;
  uint32_t vendor_id = 0;  // the PCI vendor
  std::string vendor;
  uint32_t device_id = 0;
  OrtKeyValuePairs metadata;
};

namespace tenon::capi {

// The CPU of this machine. Lives as long as the process.
const OrtHardwareDevice& CpuHardware();

// Found once; NPUs first, then GPUs, then the CPU, which is always there. Live as long as the
// process.
std::span<const OrtHardwareDevice* const> Hardware();

// The accelerators among the devices that Linux lists in a folder such as /sys/bus/pci/devices, in
// the order above. Metadata: pci_bus_id, and for GPUs Discrete ("1" or "0").
std::vector<std::unique_ptr<OrtHardwareDevice>> FindPciAccelerators(const std::string& folder);

}  // namespace tenon::capi
