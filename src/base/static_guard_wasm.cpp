// Guards of the variables that a function makes at its first call. Those of the library for
// WebAssembly are for one thread.
#include <atomic>
#include <cstdint>

namespace {

// The compiler itself reads the lowest bit before it calls a function of the guard.
constexpr uint32_t kNew = 0;
constexpr uint32_t kDone = 1;
constexpr uint32_t kBusy = 0x100;  // a thread makes the variable

}  // namespace

extern "C" {

// Whether the caller shall make the variable.
int __cxa_guard_acquire(std::atomic<uint32_t>* guard) {
  for (;;) {
    uint32_t state = kNew;
    if (guard->compare_exchange_weak(state, kBusy, std::memory_order_acquire)) return 1;
    if (state == kDone) return 0;
  }
}

void __cxa_guard_release(std::atomic<uint32_t>* guard) {
  guard->store(kDone, std::memory_order_release);
}

void __cxa_guard_abort(std::atomic<uint32_t>* guard) {
  guard->store(kNew, std::memory_order_release);
}

}  // extern "C"
