#include "runtime/provider.h"

#include "runtime/profiler.h"

namespace tenon {

std::unique_ptr<ProviderProfiler> ExecutionProvider::CreateProfiler() { return nullptr; }

}  // namespace tenon
