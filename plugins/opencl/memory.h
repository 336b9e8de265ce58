// Device memory under addresses. OpenCL 1.2 has handles of buffers, the runtime has pointers to
// which it may add offsets: each block gets a part of a range of addresses that is reserved and
// never mapped, so that a stray access by the host faults.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>

#include "library.h"

namespace opencl {

// A place in a buffer.
struct Location {
  cl_mem buffer = nullptr;
  size_t offset_bytes = 0;
};

// Thread-safe.
class AddressSpace {
 public:
  explicit AddressSpace(cl_context context) : context_(context) {}
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  // Null if the device has no such memory. A block of 0 bytes has an address too.
  void* Allocate(size_t size_bytes);
  // Work that is queued may still use the block: OpenCL frees it after that.
  void Free(void* address);
  // Where an address within a live block lies.
  Result<Location> Find(const void* address) const;

 private:
  struct Block {
    size_t size;
    cl_mem buffer;
  };
  uintptr_t FindGap(size_t size);

  cl_context context_;
  mutable std::mutex mutex_;
  std::map<uintptr_t, Block> blocks_;  // by address
  void* range_ = nullptr;
  uintptr_t next_ = 0;  // where the search for a gap starts
};

}  // namespace opencl
