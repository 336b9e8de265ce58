// What JavaScript calls for its workers, and how they wait. A worker is an instance of the module
// on the same memory, with a stack and a block for thread-local variables of its own.
#include <atomic>
#include <cstdlib>

#include "base/futex.h"
#include "base/hosted_threads.h"

namespace {

constinit std::atomic<bool> has_failed = false;  // a worker trapped
thread_local constinit bool may_wait = false;
thread_local constinit bool is_worker = false;

}  // namespace

namespace tenon {

void WaitOnHost(const std::atomic<uint32_t>& word, uint32_t expected) {
  constexpr int64_t kNanoseconds = 100'000'000;  // after which the caller sees that a worker failed
  if (!is_worker && has_failed.load(std::memory_order_acquire)) std::abort();
  if (!may_wait) return;
  auto* const address = reinterpret_cast<int*>(const_cast<std::atomic<uint32_t>*>(&word));
  __builtin_wasm_memory_atomic_wait32(address, static_cast<int>(expected), kNanoseconds);
}

bool IsHostedWorker() { return is_worker; }

}  // namespace tenon

#define TENON_HOST_EXPORT(name) extern "C" __attribute__((export_name(#name)))

// Called before the first session. `caller_may_wait`: the thread that runs sessions is not that of
// a page.
TENON_HOST_EXPORT(tenon_expect_workers)
void tenon_expect_workers(uint32_t count, bool caller_may_wait) {
  may_wait = caller_may_wait;
  tenon::ExpectHostedWorkers(count);
}

// Does not return.
TENON_HOST_EXPORT(tenon_run_worker) void tenon_run_worker(uint32_t index) {
  may_wait = true;
  is_worker = true;
  tenon::RunHostedWorker(index);
}

// A worker trapped: its part of a loop will never be done, so the thread that waits for it traps.
TENON_HOST_EXPORT(tenon_worker_failed) void tenon_worker_failed() {
  has_failed.store(true, std::memory_order_release);
}
