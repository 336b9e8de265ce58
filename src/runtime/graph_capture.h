// The interface of a provider that records the work of a run and replays it without running nodes.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace tenon {

// Numbers of OrtGraphCaptureNodeAssignmentPolicy.
enum class CapturePolicy : int32_t {
  kAllNodes = 0,
  // The CPU may run nodes that depend on shapes alone; a replay does not run them again.
  kCpuForShapes = 1,
};

// Belongs to a provider. A graph is identified by the id in the run's config entry "gpu_graph_id";
// the provider reads it there when the run starts. Used by one thread at a time.
class GraphCapture {
 public:
  virtual ~GraphCapture() = default;

  virtual CapturePolicy policy() const { return CapturePolicy::kAllNodes; }
  // Whether a run with this id was recorded.
  virtual bool IsCaptured(int32_t id) const = 0;
  // Does the work of the recorded run again, on the same memory.
  virtual Status Replay(int32_t id) = 0;
  // Forgets the recorded run.
  virtual Status Release(int32_t id) {
    (void)id;
    return OkStatus();
  }
};

}  // namespace tenon
