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

// Where a run stands that came to a partition of WebNN. Slots of inputs have data where the CPU's
// nodes made them; those of outputs where these read them, and it is then to be written.
struct Barrier {
  uint32_t partition;
  uint32_t input_count;
  uint32_t output_count;
  Slot* inputs;
  Slot* outputs;
};

// What a session with partitions of WebNN has besides.
struct Partitions {
  std::vector<Barrier> barriers;
  std::vector<std::vector<Slot>> slots;  // two for each barrier
  // Of the run that begins: what slots say, for the core.
  std::vector<TenonRunSlot> inputs, outputs;
  std::vector<int64_t> dims;
  const Barrier* current = nullptr;
};

struct Session {
  Owned<OrtSession> handle;
  Owned<TenonBarrierRun> barrier_run;  // null without WebNN
  Partitions partitions;
  OrtMemoryInfo* cpu_memory = nullptr;
  OrtAllocator* allocator = nullptr;
  Side inputs, outputs;
  std::vector<std::vector<char>> packed;  // strings of outputs
  std::string description;

  ~Session() { Api().ReleaseMemoryInfo(cpu_memory); }
};

}  // namespace tenon::web
