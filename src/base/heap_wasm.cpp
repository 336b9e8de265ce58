// A lock around the C library's heap, which for WebAssembly has none. The linker puts these
// functions in front of the library's (--wrap in CMakeLists.txt).
#include <cstddef>

#include "base/check.h"
#include "base/hosted_threads.h"
#include "base/mutex.h"

namespace {

constinit tenon::Mutex heap;

// Workers run parts of kernels, whose memory is planned before the run: only the thread that runs
// sessions allocates and frees.
tenon::Mutex& HeapOfSessions() {
  TENON_DCHECK(!tenon::IsHostedWorker());
  return heap;
}

}  // namespace

extern "C" {

void* __real_malloc(size_t bytes);
void* __real_calloc(size_t count, size_t bytes);
void* __real_realloc(void* block, size_t bytes);
void* __real_aligned_alloc(size_t alignment, size_t bytes);
int __real_posix_memalign(void** block, size_t alignment, size_t bytes);
void __real_free(void* block);

void* __wrap_malloc(size_t bytes) {
  const tenon::MutexLock lock(HeapOfSessions());
  return __real_malloc(bytes);
}

void* __wrap_calloc(size_t count, size_t bytes) {
  const tenon::MutexLock lock(HeapOfSessions());
  return __real_calloc(count, bytes);
}

void* __wrap_realloc(void* block, size_t bytes) {
  const tenon::MutexLock lock(HeapOfSessions());
  return __real_realloc(block, bytes);
}

void* __wrap_aligned_alloc(size_t alignment, size_t bytes) {
  const tenon::MutexLock lock(HeapOfSessions());
  return __real_aligned_alloc(alignment, bytes);
}

int __wrap_posix_memalign(void** block, size_t alignment, size_t bytes) {
  const tenon::MutexLock lock(HeapOfSessions());
  return __real_posix_memalign(block, alignment, bytes);
}

void __wrap_free(void* block) {
  const tenon::MutexLock lock(HeapOfSessions());
  __real_free(block);
}

}  // extern "C"
