// A libcuda for machines without a GPU: memory is the host's, copies are made at once, kernels are
// loaded but do nothing. It shows that the provider calls the driver rightly, and lets tests make
// calls fail: FAKE_CUDA_FAIL="cuMemcpyHtoDAsync_v2 2 700" fails the second call with error 700 and,
// as a lost device does, all later ones that do work.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>

namespace {

constexpr int kInvalidValue = 1;
constexpr int kOutOfMemory = 2;

std::mutex mutex;
std::map<uintptr_t, size_t> blocks;  // device memory that is alive
std::set<void*> streams;
std::set<void*> events;
std::map<void*, int> capturing;
thread_local void* current = nullptr;
std::atomic<int> lost{0};

// The error that this call shall have; counts it.
int Injected(const char* name) {
  struct Rule {
    std::string function;
    int number = 0;
    int error = 0;
  };
  static const Rule rule = [] {
    Rule made;
    const char* text = std::getenv("FAKE_CUDA_FAIL");
    char function[64] = {};
    if (text && std::sscanf(text, "%63s %d %d", function, &made.number, &made.error) == 3) {
      made.function = function;
    }
    return made;
  }();
  static std::atomic<int> calls{0};
  if (lost != 0) return lost;
  if (rule.function != name) return 0;
  if (++calls < rule.number) return 0;
  if (rule.error != kOutOfMemory) lost = rule.error;
  return rule.error;
}

bool IsDevice(uint64_t address, size_t size) {
  const std::lock_guard lock(mutex);
  auto it = blocks.upper_bound(address);
  if (it == blocks.begin()) return false;
  --it;
  return address + size <= it->first + it->second;
}

int Allocate(uint64_t* address, size_t size) {
  void* block = nullptr;
  if (posix_memalign(&block, 256, std::max<size_t>(size, 1)) != 0) return kOutOfMemory;
  std::memset(block, 0, size);
  *address = reinterpret_cast<uint64_t>(block);
  const std::lock_guard lock(mutex);
  blocks[*address] = std::max<size_t>(size, 1);
  return 0;
}

int Free(uint64_t address) {
  const std::lock_guard lock(mutex);
  if (blocks.erase(address) == 0) return kInvalidValue;
  std::free(reinterpret_cast<void*>(address));
  return 0;
}

void* New(std::set<void*>& all) {
  const std::lock_guard lock(mutex);
  void* made = new char;
  all.insert(made);
  return made;
}

}  // namespace

