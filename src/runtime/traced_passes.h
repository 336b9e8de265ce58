// The passes of a session: those that the user left out do not run, the others are events of its
// trace.
#pragma once

#include <string>

#include "ir/pass_runner.h"

namespace tenon {

class Profiler;
struct Progress;
struct SessionOptions;

// Events have the args `nodes_before` and `nodes_after`, without the nodes of subgraphs, `provider`
// unless it is empty, and if the pass may be left out, `changes`.
class TracedPasses final : public PassRunner {
 public:
  // `profiler` may be null; it and `progress`, which hears of each pass, outlive this object.
  // Leaves out the passes that `config` names in optimization.disable_specified_optimizers.
  TracedPasses(Profiler* profiler, const SessionOptions& options, std::string provider = "");

  Result<size_t> Run(std::string_view name, const Graph& graph, Pass pass) override;
  Status RunRequired(std::string_view name, const Graph& graph,
                     FunctionRef<Status()> pass) override;

 private:
  Profiler* const profiler_;
  const Progress& progress_;
  std::string disabled_;  // ";NAME;NAME;"
  const std::string provider_;
};

}  // namespace tenon
