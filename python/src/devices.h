// Enumerations, memory locations and devices of the Python package.
#pragma once

#include <vector>

#include "api.h"

namespace tenon::python {

// A memory location in Python's terms.
struct MemoryPlace {
  MemoryInfoHandle handle;
  const OrtMemoryInfo* info = nullptr;  // `handle`, or an info with another owner
};

// A device of a provider; lives as long as the process.
struct EpDevice {
  const OrtEpDevice* device;
};

// Handles of Python's list of devices.
std::vector<const OrtEpDevice*> ReadDevices(nb::handle devices);

void BindEnumerations(nb::module_& module);
void BindDevices(nb::module_& module);

}  // namespace tenon::python
