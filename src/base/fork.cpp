#include "base/fork.h"

#include <pthread.h>

#include <atomic>

namespace tenon {
namespace {

constinit std::atomic<uint32_t> generation = 0;

// If it is registered twice, it only counts twice.
void WatchForks() {
  static constinit std::atomic<bool> watching = false;
  if (watching.load(std::memory_order_acquire)) return;
  pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });
  watching.store(true, std::memory_order_release);
}

}  // namespace

uint32_t ForkGeneration() {
  WatchForks();
  return generation.load(std::memory_order_relaxed);
}

}  // namespace tenon
