// A fused node: plans for the shapes that it has met, and the weights on the device.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "executable.h"
#include "planner.h"

namespace opencl {

class CompiledGraph : public OrtNodeComputeInfo {
 public:
  // `inputs` and `outputs` are names of values, in the order of the kernel context. Uploads the
  // weights. `device` and `trace` outlive the graph.
  static Result<std::unique_ptr<CompiledGraph>> Create(Device& device, DeviceTrace& trace,
                                                       Graph graph,
                                                       const std::vector<std::string>& inputs,
                                                       const std::vector<std::string>& outputs);
  ~CompiledGraph();

  // Queues the work of one run on the context's stream; without one, does it.
  OrtStatus* Run(OrtKernelContext* context);
  // Forgets all plans and their memory.
  void ReleasePlans();

 private:
  CompiledGraph(Device& device, DeviceTrace& trace, Graph graph);

  // The inputs of one run.
  struct Feeds {
    std::vector<InputDescription> descriptions;
    std::vector<Location> locations;
    std::vector<int64_t> key;  // equal for feeds that share a plan
  };
  struct Entry {
    std::vector<int64_t> key;
    std::unique_ptr<Executable> executable;
  };
  Status UploadWeights();
  OrtStatus* ReadFeeds(OrtKernelContext* context, cl_command_queue queue, Feeds& feeds);
  Status ReadContents(cl_command_queue queue, const Location& location,
                      InputDescription& description);
  Result<Executable*> FindExecutable(const Feeds& feeds);

  Device& device_;
  DeviceTrace& trace_;
  Graph graph_;
  std::vector<int> inputs_;
  std::vector<int> outputs_;
  std::vector<bool> is_read_;         // by input: its contents choose the plan
  std::vector<cl_mem> weights_;       // by value
  cl_command_queue queue_ = nullptr;  // for runs without a stream
  std::mutex mutex_;                  // guards what follows, and the order of queueing
  std::list<Entry> executables_;      // the last used first
};

}  // namespace opencl
