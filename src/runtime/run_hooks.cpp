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
  for (size_t i = 0; i < started_; ++i) {
    Status status = CatchExceptions([&] { return providers_[i]->OnRunEnd(run_, synchronize); });
    if (first.ok()) first = std::move(status);
  }
  started_ = 0;
  return first;
}

}  // namespace tenon
