// A session with the objects that its runs need, which are made once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "module.h"

namespace tenon::web {

// No tensor of a run has more dimensions.
constexpr size_t kMostDims = 32;

// The record of a feed or output. JavaScript writes it for a feed, and for an output that has
// memory, and reads it for an output after a run. Elements are in row-major order. Strings are
// packed: first a uint32_t for each string with its number of bytes, then the bytes of all strings.
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
  std::vector<Owned<OrtValue>> values;  // of the unfinished run
};

// The position of a run at a partition of WebNN. Slots of inputs have data if nodes on the CPU made
// them. Slots of outputs have memory, which is to be written, if nodes on the CPU read them.
struct Barrier {
  uint32_t partition;
  uint32_t input_count;
  uint32_t output_count;
  Slot* inputs;
  Slot* outputs;
};

// The additional parts of a session with WebNN partitions.
struct Partitions {
  std::vector<Barrier> barriers;
  std::vector<std::vector<Slot>> slots;  // two for each barrier
  // The slots' content for the core, in the run that begins.
  std::vector<TenonRunSlot> inputs, outputs;
  std::vector<int64_t> dims;
  const Barrier* current = nullptr;
};

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

struct Session {
  std::vector<std::unique_ptr<void, Free>> kept;  // what the model's constants may be views into
  Owned<OrtSession> handle;
  Owned<TenonBarrierRun> barrier_run;  // null without WebNN
  Partitions partitions;
  OrtMemoryInfo* cpu_memory = nullptr;
  OrtAllocator* allocator = nullptr;
  Side inputs, outputs;
  std::vector<std::vector<char>> packed;  // of string outputs
  std::string description;

  ~Session() { Api().ReleaseMemoryInfo(cpu_memory); }
};

}  // namespace tenon::web
