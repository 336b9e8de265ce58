// Copies that plugins do.
#pragma once

#include <onnxruntime_ep_c_api.h>

#include <memory>

#include "runtime/data_transfer.h"

namespace tenon::plugin {

// Takes the plugin's transfer over; `owner` keeps the plugin loaded.
std::shared_ptr<DataTransfer> AdoptDataTransfer(OrtDataTransferImpl* impl,
                                                std::shared_ptr<void> owner);

}  // namespace tenon::plugin
