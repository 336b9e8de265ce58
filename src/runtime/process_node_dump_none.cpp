// Where there may be no environment, as in WebAssembly.
#include "runtime/node_dump.h"

namespace tenon {

Result<NodeDump*> NodeDump::OfProcess() { return nullptr; }

}  // namespace tenon
