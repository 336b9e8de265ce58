// Copies by plugins.
#pragma once

#include <onnxruntime_ep_c_api.h>

#include <memory>
#include <string_view>

#include "plugin/made.h"
#include "runtime/data_transfer.h"

namespace tenon::plugin {

// Takes over the transfer that `provider` made; `owner` keeps the plugin loaded. Error: kFail if it
// lacks a slot.
Result<std::shared_ptr<DataTransfer>> AdoptDataTransfer(Made<OrtDataTransferImpl> impl,
                                                        std::shared_ptr<void> owner,
                                                        std::string_view provider);

}  // namespace tenon::plugin
