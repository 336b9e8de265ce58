#include "plugin/provider.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "capi/boundary/handles.h"
#include "capi/boundary/slots.h"
#include "capi/env/env.h"
#include "capi/env/ep_device.h"
#include "capi/env/shared_allocators.h"
#include "capi/options/run_options.h"
#include "capi/options/session_options.h"
#include "plugin/call.h"
#include "plugin/capability.h"
#include "plugin/compute_kernel.h"
#include "plugin/profiler.h"
#include "plugin/registered_kernel.h"
#include "plugin/resource_budget.h"
#include "plugin/stream.h"
#include "runtime/config.h"
#include "tensor/best_fit_arena.h"

namespace tenon::plugin {
namespace {

// Whether the host puts an arena around the provider's own allocators in a session.
constexpr std::string_view kHostArena = "arena.host";

// The name that it returns; the factory's if it returns none.
std::string NameOf(const OrtEp& table, const OrtEp* client, const EpFactory& factory) {
  const char* const name = table.GetName != nullptr ? table.GetName(client) : nullptr;
  return name != nullptr ? name : factory.name();
}

// What graphs say of their model: all but its nodes.
Model FactsOf(const Model& model) {
  Model facts = model.CopyWithoutGraphs();
  facts.graph = std::make_unique<Graph>();
  facts.graph->name = model.graph->name;
  facts.graph->doc_string = model.graph->doc_string;
  return facts;
}

// `run` in the plugin's form.
std::unique_ptr<OrtRunOptions> RunOptionsFor(const RunOptions& run) {
  auto options = std::make_unique<OrtRunOptions>();
  options->run.tag = run.tag;
  options->run.config = run.config;
  return options;
}

}  // namespace

PluginProvider::PluginProvider(std::shared_ptr<EpFactory> factory, MadeEp ep,
                               const OrtSessionOptions& options, const Model& model,
                               const Logger& logger)
    : factory_(std::move(factory)),
      hold_(factory_->Hold(capi::LibraryObject::kProvider)),
      ep_(std::move(ep)),
      client_(ep_.get()),
      table_(Supported(*client_)),
      name_(NameOf(table_, client_, *factory_)),
      config_(options.session.config),
      model_(FactsOf(model)),
      context_model_(options.context_model),
      custom_ops_(options.custom_ops),
      packed_weights_(options.packed_weights),
      logger_(logger),
      syncs_at_end_(ConfigFlag(capi::EnvironmentConfig(), "tenon.teardown_sync", true)) {}

PluginProvider::~PluginProvider() {
  (void)CatchExceptions([&] {
    for (Compiled& compiled : compiled_) {
      // A Compile that failed may have left some out.
      std::erase(compiled.infos, nullptr);
      if (!compiled.infos.empty()) {
        table_.ReleaseNodeComputeInfos(client_, compiled.infos.data(), compiled.infos.size());
      }
    }
    return OkStatus();
  });
  ep_.reset();  // before its memory and the rest of what it made
}

Result<std::unique_ptr<ExecutionProvider>> PluginProvider::Make(
    std::shared_ptr<EpFactory> factory, MadeEp ep, std::span<const OrtEpDevice* const> devices,
    const OrtSessionOptions& options, const Model& model, const Logger& logger,
    capi::SharedAllocators* shared) {
  std::unique_ptr<PluginProvider> provider(
      new PluginProvider(std::move(factory), std::move(ep), options, model, logger));
  TENON_RETURN_IF_ERROR(provider->CheckMemory(devices));
  TENON_RETURN_IF_ERROR(provider->FindMemory(devices, shared));
  TENON_RETURN_IF_ERROR(provider->FindKernels());
  TENON_RETURN_IF_ERROR(provider->CheckWeightless());
  provider->JoinContextModel();
  return provider;
}

StringMap PluginProvider::options() const {
  const std::string prefix = capi::EpOptionPrefix(name_);
  StringMap options;
  for (const auto& [key, value] : config_) {
    if (key.starts_with(prefix)) options.emplace(key.substr(prefix.size()), value);
  }
  return options;
}

// --- memory ---

// The objects that the devices declared must exist.
Status PluginProvider::CheckMemory(std::span<const OrtEpDevice* const> devices) const {
  const OrtEpFactory& factory = factory_->table();
  const bool has_memory = std::any_of(devices.begin(), devices.end(), [](const auto* device) {
    return device->memory != nullptr || device->host_accessible_memory != nullptr ||
           device->read_only_memory != nullptr;
  });
  if (has_memory && table_.CreateAllocator == nullptr && factory.CreateAllocator == nullptr) {
    return Fail("{} has memory of its own, but neither it nor its factory has CreateAllocator",
                name_);
  }
  const bool makes_streams =
      table_.CreateSyncStreamForDevice != nullptr || factory.CreateSyncStreamForDevice != nullptr;
  if (factory_->IsStreamAware() && !makes_streams) {
    return Fail(
        "{} is aware of streams, but neither it nor its factory has CreateSyncStreamForDevice",
        name_);
  }
  return OkStatus();
}

// The provider's choice if a device has such memory, else the first device's.
Status PluginProvider::ChooseMemory(std::span<const OrtEpDevice* const> devices) {
  device_ = devices.front();
  if (device_->memory != nullptr) memory_ = device_->memory;
  if (table_.GetDefaultMemoryDevice == nullptr) return OkStatus();
  const OrtMemoryDevice* chosen = nullptr;
  TENON_RETURN_IF_ERROR(Call([&] { return table_.GetDefaultMemoryDevice(client_, &chosen); }));
  if (chosen == nullptr) return OkStatus();
  const auto is_chosen = [&](const MemoryInfo* memory) {
    return memory != nullptr && capi::Unwrap(chosen)->SameDevice(*memory);
  };
  bool is_read_only = false;
  for (const OrtEpDevice* const device : devices) {
    for (const MemoryInfo* const memory : {device->memory, device->host_accessible_memory}) {
      if (!is_chosen(memory)) continue;
      device_ = device;
      memory_ = memory;
      return OkStatus();
    }
    is_read_only |= is_chosen(device->read_only_memory);
  }
  if (!is_read_only) return OkStatus();
  return InvalidArgument("{} chose memory for its values that is for constants only", name_);
}

Status PluginProvider::FindMemory(std::span<const OrtEpDevice* const> devices,
                                  capi::SharedAllocators* shared) {
  TENON_RETURN_IF_ERROR(ChooseMemory(devices));
  TENON_ASSIGN_OR_RETURN(transfer_, factory_->MakeDataTransfer());
  if (memory_ == &CpuMemory()) return OkStatus();
  if (shared != nullptr) {
    if (auto allocator = shared->FindForSessions(*memory_)) allocator_ = std::move(allocator);
  }
  if (allocator_ == SharedCpuAllocator()) {
    TENON_ASSIGN_OR_RETURN(allocator_, MakeAllocator(*memory_));
  }
  constant_allocator_ = allocator_;
  if (device_->read_only_memory != nullptr) {
    TENON_ASSIGN_OR_RETURN(constant_allocator_, MakeAllocator(*device_->read_only_memory));
  }
  return OkStatus();
}

// Gets the session's entries for arenas of the provider.
Result<std::shared_ptr<Allocator>> PluginProvider::MakeAllocator(const MemoryInfo& memory) {
  constexpr std::string_view kArena = "arena.";
  OrtKeyValuePairs arena;
  for (const auto& [key, value] : options()) {
    if (key.starts_with(kArena)) arena.Set(key, value);
  }
  std::shared_ptr<Allocator> allocator;
  if (table_.CreateAllocator == nullptr) {
    const bool has_entries = !arena.entries().empty();
    TENON_ASSIGN_OR_RETURN(allocator,
                           factory_->MakeAllocator(memory, has_entries ? &arena : nullptr));
  } else {
    OrtAllocator* made = nullptr;
    TENON_RETURN_IF_ERROR(Call([&] {
      return table_.CreateAllocator(client_, capi::Wrap<OrtMemoryInfo>(&memory), &made);
    }));
    TENON_ASSIGN_OR_RETURN(allocator, factory_->AdoptAllocator(made, memory));
  }
  if (!ConfigFlag(arena.entries(), kHostArena, false)) return allocator;
  TENON_ASSIGN_OR_RETURN(const ArenaConfig config, ArenaConfigOf(arena.entries()));
  return std::make_shared<BestFitArena>(std::move(allocator), config);
}

bool PluginProvider::HasStreams() const {
  return factory_->IsStreamAware() && memory_->device_type != DeviceType::kCpu;
}

Result<std::unique_ptr<Stream>> PluginProvider::CreateStream() {
  const auto* const device = capi::Wrap<OrtMemoryDevice>(memory_);
  const OrtEpFactory& factory = factory_->table();
  if (table_.CreateSyncStreamForDevice == nullptr && factory.CreateSyncStreamForDevice == nullptr) {
    return Fail("{} is aware of streams but makes none", name_);
  }
  TENON_ASSIGN_OR_RETURN(auto made, MakeOwned<OrtSyncStreamImpl>([&](auto** stream) {
                           return table_.CreateSyncStreamForDevice != nullptr
                                      ? table_.CreateSyncStreamForDevice(client_, device, stream)
                                      : factory.CreateSyncStreamForDevice(factory_->client(),
                                                                          device, nullptr, stream);
                         }));
  return AdoptStream(std::move(made), *memory_, factory_->Hold(capi::LibraryObject::kStream),
                     name_);
}

// --- graphs ---

std::unique_ptr<OrtGraph> PluginProvider::View(const Graph& graph,
                                               const std::vector<NodeId>* nodes) const {
  auto handle = std::make_unique<OrtGraph>();
  const OrtNode* parent = nullptr;
  if (const auto owner = owners_.find(&graph); owner != owners_.end()) {
    const auto& [outer, node] = owner->second;
    const std::vector<NodeId> visible = {node};
    handle->outer = View(*outer, &visible);
    parent = handle->outer->view->node(node);
  }
  handle->view = std::make_unique<capi::GraphView>(*handle, graph, model_, parent, name_, nodes);
  return handle;
}

Result<std::vector<Claim>> PluginProvider::GetCapability(const Graph& graph) {
  if (table_.GetCapability == nullptr) return std::vector<Claim>();
  std::vector<NodeId> unowned;
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* const node = graph.FindNode(static_cast<NodeId>(i));
    if (node == nullptr) continue;
    if (node->provider < 0) unowned.push_back(node->id);
    for (const Graph* const subgraph : node->Subgraphs()) owners_[subgraph] = {&graph, node->id};
  }
  if (unowned.empty()) return std::vector<Claim>();
  const bool is_whole = unowned.size() == graph.node_count();
  const std::unique_ptr<OrtGraph> handle = View(graph, is_whole ? nullptr : &unowned);
  OrtEpGraphSupportInfo info = {*handle->view,
                                [&](const Node& node) {
                                  return kernels_ == nullptr ? nullptr
                                                             : kernels_->Find(graph, node, name_);
                                },
                                {}};
  TENON_RETURN_IF_ERROR(Call([&] { return table_.GetCapability(client_, handle.get(), &info); }));
  TENON_ASSIGN_OR_RETURN(const ResourceBudget budget, ResourceBudget::Of(client_, table_, config_));
  budget.Limit(graph, info.claims, logger_);
  return std::move(info.claims);
}

