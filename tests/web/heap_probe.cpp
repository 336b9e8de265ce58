// A function of tenon.checked.wasm for the tests: a loop whose body uses the heap, which no
// kernel's does.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/thread_pool.h"

// Divides a loop of `chunks` chunks among the module's threads. Each takes memory and gives it
// back.
extern "C" __attribute__((export_name("tenon_use_heap_in_loop"))) void tenon_use_heap_in_loop(
    uint32_t chunks) {
  tenon::ThreadPool pool;
  pool.ParallelFor(chunks, 1, [](size_t begin, size_t) {
    const auto block = std::make_unique<volatile size_t[]>(1024);
    for (size_t i = 0; i < 1024; ++i) block[i] = begin;
  });
}
