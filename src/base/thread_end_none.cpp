// ThreadEnd for WebAssembly: there is one thread, and it ends with the program.
#include "base/thread_end.h"

namespace tenon {

ThreadEnd::ThreadEnd(void (*)(void* object)) {}

bool ThreadEnd::SetObject(void*) { return true; }

}  // namespace tenon
