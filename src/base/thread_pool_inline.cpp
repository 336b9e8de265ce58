// ThreadPool without threads, as in WebAssembly: the caller does all the work.
#include <utility>

#include "base/thread_pool.h"

namespace tenon {

ThreadPool::ThreadPool(ThreadPoolOptions options) : options_(std::move(options)), threads_(1) {}

ThreadPool::~ThreadPool() = default;

Status ThreadPool::Start() { return OkStatus(); }

void ThreadPool::RunDivided(size_t n, size_t grain, Body body, const StopSignal* stop) noexcept {
  RunInline(n, grain, body, stop);
}

}  // namespace tenon
