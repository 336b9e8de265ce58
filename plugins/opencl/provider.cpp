#include "provider.h"

#include "stream.h"
#include "support.h"

namespace opencl {
namespace {

OrtStatus* ClaimNodes(const Device& device, const OrtGraph* source, OrtEpGraphSupportInfo* info) {
  auto graph = ReadGraph(source, /*with_constants=*/false);
  if (!graph.ok()) return ToOrt(graph.status());
  std::vector<const OrtNode*> nodes((*graph).nodes.size());
  RETURN_IF_ORT_ERROR(ort->Graph_GetNodes(source, nodes.data(), nodes.size()));
  OrtNodeFusionOptions options{};
  options.ort_version_supported = kAbiVersion;
  options.drop_constant_initializers = true;  // they are on the device
  for (const std::vector<size_t>& group : GroupsToFuse(*graph, device.target())) {
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
  return CompiledGraph::Create(provider.device, provider.trace, std::move(graph), inputs, outputs);
}

}  // namespace

Provider::Provider(Device& session_device, const OrtLogger* session_logger)
    : OrtEp{}, device(session_device), logger(session_logger), trace(session_device) {
  ort_version_supported = kAbiVersion;
  GetName = [](const OrtEp*) noexcept { return kProviderName; };
  GetCapability = [](OrtEp* self, const OrtGraph* graph,
                     OrtEpGraphSupportInfo* info) noexcept -> OrtStatus* {
    return Guarded([&] { return ClaimNodes(static_cast<Provider*>(self)->device, graph, info); });
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
      auto stream = Stream::Create(me->device, &me->trace);
      if (!stream.ok()) return ToOrt(stream.status());
      *out = *stream;
      return nullptr;
    });
  };
  CreateProfiler = [](OrtEp* self, OrtEpProfilerImpl** out) noexcept -> OrtStatus* {
    return Guarded([&]() -> OrtStatus* {
      *out = new Profiler(static_cast<Provider*>(self)->trace, kProviderName);
      return nullptr;
    });
  };
}

OrtStatus* Provider::OnSessionEnd() {
  return Guarded([&]() -> OrtStatus* {
    trace.Flush();
    return nullptr;
  });
}

}  // namespace opencl
