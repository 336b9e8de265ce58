#include "runtime/run_hooks.h"

#include "base/exception_barrier.h"

namespace tenon {

Status RunHooks::Start() {
  for (ExecutionProvider* provider : providers_) {
    TENON_RETURN_IF_ERROR(CatchExceptions([&] { return provider->OnRunStart(run_); }));
    ++started_;
  }
  return OkStatus();
}

Status RunHooks::End(bool synchronize) {
  Status first;
  while (ended_ < started_) {
    ExecutionProvider* const provider = providers_[ended_++];
    Status status = CatchExceptions([&] { return provider->OnRunEnd(run_, synchronize); });
    if (first.ok()) first = std::move(status);
  }
  return first;
}

RunHooks::~RunHooks() {
  while (ended_ < started_) (void)HasMemoryFor([this] { (void)End(false); });
}

}  // namespace tenon