Result<bool> PluginProvider::PrefersChannelsLast() {
  if (table_.GetPreferredDataLayout == nullptr) return false;
  OrtEpDataLayout layout = OrtEpDataLayout_Default;
  TENON_RETURN_IF_ERROR(FailureOf("GetPreferredDataLayout", Call([&] {
                                    return table_.GetPreferredDataLayout(client_, &layout);
                                  })));
  // A number outside the enumeration.
  const auto number = std::bit_cast<std::underlying_type_t<OrtEpDataLayout>>(layout);
  if (number == OrtEpDataLayout_NCHW || number == OrtEpDataLayout_NHWC) {
    return number == OrtEpDataLayout_NHWC;
  }
  return Fail("{} prefers data layout {}; expected 0 (NCHW) or 1 (NHWC)", name_, number);
}

Result<bool> PluginProvider::WantsChannelsLast(const Node& node) {
  int answer = -1;
  if (table_.ShouldConvertDataLayoutForOp != nullptr) {
    TENON_RETURN_IF_ERROR(FailureOf("ShouldConvertDataLayoutForOp", Call([&] {
                                      return table_.ShouldConvertDataLayoutForOp(
                                          client_, node.domain.c_str(), node.op_type.c_str(),
                                          OrtEpDataLayout_NHWC, &answer);
                                    })));
  }
  return answer != 0;
}

