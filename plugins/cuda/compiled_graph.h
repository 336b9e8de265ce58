// A fused node: plans for the shapes that it has met, and the weights on the device.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "executable.h"
#include "options.h"
#include "planner.h"

namespace cuda {

class CompiledGraph : public OrtNodeComputeInfo {
 public:
  // `inputs` and `outputs` are names of values, in the order of the kernel context. Uploads the
  // weights. `context`, `target` and `trace` outlive the graph.
  static Result<std::unique_ptr<CompiledGraph>> Create(Context& context, const Target& target,
                                                       DeviceTrace& trace, Graph graph,
                                                       const std::vector<std::string>& inputs,
                                                       const std::vector<std::string>& outputs);
  ~CompiledGraph();

  // Queues the work of one run on the context's stream; without one, does it.
  OrtStatus* Run(OrtKernelContext* context);
  // Forgets all plans and their memory.
  void ReleasePlans();

 private:
  CompiledGraph(Context& context, const Target& target, DeviceTrace& trace, Graph graph);

  // The inputs of one run.
  struct Feeds {
    std::vector<InputDescription> descriptions;
    std::vector<void*> addresses;
    std::vector<int64_t> key;  // equal for feeds that share a plan
  };
  struct Entry {
    std::vector<int64_t> key;
    std::shared_ptr<Executable> executable;
  };
  Status UploadWeights();
  Status Upload(const ValueInfo& value, void* target);
  OrtStatus* ReadFeeds(OrtKernelContext* context, CUstream stream, Feeds& feeds);
  Status Align(Feeds& feeds, std::span<void* const> outputs, CUstream stream,
               std::vector<void*>& copies);
  Status ReadContents(CUstream stream, const void* address, InputDescription& description);
  Result<std::shared_ptr<Executable>> FindExecutable(const Feeds& feeds);

  Context& context_;
  const Target& target_;
  DeviceTrace& trace_;
  Graph graph_;
  std::vector<int> inputs_;
  std::vector<int> outputs_;
  std::vector<bool> is_read_;     // by input: its contents choose the plan
  std::byte* memory_ = nullptr;   // of the weights
  std::vector<void*> weights_;    // by value
  CUstream stream_ = nullptr;     // for runs without a stream
  std::mutex mutex_;              // guards what follows, and the order of queueing
  std::list<Entry> executables_;  // the last used first
};

}  // namespace cuda