#define FAKE(name, parameters, ...)                                       \
  extern "C" __attribute__((visibility("default"))) int name parameters { \
    if (const int error = Injected(#name)) return error;                  \
    __VA_ARGS__                                                           \
    return 0;                                                             \
  }
// Calls that even a lost device answers.
#define FAKE_ALWAYS(name, parameters, ...)                                \
  extern "C" __attribute__((visibility("default"))) int name parameters { \
    __VA_ARGS__                                                           \
    return 0;                                                             \
  }

FAKE_ALWAYS(cuInit, (unsigned))
FAKE_ALWAYS(cuDriverGetVersion, (int* version), *version = 13000;)
FAKE_ALWAYS(cuGetErrorName, (int error, const char** name),
            *name = error == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_ILLEGAL_ADDRESS";)
FAKE_ALWAYS(cuGetErrorString, (int, const char** text), *text = "an injected error";)
FAKE_ALWAYS(cuDeviceGetCount, (int* count), *count = 1;)
FAKE_ALWAYS(cuDeviceGet, (int* device, int number), *device = number;)
FAKE_ALWAYS(cuDeviceGetName, (char* name, int size, int),
            std::snprintf(name, static_cast<size_t>(size), "a fake device");)
FAKE_ALWAYS(cuDeviceGetAttribute, (int* value, int attribute, int), {
  *value = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 16 ? 132 : 1;
  if (attribute == 97) *value = 227 * 1024;
})
FAKE_ALWAYS(cuDeviceTotalMem_v2, (size_t * size, int), *size = size_t{1} << 34;)
FAKE_ALWAYS(cuDevicePrimaryCtxRetain, (void** context, int), static char made; *context = &made;)
FAKE_ALWAYS(cuDevicePrimaryCtxRelease_v2, (int))
FAKE_ALWAYS(cuCtxSetCurrent, (void* context), current = context;)
FAKE(cuCtxSynchronize, ())
FAKE_ALWAYS(cuMemGetInfo_v2, (size_t * free, size_t* total), *free = *total = size_t{1} << 34;)
FAKE(cuMemAlloc_v2, (uint64_t * address, size_t size), return Allocate(address, size);)
FAKE_ALWAYS(cuMemFree_v2, (uint64_t address), return Free(address);)
FAKE(cuMemHostAlloc, (void** address, size_t size, unsigned), *address = std::malloc(size);)
FAKE_ALWAYS(cuMemFreeHost, (void* address), std::free(address);)
FAKE(cuMemAllocAsync, (uint64_t * address, size_t size, void*), {
  if (!current) return 201;
  return Allocate(address, size);
})
FAKE_ALWAYS(cuMemFreeAsync, (uint64_t address, void*), return Free(address);)
FAKE_ALWAYS(cuDeviceGetDefaultMemPool, (void** pool, int), static char made; *pool = &made;)
FAKE_ALWAYS(cuMemPoolSetAttribute, (void*, int, void*))
FAKE_ALWAYS(cuMemPoolTrimTo, (void*, size_t))
FAKE(cuMemcpyHtoD_v2, (uint64_t to, const void* from, size_t size), {
  if (!IsDevice(to, size)) return kInvalidValue;
  std::memcpy(reinterpret_cast<void*>(to), from, size);
})
FAKE(cuMemcpyHtoDAsync_v2, (uint64_t to, const void* from, size_t size, void*), {
  if (!IsDevice(to, size)) return kInvalidValue;
  std::memcpy(reinterpret_cast<void*>(to), from, size);
})
FAKE(cuMemcpyDtoHAsync_v2, (void* to, uint64_t from, size_t size, void*), {
  if (!IsDevice(from, size)) return kInvalidValue;
  std::memcpy(to, reinterpret_cast<const void*>(from), size);
})
FAKE(cuMemcpyDtoDAsync_v2, (uint64_t to, uint64_t from, size_t size, void*), {
  if (!IsDevice(from, size) || !IsDevice(to, size)) return kInvalidValue;
  std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), size);
})
FAKE(cuMemcpyPeerAsync, (uint64_t, void*, uint64_t, void*, size_t, void*))
FAKE(cuStreamCreate, (void** stream, unsigned), *stream = New(streams);)
FAKE_ALWAYS(cuStreamDestroy_v2, (void* stream), {
  const std::lock_guard lock(mutex);
  if (streams.erase(stream) == 0) return kInvalidValue;
  delete static_cast<char*>(stream);
})
FAKE(cuStreamSynchronize, (void*))
FAKE(cuStreamWaitEvent, (void*, void*, unsigned))
FAKE(cuStreamBeginCapture_v2, (void* stream, int), {
  const std::lock_guard lock(mutex);
  capturing[stream] = 1;
})
FAKE(cuStreamEndCapture, (void* stream, void** graph), {
  const std::lock_guard lock(mutex);
  capturing.erase(stream);
  *graph = new char;
})
FAKE_ALWAYS(cuStreamIsCapturing, (void* stream, int* status), {
  const std::lock_guard lock(mutex);
  *status = capturing.contains(stream) ? 1 : 0;
})
FAKE(cuGraphInstantiateWithFlags, (void** made, void*, unsigned long long), *made = new char;)
FAKE(cuGraphLaunch, (void*, void*))
FAKE_ALWAYS(cuGraphExecDestroy, (void* graph), delete static_cast<char*>(graph);)
FAKE_ALWAYS(cuGraphDestroy, (void* graph), delete static_cast<char*>(graph);)
FAKE(cuEventCreate, (void** event, unsigned), *event = New(events);)
FAKE_ALWAYS(cuEventDestroy_v2, (void* event), {
  const std::lock_guard lock(mutex);
  if (events.erase(event) == 0) return kInvalidValue;
  delete static_cast<char*>(event);
})
FAKE(cuEventRecord, (void*, void*))
FAKE(cuEventSynchronize, (void*))
FAKE(cuEventElapsedTime, (float* milliseconds, void*, void*), *milliseconds = 0.001f;)
FAKE(cuModuleLoadData, (void** module, const void*), *module = new char;)
FAKE_ALWAYS(cuModuleUnload, (void* module), delete static_cast<char*>(module);)
FAKE(cuModuleGetFunction, (void** function, void* module, const char*), *function = module;)
FAKE(cuFuncSetAttribute, (void*, int, int))
FAKE(cuLaunchKernel,
     (void*, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned,
      void*, void**, void**),
     {
       const bool fits = gx > 0 && gy > 0 && gz > 0 && gy < 65536 && gz < 65536 &&
                         bx * by * bz <= 1024 && bx * by * bz > 0;
       if (!fits) return kInvalidValue;
     })
