// A provider whose device has its own memory and streams, both made to reveal mistakes: work is
// done as late as the streams allow, and memory that no work has written holds NaN.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/provider.h"

namespace tenon {

// The events of one device.
struct DeviceLog {
  int copies_in = 0;   // from the CPU's memory
  int copies_out = 0;  // to it
  int allocations = 0;
  int live_blocks = 0;
  int streams = 0;
  int flushes = 0;
  int run_ends = 0;
  // The address of input 0 of every kernel that ran, in order.
  std::vector<const void*> inputs;
};

struct DeviceOptions {
  // Operators of domain "test" that it takes: any of Add, Scale and Repeat(x, n), which gives the
  // elements of x n times; n is read on the host.
  std::set<std::string> ops = {"Add", "Scale", "Repeat"};
  int32_t device_id = 0;
  bool has_streams = true;
  bool is_host_accessible = false;
  bool refuses_streams = false;
};

// `log` outlives the provider and every tensor of it.
std::unique_ptr<ExecutionProvider> MakeDeviceProvider(DeviceLog& log, DeviceOptions options = {});
// A tensor in the device's memory.
Tensor OnDevice(ExecutionProvider& provider, const Tensor& tensor);

}  // namespace tenon
