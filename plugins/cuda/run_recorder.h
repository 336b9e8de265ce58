// Whole runs of a session, for the runtime's capture interface (option enable_cuda_graph).
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "executable.h"

namespace cuda {

// A recorded run is the plans that it ran, with the addresses of their inputs and outputs, which
// the runtime keeps. Each of them has a CUDA graph by then, so that a replay launches graphs and
// nothing else. Thread-safe.
class RunRecorder {
 public:
  explicit RunRecorder(Device& device) : device_(device) {}

  // A run with this number begins; below 0, or recorded already: it is not recorded.
  void Begin(int id);
  // The run that began has run a plan.
  void Add(const std::shared_ptr<Executable>& executable, CUstream stream,
           const std::vector<void*>& inputs, const std::vector<void*>& outputs);
  // The run ends. Only one that did all its work is kept.
  void End(bool is_complete);
  bool IsRecorded(int id) const;
  // Runs the same again and waits for it. Error: there is no such run, or the driver's.
  Status Replay(int id, DeviceTrace& trace);
  void Forget(int id);

 private:
  struct Step {
    std::shared_ptr<Executable> executable;
    CUstream stream;
    std::vector<void*> inputs;
    std::vector<void*> outputs;
  };

  Device& device_;
  mutable std::mutex mutex_;
  std::map<int, std::vector<Step>> runs_;
  std::vector<Step> current_;
  int current_id_ = -1;
};

}  // namespace cuda