Status PluginProvider::Compile(const Graph& graph, std::vector<FusedNode> nodes) {
  if (table_.Compile == nullptr) {
    return NotImplemented("{} cannot compile the nodes that it wants to fuse", name_);
  }
  TENON_RETURN_IF_ERROR(
      CheckSlots(name_, "provider", {TENON_SLOT(&table_, ReleaseNodeComputeInfos)}));
  TENON_RETURN_IF_ERROR(CheckMayCompile(nodes));
  std::vector<NodeId> ids;
  std::vector<std::unique_ptr<OrtGraph>> bodies;
  std::vector<const OrtGraph*> graphs;
  for (const FusedNode& node : nodes) {
    ids.push_back(node.id);
    bodies.push_back(View(*node.body, nullptr));
    graphs.push_back(bodies.back().get());
  }
  fused_views_.push_back(View(graph, &ids));
  const capi::GraphView& view = *fused_views_.back()->view;
  std::vector<const OrtNode*> fused;
  for (const NodeId id : ids) fused.push_back(view.node(id));
  Compiled& compiled = compiled_.emplace_back();
  compiled.infos.resize(nodes.size());
  std::vector<OrtNode*> context_nodes(nodes.size());
  const Status status = Call([&] {
    return table_.Compile(client_, graphs.data(), fused.data(), nodes.size(), compiled.infos.data(),
                          context_nodes.data());
  });
  const Status kept = KeepContextNodes(graph, nodes, context_nodes);
  TENON_RETURN_IF_ERROR(status);
  TENON_RETURN_IF_ERROR(kept);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (compiled.infos[i] == nullptr) {
      return Fail("{} compiled nothing for fused node {} of {}", name_, i, nodes.size());
    }
    infos_by_node_[graph.node(ids[i]).name] = compiled.infos[i];
  }
  return OkStatus();
}

