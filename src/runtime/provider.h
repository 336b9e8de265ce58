// An execution provider: owns a device, claims nodes and makes kernels for them. Built-in providers
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
struct RunOptions;
class ShapeFunctionTable;
class Stream;

// Nodes that a provider wants: either one node with a kernel, or some to become one node.
struct Claim {
  std::vector<NodeId> nodes;
  bool fuse = false;
  // The constants that fused nodes read go with the body and are no inputs of the new node.
  bool drop_constants = false;
};

// Nodes that became one. The inputs of `body` are the first of the node's; constants that it kept
// follow them. The outputs are the same.
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

// One instance serves one session. Calls come from the thread that creates or destroys the session,
// except the run hooks, which come from the threads that run. The order of calls is that of
// provider-lifecycle: every hook of a start has its end, and OnSessionEnd comes exactly once.
class ExecutionProvider {
 public:
  virtual ~ExecutionProvider() = default;

  // E.g. "CPUExecutionProvider". Constant.
  virtual const std::string& name() const = 0;
  virtual StringMap options() const { return {}; }

  // --- registration with a session, before anything else: in this order, with
  // SupportsConcurrentRuns, data_transfer, and, if the session is profiled, CreateProfiler ---

  // Changes config entries of the session that the provider cannot work with. What it changes is
  // logged.
  virtual void AdjustConfig(StringMap& config) { (void)config; }
  // Operators that the provider brings along; null if there are none. Lives as long as it.
  virtual const ShapeFunctionTable* operators() const { return nullptr; }
  // The session's logger, which outlives the provider. After data_transfer.
  virtual void SetLogger(const Logger& logger) { (void)logger; }

  // Which nodes of `graph` that nobody owns yet it wants, in any order. Subgraphs are asked about
  // separately. Idempotent. An error is logged and counts as no claim.
  virtual Result<std::vector<Claim>> GetCapability(const Graph& graph) = 0;

  // Whether it wants images with their channels last: nodes that it claims and that have such a
  // form then come back to it in domain com.ms.internal.nhwc, if it does not exempt them. An error
  // fails the session.
  virtual Result<bool> PrefersChannelsLast() { return false; }
  virtual Result<bool> WantsChannelsLast(const Node& node) {
    (void)node;
    return true;
  }

  // Takes the groups of one graph that it claimed, as nodes of `graph` that it owns now, named
  // <provider>_<model>_<number>. CreateKernel will be called for each. An error fails the session.
  virtual Status Compile(const Graph& graph, std::vector<FusedNode> nodes) {
    (void)graph, (void)nodes;
    return NotImplemented("{} cannot compile nodes that it fuses", name());
  }

  // Rewrites nodes that no provider wanted into such that this one will, if it can. Called after
  // everybody was asked; all are asked again if it returns true.
  virtual Result<bool> AdaptUnclaimed(Graph& graph) {
    (void)graph;
    return false;
  }

  // Rewrites the nodes that this provider owns (node.provider == index), e.g. into fused nodes or
  // another layout. New nodes must be owned by it too.
  virtual Status Rewrite(Graph& graph, int32_t index) {
    (void)graph, (void)index;
    return OkStatus();
  }

  // Makes the kernel of a node that it claimed.
  virtual Result<std::unique_ptr<Kernel>> CreateKernel(KernelInfo& info) = 0;

  // Whether runs of one session may overlap.
  virtual bool SupportsConcurrentRuns() const { return true; }

  // Asked once the session has its kernels: null unless it records runs. Of several providers that
  // do, the first one counts.
  virtual GraphCapture* graph_capture() { return nullptr; }

  // --- memory ---
  // Where its kernels' inputs and outputs live, unless a kernel says that one is the host's.
  virtual const MemoryInfo& memory() const { return CpuMemory(); }
  // Gives memory of memory(); asked only if that is not the CPU's. Lives as long as its blocks. A
  // block may be freed before the stream that uses it has come so far: it then goes to nobody but
  // later work of that stream.
  virtual std::shared_ptr<Allocator> allocator() { return SharedCpuAllocator(); }
  // The same for constants, which are written once.
  virtual std::shared_ptr<Allocator> constant_allocator() { return allocator(); }
  // What copies between memory() and the CPU's memory; null if the host can reach it.
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
  // A profiler of the device for one session or one run; null if it has none.
  virtual std::unique_ptr<ProviderProfiler> CreateProfiler();
  // Changes options while runs may be in flight. Options that it does not know may be another
  // provider's.
  virtual Status SetDynamicOptions(const StringMap& changed) {
    (void)changed;
    return OkStatus();
  }
  // The session ends; everything that it owns is still alive. Called once, before anything is
  // freed, when no run is in flight. A failure is logged and changes nothing.
  virtual Status OnSessionEnd(const SessionEndInfo& info) {
    (void)info;
    return OkStatus();
  }
};

}  // namespace tenon
