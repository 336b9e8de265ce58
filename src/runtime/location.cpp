#include "runtime/location.h"

#include "runtime/provider.h"

namespace tenon {

Location MemoryOf(ExecutionProvider& provider) {
  return {&provider.memory(), provider.allocator(), provider.constant_allocator()};
}

}  // namespace tenon
