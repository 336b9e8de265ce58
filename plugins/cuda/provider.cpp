#include "provider.h"

#include <cstdlib>
#include <map>
#include <optional>

#include "attention_pattern.h"
#include "merge_products.h"
#include "operators.h"
#include "product.h"
#include "stream.h"
#include "support.h"

namespace cuda {
namespace {

// How a constant at this input of a node lies best; nothing if that is row-major.
std::optional<ValueInfo::Layout> WantedLayout(const Node& node, size_t input,
                                              const HostTensor& data) {
  if (!node.domain.empty() || input != 1) return std::nullopt;
  const size_t rank = data.shape.size();
  if (node.type == "Conv" && (rank == 3 || rank == 4)) return ValueInfo::Layout::kChannelsLast;
  const bool is_product = node.type == "MatMul" || (node.type == "Gemm" && !node.Int("transB", 0));
  const bool is_short = IsFloat(data.type) && SizeOf(data.type) == 2;
  if (is_product && rank == 2 && is_short) return ValueInfo::Layout::kTransposed;
  return std::nullopt;
}

// Filters lie as cuDNN wants them, weights as products of few rows do, if nothing else reads them.
void PlaceWeights(Graph& graph) {
  std::map<int, int> uses;
  for (const Node& node : graph.nodes) {
    for (const int input : node.inputs) ++uses[input];
  }
  for (const Node& node : graph.nodes) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] < 0 || uses[node.inputs[i]] != 1) continue;
      ValueInfo& value = graph.values[static_cast<size_t>(node.inputs[i])];
      if (!value.constant) continue;
      if (const auto layout = WantedLayout(node, i, *value.constant)) value.layout = *layout;
    }
  }
}

// The number under which a run is recorded: the run option gpu_graph_id, 0 if it is not set.
int GraphIdOf(const OrtRunOptions* options) {
  const char* text = options ? ort->GetRunConfigEntry(options, "gpu_graph_id") : nullptr;
  return text ? std::atoi(text) : 0;
}

OrtStatus* ClaimNodes(const Provider& provider, const OrtGraph* source,
                      OrtEpGraphSupportInfo* info) {
  auto graph = ReadGraph(source, /*with_constants=*/false);
  if (!graph.ok()) return ToOrt(graph.status());
  std::vector<const OrtNode*> nodes((*graph).nodes.size());
  if (nodes.empty()) return nullptr;
  RETURN_IF_ORT_ERROR(ort->Graph_GetNodes(source, nodes.data(), nodes.size()));
  OrtNodeFusionOptions options{};
  options.ort_version_supported = kAbiVersion;
  options.drop_constant_initializers = true;  // they are on the device
  for (const std::vector<size_t>& group : GroupsToFuse(*graph, provider.target)) {
    std::vector<const OrtNode*> members;
    for (const size_t number : group) members.push_back(nodes[number]);
    RETURN_IF_ORT_ERROR(
        ep->EpGraphSupportInfo_AddNodesToFuse(info, members.data(), members.size(), &options));
  }
  return nullptr;
}

Result<std::unique_ptr<CompiledGraph>> CompileOne(Provider& provider, const OrtGraph* source,
                                                  const OrtNode* fused_node) {
  PLUGIN_ASSIGN_OR_RETURN(Graph graph, ReadGraph(source, /*with_constants=*/true));
  PLUGIN_ASSIGN_OR_RETURN(const auto inputs, InputNames(fused_node));
  PLUGIN_ASSIGN_OR_RETURN(const auto outputs, OutputNames(fused_node));
  FuseAttention(graph);
  MergeProducts(graph);
  PlaceWeights(graph);
  return CompiledGraph::Create(provider.context, provider.target, provider.trace, std::move(graph),
                               inputs, outputs);
}

}  // namespace

uint32_t runtime_version = 0;

