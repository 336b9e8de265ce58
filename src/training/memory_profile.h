// A file that shows, in Chrome's format for traces, which tensors training steps held, where and
// when.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/logging.h"
#include "base/mutex.h"
#include "runtime/placement.h"

namespace tenon {

// Thread-safe.
//
// Each group of events is a process of the trace: "initializers" once, and for each execution of
// all stages "static activations_<iteration>", which lie in the slabs of memory plans, and "dynamic
// activations_<iteration>". A step of the plan is a thread. Its events are the tensors that live
// during the step: `ts` is the offset and `dur` the size, in bytes. Offsets are those in the slab
// of a location, of dynamic tensors the distance from the lowest address.
class MemoryProfile {
 public:
  // `folder` gets the file. The plan and the logger outlive the profile.
  MemoryProfile(std::string folder, const Plan& plan, const Logger& logger);
  // Writes "memory_profile_<local rank>_<number of the profile>.json". The log tells of an error.
  ~MemoryProfile();
  MemoryProfile(const MemoryProfile&) = delete;
  MemoryProfile& operator=(const MemoryProfile&) = delete;

  void set_local_rank(int32_t rank) { local_rank_ = rank; }
  // Adds the groups of an execution. Beyond 256 MiB of text they are left out, as the log tells.
  void Add(uint64_t iteration, std::span<const Placement> placements);

 private:
  // A tensor while it lives: in the steps [first, last].
  struct Block {
    std::string_view name;
    uint32_t first, last;
    size_t offset, bytes;
  };

  // These are called with the mutex locked.
  void AddInitializers();
  void AddGroup(const std::string& name, std::span<const Block> blocks);
  void AddMetadata(std::string_view kind, std::string_view key, std::string_view value);
  void AddTensor(uint32_t step, const Block& block);
  // `live`: the tensors of the step.
  void AddSummary(uint32_t step, std::span<const Block* const> live);
  void AddLine(const std::string& line);
  std::string_view NameOf(Slot slot) const;

  const std::string folder_;
  const Plan& plan_;
  const Logger& logger_;
  const uint32_t number_;
  int32_t local_rank_ = 0;
  Mutex mutex_;
  uint64_t groups_ = 0;
  std::string lines_;
};

}  // namespace tenon
