// Copies between the host, its pinned memory and the devices.
#pragma once

#include <memory>
#include <vector>

#include "api.h"
#include "device.h"

namespace cuda {

// Copies from and to ordinary host memory are complete on return. Those between pinned and device
// memory, and between devices, are only queued if they have a stream.
struct DataTransfer : OrtDataTransferImpl {
  // `devices` by the number in their memory infos; they outlive the transfer.
  explicit DataTransfer(const std::vector<std::unique_ptr<Device>>& devices);

  const std::vector<std::unique_ptr<Device>>& devices;
};

}  // namespace cuda