Provider::Provider(Device& session_device, Options session_options, const OrtLogger* session_logger)
    : OrtEp{},
      context{session_device, std::move(session_options), session_logger},
      target{.find = FindOperator,
             .prelude = kPrelude,
             .max_group_size = 256,
             .group_size = 256,
             .elements_per_item = 4,
             .row_group_size = 64,
             .max_row_group_size = 512,
             .holds_rows = true,
             .has_vectors = true,
             .context = &context,
             .add = AddToCall},
      trace(session_device),
      recorder(session_device) {
  if (context.options.enable_cuda_graph) context.recorder = &recorder;
  // With recorded runs, where the runtime has them.
  constexpr uint32_t kWithRecordedRuns = 27;
  ort_version_supported = runtime_version >= kWithRecordedRuns ? kWithRecordedRuns : kAbiVersion;
  GetName = [](const OrtEp*) noexcept { return kProviderName; };
  GetCapability = [](OrtEp* self, const OrtGraph* graph,
                     OrtEpGraphSupportInfo* info) noexcept -> OrtStatus* {
    return Guarded([&] { return ClaimNodes(*static_cast<Provider*>(self), graph, info); });
  };
  Compile = [](OrtEp* self, const OrtGraph** graphs, const OrtNode** fused_nodes, size_t count,
               OrtNodeComputeInfo** infos, OrtNode**) noexcept -> OrtStatus* {
    return Guarded([&]() -> OrtStatus* {
      for (size_t i = 0; i < count; ++i) {
        auto compiled = CompileOne(*static_cast<Provider*>(self), graphs[i], fused_nodes[i]);
        if (!compiled.ok()) return ToOrt(compiled.status());
        infos[i] = (*compiled).release();
      }
      return nullptr;
    });
  };
  ReleaseNodeComputeInfos = [](OrtEp*, OrtNodeComputeInfo** infos, size_t count) {
    for (size_t i = 0; i < count; ++i) delete static_cast<CompiledGraph*>(infos[i]);
  };
  CreateSyncStreamForDevice = [](OrtEp* self, const OrtMemoryDevice*,
                                 OrtSyncStreamImpl** out) noexcept -> OrtStatus* {
    return Guarded([&]() -> OrtStatus* {
      auto* me = static_cast<Provider*>(self);
      auto stream = Stream::Create(me->context.device, &me->trace);
      if (!stream.ok()) return ToOrt(stream.status());
      *out = *stream;
      return nullptr;
    });
  };
  Sync = [](OrtEp* self) noexcept -> OrtStatus* {
    return Guarded([&] { return ToOrt(static_cast<Provider*>(self)->Synchronize()); });
  };
  OnRunStart = [](OrtEp* self, const OrtRunOptions* options) noexcept -> OrtStatus* {
    return Guarded([&]() -> OrtStatus* {
      auto* me = static_cast<Provider*>(self);
      if (me->context.recorder) me->recorder.Begin(GraphIdOf(options));
      return nullptr;
    });
  };
  OnRunEnd = [](OrtEp* self, const OrtRunOptions*, bool) noexcept -> OrtStatus* {
    return Guarded([&]() -> OrtStatus* {
      auto* me = static_cast<Provider*>(self);
      if (me->context.recorder) me->recorder.End(/*is_complete=*/true);
      return nullptr;
    });
  };
  IsGraphCaptureEnabled = [](const OrtEp* self) noexcept {
    return static_cast<const Provider*>(self)->context.options.enable_cuda_graph;
  };
  IsGraphCaptured = [](const OrtEp* self, int id) noexcept {
    return static_cast<const Provider*>(self)->recorder.IsRecorded(id);
  };
  ReplayGraph = [](OrtEp* self, int id) noexcept -> OrtStatus* {
    return Guarded([&] {
      auto* me = static_cast<Provider*>(self);
      return ToOrt(me->recorder.Replay(id, me->trace));
    });
  };
  ReleaseCapturedGraph = [](OrtEp* self, int id) noexcept -> OrtStatus* {
    return Guarded([&]() -> OrtStatus* {
      static_cast<Provider*>(self)->recorder.Forget(id);
      return nullptr;
    });
  };
  GetGraphCaptureNodeAssignmentPolicy = [](const OrtEp*) noexcept {
    return OrtGraphCaptureNodeAssignmentPolicy_ALL_NODES_ON_EP;
  };
  CreateProfiler = [](OrtEp* self, OrtEpProfilerImpl** out) noexcept -> OrtStatus* {
    return Guarded([&]() -> OrtStatus* {
      *out = new Profiler(static_cast<Provider*>(self)->trace, kProviderName);
      return nullptr;
    });
  };
}

Provider::~Provider() = default;

Status Provider::Synchronize() {
  PLUGIN_RETURN_IF_ERROR(context.device.MakeCurrent());
  return CU_CHECK(cuCtxSynchronize);
}

OrtStatus* Provider::OnSessionEnd() {
  return Guarded([&]() -> OrtStatus* {
    RETURN_IF_ORT_ERROR(ToOrt(Synchronize()));
    trace.Flush();
    return nullptr;
  });
}

}  // namespace cuda
