// Streams of plugins.
#pragma once

#include <memory>

#include "base/status.h"
#include "capi/sync_stream.h"

namespace tenon::plugin {

// Takes the plugin's stream over. `device` is interned; `owner` keeps the plugin loaded.
std::unique_ptr<OrtSyncStream> AdoptStream(OrtSyncStreamImpl* impl, const MemoryInfo& device,
                                           std::shared_ptr<void> owner);

}  // namespace tenon::plugin