// --- compiled models ---

Status PluginProvider::CheckWeightless() const {
  if (!ConfigFlag(config_, "ep.enable_weightless", false)) return OkStatus();
  OrtWeightlessSupport support = OrtWeightlessSupport_NONE;
  if (table_.GetWeightlessSupport == nullptr) {
    return InvalidArgument("ep.enable_weightless: {} does not implement GetWeightlessSupport",
                           name_);
  }
  TENON_RETURN_IF_ERROR(Call([&] { return table_.GetWeightlessSupport(client_, &support); }));
  if (support != OrtWeightlessSupport_NONE) return OkStatus();
  return InvalidArgument("ep.enable_weightless: {} makes no compiled models without weights",
                         name_);
}

void PluginProvider::JoinContextModel() {
  if (context_model_ == nullptr) return;
  context_model_->AddProvider(name_, [this](const Graph& graph) -> Result<std::string> {
    std::string info;
    if (table_.GetCompiledModelCompatibilityInfo == nullptr) return info;
    const std::unique_ptr<OrtGraph> handle = View(graph, nullptr);
    TENON_RETURN_IF_ERROR(CatchExceptions([&] {
      const char* const text = table_.GetCompiledModelCompatibilityInfo(client_, handle.get());
      if (text != nullptr) info = text;
      return OkStatus();
    }));
    return info;
  });
}

Status PluginProvider::CheckMayCompile(std::span<const FusedNode> nodes) const {
  if (!ConfigFlag(config_, "session.disable_model_compile", false)) return OkStatus();
  for (const FusedNode& fused : nodes) {
    for (size_t i = 0; i < fused.body->node_capacity(); ++i) {
      const Node* const node = fused.body->FindNode(static_cast<NodeId>(i));
      if (node == nullptr || capi::IsContextNode(*node)) continue;
      return Status(StatusCode::kModelRequiresCompilation,
                    Format("{} would have to compile {}, which session.disable_model_compile rules "
                           "out",
                           name_, node->Describe()));
    }
  }
  return OkStatus();
}

