// OrtEp as the runtime's execution provider.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "capi/graph/context_model.h"
#include "capi/graph/graph_view.h"
#include "capi/kernel/custom_ops.h"
#include "capi/kernel/packed_weights.h"
#include "plugin/factory.h"
#include "plugin/kernel_registry.h"
#include "runtime/graph_capture.h"
#include "runtime/provider.h"

namespace tenon::plugin {

class PluginProvider final : public capi::DeviceProvider {
 public:
  // Takes ownership of `ep`, also if it fails. `options` and `model` are those of the session;
  // `logger` outlives the provider. `shared` as for EpSource::MakeProvider.
  static Result<std::unique_ptr<ExecutionProvider>> Make(
      std::shared_ptr<EpFactory> factory, MadeEp ep, std::span<const OrtEpDevice* const> devices,
      const OrtSessionOptions& options, const Model& model, const Logger& logger,
      capi::SharedAllocators* shared);
  ~PluginProvider() override;

  const std::string& name() const override { return name_; }
  StringMap options() const override;
  const OrtEpDevice* device() const override { return device_; }
  const capi::EpSource& source() const override { return *factory_; }

  Result<std::vector<Claim>> GetCapability(const Graph& graph) override;
  Result<bool> PrefersChannelsLast() override;
  Result<bool> WantsChannelsLast(const Node& node) override;
  Status Compile(const Graph& graph, std::vector<FusedNode> nodes) override;
  Result<std::unique_ptr<Kernel>> CreateKernel(KernelInfo& info) override;
  bool SupportsConcurrentRuns() const override;
  GraphCapture* graph_capture() override;

  const MemoryInfo& memory() const override { return *memory_; }
  std::shared_ptr<Allocator> allocator() override { return allocator_; }
  std::shared_ptr<Allocator> constant_allocator() override { return constant_allocator_; }
  std::shared_ptr<DataTransfer> data_transfer() override { return transfer_; }
  bool HasStreams() const override;
  Result<std::unique_ptr<Stream>> CreateStream() override;

  Status OnSessionInitialized() override;
  Status OnRunStart(const RunOptions& run) override;
  Status OnRunEnd(const RunOptions& run, bool synchronize) override;
  Status Synchronize() override;
  std::unique_ptr<ProviderProfiler> CreateProfiler() override;
  Status SetDynamicOptions(const StringMap& changed) override;
  Status OnSessionEnd(const SessionEndInfo& info) override;

 private:
  PluginProvider(std::shared_ptr<EpFactory> factory, MadeEp ep, const OrtSessionOptions& options,
                 const Model& model, const Logger& logger);
  // The provider's recording of runs; its slots exist.
  class Capture final : public GraphCapture {
   public:
    Capture(OrtEp* client, const OrtEp& table) : client_(client), table_(table) {}
    CapturePolicy policy() const override;
    bool IsCaptured(int32_t id) const override;
    Status Replay(int32_t id) override;
    Status Release(int32_t id) override;

   private:
    OrtEp* const client_;
    const OrtEp& table_;
  };
  // The result of one call of Compile.
  struct Compiled {
    std::vector<OrtNodeComputeInfo*> infos;
  };

  Status CheckMemory(std::span<const OrtEpDevice* const> devices) const;
  Status ChooseMemory(std::span<const OrtEpDevice* const> devices);
  Status FindMemory(std::span<const OrtEpDevice* const> devices, capi::SharedAllocators* shared);
  // The failure of one of its slots, with the provider and the slot.
  Status FailureOf(const char* slot, Status status) const;
  Status FindKernels();
  Status CheckWeightless() const;
  void JoinContextModel();
  Status CheckMayCompile(std::span<const FusedNode> nodes) const;
  // Takes ownership of the nodes that Compile made, which are null if they were not requested.
  Status KeepContextNodes(const Graph& graph, std::span<const FusedNode> fused,
                          std::span<OrtNode*> made) const;
  Result<std::shared_ptr<Allocator>> MakeAllocator(const MemoryInfo& memory);
  // A handle of the graph that lives as long as the graph.
  std::unique_ptr<OrtGraph> View(const Graph& graph, const std::vector<NodeId>* nodes) const;
  // Whether the factory's extension has the flag TENON_EP_EXTENSION_...
  bool HasFlag(uint64_t flag) const;

  const std::shared_ptr<EpFactory> factory_;
  const std::shared_ptr<void> hold_;
  MadeEp ep_;
  OrtEp* const client_;
  const OrtEp table_;  // the slots that it has
  const std::string name_;
  const StringMap config_;
  const Model model_;                                          // without nodes
  const std::shared_ptr<capi::ContextModel> context_model_;    // null: the session makes none
  const capi::CustomOps* const custom_ops_;                    // null: there are none
  const std::shared_ptr<capi::PackedWeights> packed_weights_;  // null: nothing is shared
  const Logger& logger_;
  const OrtEpDevice* device_ = nullptr;
  // Whether it waits for its device at the end of a session if it has no extension.
  const bool syncs_at_end_;
  // Whether its device may be working: true from when it was made or a run began until it waits.
  std::atomic<bool> may_be_working_{true};
  const MemoryInfo* memory_ = &CpuMemory();
  std::shared_ptr<Allocator> allocator_ = SharedCpuAllocator();
  std::shared_ptr<Allocator> constant_allocator_ = SharedCpuAllocator();
  std::shared_ptr<DataTransfer> transfer_;
  const OrtKernelRegistry* kernels_ = nullptr;
  // The node, in a graph, that owns a subgraph: of the graphs that were asked about, which come
  // before their subgraphs.
  std::map<const Graph*, std::pair<const Graph*, NodeId>> owners_;
  Capture capture_{client_, table_};
  std::vector<Compiled> compiled_;
  std::map<std::string, OrtNodeComputeInfo*> infos_by_node_;
  // The graphs with the fused nodes, which the plugin may read as long as the session lives.
  std::vector<std::unique_ptr<OrtGraph>> fused_views_;
};

}  // namespace tenon::plugin
