// For hosts that may have no environment, such as WebAssembly.
#include "runtime/node_dump.h"

namespace tenon {

Result<NodeDump*> NodeDump::OfProcess() { return nullptr; }

}  // namespace tenon