Status PluginProvider::KeepContextNodes(const Graph& graph, std::span<const FusedNode> fused,
                                        std::span<OrtNode*> made) const {
  Status first;
  for (size_t i = 0; i < made.size(); ++i) {
    const bool is_wanted = context_model_ != nullptr && first.ok();
    if (!is_wanted) {
      // The plugin cannot return a node of a view.
      if (made[i] != nullptr && made[i]->made != nullptr) capi::ReleaseNode(made[i]);
    } else {
      first = context_model_->AddNode(name_, graph.node(fused[i].id).name, made[i]);
    }
  }
  return first;
}

Status PluginProvider::FindKernels() {
  if (table_.GetKernelRegistry == nullptr) return OkStatus();
  return Call([&] { return table_.GetKernelRegistry(client_, &kernels_); });
}

Result<std::unique_ptr<Kernel>> PluginProvider::CreateKernel(KernelInfo& info) {
  const auto compiled = infos_by_node_.find(info.node().name);
  if (compiled != infos_by_node_.end() && info.node().domain == name_) {
    return MakeComputeKernel(compiled->second, info, logger_, config_);
  }
  if (kernels_ != nullptr && kernels_->Find(info.graph(), info.node(), name_) != nullptr) {
    return kernels_->MakeKernel(info, name_, {client_, logger_, config_, packed_weights_});
  }
  std::unique_ptr<Kernel> custom;
  if (custom_ops_ != nullptr) {
    TENON_ASSIGN_OR_RETURN(custom, custom_ops_->MakeKernel(info, name_));
  }
  if (custom == nullptr) {
    return NotImplemented("{} claimed the node but has neither compiled it nor a kernel for it",
                          name_);
  }
  return custom;
}

bool PluginProvider::SupportsConcurrentRuns() const {
  if (table_.IsConcurrentRunSupported == nullptr) return true;
  bool are_supported = true;
  const Status status =
      Call([&] { return table_.IsConcurrentRunSupported(client_, &are_supported); });
  return status.ok() && are_supported;
}

// --- recorded runs ---

GraphCapture* PluginProvider::graph_capture() {
  bool is_enabled = false;
  const Status status = CatchExceptions([&] {
    is_enabled = table_.IsGraphCaptureEnabled != nullptr && table_.IsGraphCaptureEnabled(client_);
    return OkStatus();
  });
  if (!status.ok() || !is_enabled) return nullptr;
  if (table_.IsGraphCaptured != nullptr && table_.ReplayGraph != nullptr) return &capture_;
  TENON_LOG(logger_, kWarning, "{} wants to capture graphs but lacks {}; its runs are not captured",
            name_, table_.IsGraphCaptured == nullptr ? "IsGraphCaptured" : "ReplayGraph");
  return nullptr;
}

CapturePolicy PluginProvider::Capture::policy() const {
  auto policy = OrtGraphCaptureNodeAssignmentPolicy_ALL_NODES_ON_EP;
  if (table_.GetGraphCaptureNodeAssignmentPolicy != nullptr) {
    policy = table_.GetGraphCaptureNodeAssignmentPolicy(client_);
  }
  return policy == OrtGraphCaptureNodeAssignmentPolicy_ALLOW_CPU_FOR_SHAPES
             ? CapturePolicy::kCpuForShapes
             : CapturePolicy::kAllNodes;
}

bool PluginProvider::Capture::IsCaptured(int32_t id) const {
  return table_.IsGraphCaptured(client_, id);
}

Status PluginProvider::Capture::Replay(int32_t id) {
  return Call([&] { return table_.ReplayGraph(client_, id); });
}

Status PluginProvider::Capture::Release(int32_t id) {
  if (table_.ReleaseCapturedGraph == nullptr) return OkStatus();
  return Call([&] { return table_.ReleaseCapturedGraph(client_, id); });
}

