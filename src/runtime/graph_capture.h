// What a provider offers that records the work of a run, to replay it without running the nodes.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace tenon {

// Numbers of OrtGraphCaptureNodeAssignmentPolicy.
enum class CapturePolicy : int32_t {
  kAllNodes = 0,
  // The CPU may have what depends on nothing but shapes, which a replay does not run again.
  kCpuForShapes = 1,
};

// Belongs to a provider. Graphs are told apart by their id, which a run names in its config entry
// "gpu_graph_id"; the provider reads it there when the run starts. Used by one thread at a time.
class GraphCapture {
 public:
  virtual ~GraphCapture() = default;

  virtual CapturePolicy policy() const { return CapturePolicy::kAllNodes; }
  // Whether a run with this id was recorded.
  virtual bool IsCaptured(int32_t id) const = 0;
  // Does the work of the recorded run again, on the memory that it worked on.
  virtual Status Replay(int32_t id) = 0;
  // Forgets it.
  virtual Status Release(int32_t id) {
    (void)id;
    return OkStatus();
  }
};

}  // namespace tenon
