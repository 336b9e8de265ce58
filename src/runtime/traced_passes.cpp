#include "runtime/traced_passes.h"

#include <utility>

#include "ir/graph.h"
#include "runtime/profiler.h"
#include "runtime/session_options.h"

namespace tenon {
namespace {

class PassSpan {
 public:
  PassSpan(Profiler* profiler, std::string_view name, const Graph& graph,
           const std::string& provider)
      : span_(profiler, TraceCategory::kSession, name), graph_(graph) {
    if (!provider.empty()) span_.AddArg("provider", provider);
    span_.AddArg("nodes_before", std::to_string(graph.node_count()));
  }
  ~PassSpan() { span_.AddArg("nodes_after", std::to_string(graph_.node_count())); }
  PassSpan(const PassSpan&) = delete;
  PassSpan& operator=(const PassSpan&) = delete;
  void AddArg(std::string_view key, std::string_view value) { span_.AddArg(key, value); }

 private:
  TraceSpan span_;
  const Graph& graph_;
};

}  // namespace

TracedPasses::TracedPasses(Profiler* profiler, const SessionOptions& options, std::string provider)
    : profiler_(profiler), progress_(options.progress), provider_(std::move(provider)) {
  const auto entry = options.config.find("optimization.disable_specified_optimizers");
  if (entry != options.config.end()) disabled_ = ";" + entry->second + ";";
}

Result<size_t> TracedPasses::Run(std::string_view name, const Graph& graph, Pass pass) {
  if (!disabled_.empty() && disabled_.find(Format(";{};", name)) != std::string::npos) return 0;
  TENON_RETURN_IF_ERROR(progress_.Report("optimize", 0, 0));
  if (profiler_ == nullptr) return pass();
  PassSpan span(profiler_, name, graph, provider_);
  Result<size_t> changes = pass();
  if (changes) span.AddArg("changes", std::to_string(*changes));
  return changes;
}

Status TracedPasses::RunRequired(std::string_view name, const Graph& graph,
                                 FunctionRef<Status()> pass) {
  TENON_RETURN_IF_ERROR(progress_.Report("optimize", 0, 0));
  if (profiler_ == nullptr) return pass();
  const PassSpan span(profiler_, name, graph, provider_);
  return pass();
}

}  // namespace tenon