// --- life ---

Status PluginProvider::FailureOf(const char* slot, Status status) const {
  if (status.ok()) return status;
  return Status(status.code(), Format("{} failed in {}: {}", name_, slot, status.message()));
}

Status PluginProvider::OnSessionInitialized() {
  if (table_.OnSessionInitializationEnd == nullptr) return OkStatus();
  return FailureOf("OnSessionInitializationEnd",
                   Call([&] { return table_.OnSessionInitializationEnd(client_); }));
}

Status PluginProvider::OnRunStart(const RunOptions& run) {
  may_be_working_ = true;
  if (table_.OnRunStart == nullptr) return OkStatus();
  const auto options = RunOptionsFor(run);
  return FailureOf("OnRunStart", Call([&] { return table_.OnRunStart(client_, options.get()); }));
}

Status PluginProvider::OnRunEnd(const RunOptions& run, bool synchronize) {
  // Again: another thread may have waited since the run began.
  may_be_working_ = true;
  if (table_.OnRunEnd == nullptr) return OkStatus();
  const auto options = RunOptionsFor(run);
  return FailureOf("OnRunEnd",
                   Call([&] { return table_.OnRunEnd(client_, options.get(), synchronize); }));
}

Status PluginProvider::Synchronize() {
  if (table_.Sync == nullptr) return OkStatus();
  may_be_working_ = false;
  Status status = FailureOf("Sync", Call([&] { return table_.Sync(client_); }));
  if (!status.ok()) may_be_working_ = true;
  return status;
}

std::unique_ptr<ProviderProfiler> PluginProvider::CreateProfiler() {
  if (table_.CreateProfiler == nullptr) return nullptr;
  auto made = MakeOwned<OrtEpProfilerImpl>(
      [&](auto** profiler) { return table_.CreateProfiler(client_, profiler); });
  if (!made) {
    TENON_LOG(logger_, kWarning, "{} made no profiler: {}", name_, made.error().message());
    return nullptr;
  }
  if (*made == nullptr) return nullptr;
  return AdoptProfiler(std::move(*made), factory_->Hold(capi::LibraryObject::kProfiler),
                       HasFlag(TENON_EP_EXTENSION_PROFILER_OUTLIVES_EP), name_, logger_);
}

bool PluginProvider::HasFlag(uint64_t flag) const {
  constexpr size_t kFlagsEnd = offsetof(TenonEpExtension, OnSessionEnd);
  const TenonEpExtension* const extension = factory_->extension();
  return extension != nullptr && extension->struct_size >= kFlagsEnd &&
         (extension->flags & flag) != 0;
}

Status PluginProvider::OnSessionEnd(const SessionEndInfo& info) {
  const EpLibrary::Notification notification(factory_->library());
  const TenonEpExtension* const extension = factory_->extension();
  constexpr size_t kHookEnd =
      offsetof(TenonEpExtension, OnSessionEnd) + sizeof(TenonEpExtension::OnSessionEnd);
  const bool has_hook = extension != nullptr && extension->struct_size >= kHookEnd;
  if (!has_hook || extension->OnSessionEnd == nullptr) {
    const bool skips = HasFlag(TENON_EP_EXTENSION_SKIP_TEARDOWN_SYNC);
    return skips || !syncs_at_end_ || !may_be_working_ ? OkStatus() : Synchronize();
  }
  const TenonSessionEndInfo told = {sizeof(TenonSessionEndInfo), static_cast<uint32_t>(info.reason),
                                    info.session_id, info.is_profiling ? 1U : 0U,
                                    info.completed_runs};
  return Call([&] { return extension->OnSessionEnd(client_, &told); });
}

Status PluginProvider::SetDynamicOptions(const StringMap& changed) {
  if (table_.SetDynamicOptions == nullptr) return ExecutionProvider::SetDynamicOptions(changed);
  const OrtKeyValuePairs pairs(changed);
  return FailureOf("SetDynamicOptions", Call([&] {
                     return table_.SetDynamicOptions(client_, pairs.keys().data(),
                                                     pairs.values().data(), pairs.keys().size());
                   }));
}

}  // namespace tenon::plugin
