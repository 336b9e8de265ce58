// A session with what its runs need, made once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "module.h"

namespace tenon::web {

// More dimensions than that no tensor of a run has.
constexpr size_t kMostDims = 32;

// What JavaScript writes of a feed, or of an output that it has memory for, and reads of an output
// after a run. The elements lie in row-major order. Strings are packed: for each a uint32_t with
// its bytes, and then those of all, one behind the other.
struct Slot {
  uint32_t is_used;  // whether the run has this feed or fetches this output
  uint32_t type;     // ONNXTensorElementDataType
  uint32_t rank;
  uint32_t byte_size;
  void* data;  // null for an output that the run is to allocate
  double dims[kMostDims];
};
static_assert(offsetof(Slot, dims) == 24 && sizeof(Slot) == 24 + kMostDims * sizeof(double));

// One side of a session's signature.
struct Side {
  std::vector<std::string> names;
  std::vector<Slot> slots;
  std::vector<Owned<OrtValue>> values;  // of the run that is not finished
};

struct Session {
  Owned<OrtSession> handle;
  OrtMemoryInfo* cpu_memory = nullptr;
  OrtAllocator* allocator = nullptr;
  Side inputs, outputs;
  std::vector<std::vector<char>> packed;  // strings of outputs
  std::string description;

  ~Session() { Api().ReleaseMemoryInfo(cpu_memory); }
};

}  // namespace tenon::web
