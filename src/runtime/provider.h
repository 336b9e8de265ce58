// An execution provider owns a device, claims nodes and makes kernels for them. Built-in providers
// implement this interface; plugin providers reach it through one adapter.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/logging.h"
#include "base/status.h"
#include "base/string_map.h"
#include "ir/node.h"
#include "tensor/allocator.h"

namespace tenon {

class DataTransfer;
class GraphCapture;
class Kernel;
class KernelInfo;
class PassRunner;
struct RunOptions;
class ShapeFunctionTable;
class Stream;

// Nodes that a provider wants: either one node with a kernel, or several to be fused into one.
struct Claim {
  std::vector<NodeId> nodes;
  bool fuse = false;
  // The constants that fused nodes read go with the body and do not become inputs of the new node.
  bool drop_constants = false;
};

// Nodes that were fused into one. The first inputs of `body` are the node's inputs, followed by
// constants that it kept. The outputs are the same.
struct FusedNode {
  FusedNode(NodeId node, std::unique_ptr<Graph> graph);
  FusedNode(FusedNode&&) noexcept;
  FusedNode& operator=(FusedNode&&) noexcept;
  ~FusedNode();

  NodeId id;
  std::unique_ptr<Graph> body;
};

// Numbers of TenonSessionEndInfo.
enum class SessionEndReason : uint32_t {
  kReleased = 0,
  kInitFailed = 1,
  kReplacedByFallback = 2,
  kAgentClosed = 3,
};

struct SessionEndInfo {
  SessionEndReason reason = SessionEndReason::kReleased;
  uint32_t session_id = 0;
  bool is_profiling = false;
  uint64_t completed_runs = 0;
};

class ProviderProfiler;

// One instance serves one session. Methods are called by the thread that creates or destroys the
// session, except the run hooks, which the threads that run call. The order of calls is that of
// provider-lifecycle: every start hook has its end hook, and OnSessionEnd is called exactly once.
class ExecutionProvider {
 public:
  virtual ~ExecutionProvider() = default;

  // E.g. "CPUExecutionProvider". Constant.
  virtual const std::string& name() const = 0;
  virtual StringMap options() const { return {}; }

  // --- registration with a session, before anything else: in this order, with
  // SupportsConcurrentRuns, data_transfer, and, if the session is profiled, CreateProfiler ---

  // Changes config entries of the session that the provider cannot work with. Changes are logged.
  virtual void AdjustConfig(StringMap& config) { (void)config; }
  // Shape functions of the provider's own operators; null if it has none. Lives as long as it.
  virtual const ShapeFunctionTable* operators() const { return nullptr; }
  // The session's logger, which outlives the provider. Called after data_transfer.
  virtual void SetLogger(const Logger& logger) { (void)logger; }

  // The nodes of `graph` that the provider wants among those without a provider, in any order.
  // Subgraphs are asked about separately. Idempotent. An error is logged and counts as no claim.
  virtual Result<std::vector<Claim>> GetCapability(const Graph& graph) = 0;

  // Whether the provider prefers images with their channels last. Nodes that it claims and that
  // have such a form then come back to it in domain com.ms.internal.nhwc, unless it exempts them.
  // An error fails the session.
  virtual Result<bool> PrefersChannelsLast() { return false; }
  virtual Result<bool> WantsChannelsLast(const Node& node) {
    (void)node;
    return true;
  }

  // Takes the groups of one graph that it claimed. Each is now one node of `graph` that the
  // provider owns, named <provider>_<model>_<number>. CreateKernel is called for each. An error
  // fails the session.
  virtual Status Compile(const Graph& graph, std::vector<FusedNode> nodes);

  // Whether AdaptUnclaimed would make the node one that this provider claims. Otherwise its
  // operator's function body takes its place, if there is one.
  virtual bool CanAdapt(const Graph& graph, const Node& node) const {
    (void)graph, (void)node;
    return false;
  }

  // Rewrites nodes that no provider claimed into nodes that this provider will claim, if it can.
  // Called after all providers were asked; all are asked again if it returns true. `index` is that
  // of this provider, for nodes that are to be its own in any case.
  virtual Result<bool> AdaptUnclaimed(Graph& graph, [[maybe_unused]] int32_t index) {
    (void)graph;
    return false;
  }

  // Rewrites the nodes that this provider owns (node.provider == index), e.g. into fused nodes or
  // another layout, each set of rules as a pass of `passes`. New nodes must have the same provider.
  virtual Status Rewrite(Graph& graph, int32_t index, PassRunner& passes) {
    (void)graph, (void)index, (void)passes;
    return OkStatus();
  }

  // Makes the kernel of a node that the provider claimed.
  virtual Result<std::unique_ptr<Kernel>> CreateKernel(KernelInfo& info) = 0;

  // Whether runs of one session may overlap in time.
  virtual bool SupportsConcurrentRuns() const { return true; }

  // Null unless the provider records runs. Called once the session has its kernels. If several
  // providers record runs, the first one is used.
  virtual GraphCapture* graph_capture() { return nullptr; }

  // --- memory ---
  // The memory of its kernels' inputs and outputs, except those that a kernel wants on the host.
  virtual const MemoryInfo& memory() const { return CpuMemory(); }
  // Allocates in memory(); called only if that is not the CPU's. Lives as long as its blocks. A
  // block may be freed before its stream has finished with it: until then it may only be given to
  // later work of that stream.
  virtual std::shared_ptr<Allocator> allocator() { return SharedCpuAllocator(); }
  // Like allocator(), for constants, which are written once.
  virtual std::shared_ptr<Allocator> constant_allocator() { return allocator(); }
  // Copies between memory() and the CPU's memory; null if the host can reach memory().
  virtual std::shared_ptr<DataTransfer> data_transfer() { return nullptr; }
  // Whether its kernels hand their work to a stream and return before it is done.
  virtual bool HasStreams() const { return false; }
  // A stream for one run at a time. Called only if HasStreams().
  virtual Result<std::unique_ptr<Stream>> CreateStream();

  // --- life of the session ---

  virtual Status OnSessionInitialized() { return OkStatus(); }
  virtual Status OnRunStart(const RunOptions& run) {
    (void)run;
    return OkStatus();
  }
  virtual Status OnRunEnd(const RunOptions& run, bool synchronize) {
    (void)run, (void)synchronize;
    return OkStatus();
  }
  // Blocks until the device is idle.
  virtual Status Synchronize() { return OkStatus(); }
  // A profiler of the device for one session or one run; null if there is none.
  virtual std::unique_ptr<ProviderProfiler> CreateProfiler();
  // Changes options while runs may be in progress. It ignores options that it does not know: they
  // may be meant for another provider.
  virtual Status SetDynamicOptions(const StringMap& changed) {
    (void)changed;
    return OkStatus();
  }
  // The session ends; all that it owns is still alive. Called once, before anything is freed, when
  // no run is in progress. A failure is logged and has no other effect.
  virtual Status OnSessionEnd(const SessionEndInfo& info) {
    (void)info;
    return OkStatus();
  }
};

}  // namespace tenon
