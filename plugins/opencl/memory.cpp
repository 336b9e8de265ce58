#include "memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <iterator>

namespace opencl {
namespace {

constexpr size_t kRangeBytes = size_t{1} << 42;  // addresses, not memory
constexpr size_t kAlignment = 4096;

}  // namespace

AddressSpace::~AddressSpace() {
  for (const auto& [address, block] : blocks_) Cl().clReleaseMemObject(block.buffer);
  if (range_) munmap(range_, kRangeBytes);
}

// The first gap at or after `next_`, then from the start; 0 if there is none.
uintptr_t AddressSpace::FindGap(size_t size) {
  const auto start = reinterpret_cast<uintptr_t>(range_);
  for (const uintptr_t from : {next_, start}) {
    uintptr_t candidate = from;
    for (auto it = blocks_.lower_bound(from); it != blocks_.end(); ++it) {
      if (it->first - candidate >= size) break;
      candidate = it->first + it->second.size;
    }
    if (start + kRangeBytes - candidate >= size) return candidate;
  }
  return 0;
}

void* AddressSpace::Allocate(size_t size_bytes) {
  if (size_bytes > kRangeBytes / 2) return nullptr;
  cl_int error = CL_SUCCESS;
  const cl_mem buffer = Cl().clCreateBuffer(context_, CL_MEM_READ_WRITE,
                                            std::max<size_t>(size_bytes, 1), nullptr, &error);
  if (error != CL_SUCCESS) return nullptr;
  const size_t size = (std::max<size_t>(size_bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  const std::lock_guard lock(mutex_);
  if (!range_) {
    void* range =
        mmap(nullptr, kRangeBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range != MAP_FAILED) range_ = range;
    next_ = reinterpret_cast<uintptr_t>(range_);
  }
  const uintptr_t address = range_ ? FindGap(size) : 0;
  if (address == 0) {
    Cl().clReleaseMemObject(buffer);
    return nullptr;
  }
  blocks_.emplace(address, Block{size, buffer});
  next_ = address + size;
  return reinterpret_cast<void*>(address);
}

void AddressSpace::Free(void* address) {
  const std::lock_guard lock(mutex_);
  const auto it = blocks_.find(reinterpret_cast<uintptr_t>(address));
  if (it == blocks_.end()) return;
  Cl().clReleaseMemObject(it->second.buffer);
  blocks_.erase(it);
}

Result<Location> AddressSpace::Find(const void* address) const {
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  const std::lock_guard lock(mutex_);
  const auto next = blocks_.upper_bound(wanted);
  if (next != blocks_.begin()) {
    const auto it = std::prev(next);
    if (wanted - it->first < it->second.size)
      return Location{it->second.buffer, wanted - it->first};
  }
  return Failure("expected memory of the OpenCL device, got address {}", address);
}

}  // namespace opencl
