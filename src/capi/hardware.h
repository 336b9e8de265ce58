// The processors and accelerators of this machine.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "capi/ep_device.h"

namespace tenon::capi {

// Found once; NPUs first, then GPUs, then the CPU, which is always there. Live as long as the
// process.
std::span<const OrtHardwareDevice* const> Hardware();

// The accelerators among the devices that Linux lists in a folder such as /sys/bus/pci/devices, in
// the order above. Metadata: pci_bus_id, and for GPUs Discrete ("1" or "0").
std::vector<std::unique_ptr<OrtHardwareDevice>> FindPciAccelerators(const std::string& folder);

}  // namespace tenon::capi
