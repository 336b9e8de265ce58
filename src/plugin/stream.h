// Streams of plugins.
#pragma once

#include <memory>
#include <string_view>

#include "base/status.h"
#include "capi/value/sync_stream.h"
#include "plugin/made.h"

namespace tenon::plugin {

// Takes ownership of the stream that `provider` made. `device` is interned; `owner` keeps the
// plugin loaded. Error: kFail if it is null or lacks a slot.
Result<std::unique_ptr<OrtSyncStream>> AdoptStream(Made<OrtSyncStreamImpl> impl,
                                                   const MemoryInfo& device,
                                                   std::shared_ptr<void> owner,
                                                   std::string_view provider);

}  // namespace tenon::plugin
