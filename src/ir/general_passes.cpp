#include "ir/passes.h"

namespace tenon {
namespace {

// Each round makes few new changes possible after the first; models are stable after two or three.
constexpr int kMostRounds = 4;

class GeneralPasses {
 public:
  GeneralPasses(Graph& graph, PassOptions& options, PassRunner& runner)
      : graph_(graph), options_(options), runner_(runner) {}

  Status Run() {
    TENON_RETURN_IF_ERROR(Gather());
    for (int round = 0; round < kMostRounds; ++round) {
      changes_ = 0;
      TENON_RETURN_IF_ERROR(RunRound());
      if (changes_ == 0) return OkStatus();
    }
    return Infer(nullptr);
  }

 private:
  Status RunRound() {
    const bool keeps_patterns = options_.keeps_exported_patterns;
    KnownElements known;
    TENON_RETURN_IF_ERROR(Infer(&known));
    TENON_RETURN_IF_ERROR(Apply("ShapeFolding", [&] {
      return keeps_patterns ? FoldKnownShapes(graph_, known) : FoldKnownElements(graph_, known);
    }));
    if (options_.evaluator != nullptr) {
      TENON_RETURN_IF_ERROR(Apply("ConstantFolding", [&] {
        return FoldConstants(graph_, *options_.evaluator, options_.budget);
      }));
    }
    // Constants reach the subgraphs of folded nodes.
    TENON_RETURN_IF_ERROR(Gather());
    TENON_RETURN_IF_ERROR(Apply("IfInlining", [&]() -> Result<size_t> {
      size_t inlined = 0;
      TENON_RETURN_IF_ERROR(InlineConstantIfs(graph_, &inlined));
      return inlined;
    }));
    TENON_RETURN_IF_ERROR(Apply("Simplification", [&] {
      return Simplify(graph_, keeps_patterns ? RulesKeepingExportedPatterns() : SimplifyingRules());
    }));
    TENON_RETURN_IF_ERROR(Apply("ConstantSharing", [&] { return ShareConstants(graph_); }));
    TENON_RETURN_IF_ERROR(
        Apply("CommonSubexpressionElimination", [&] { return JoinCommonSubexpressions(graph_); }));
    return runner_.RunRequired("dead_code_removal", graph_, [&] {
      RemoveDeadCode(graph_);
      return OkStatus();
    });
  }

  Status Apply(std::string_view name, PassRunner::Pass pass) {
    TENON_ASSIGN_OR_RETURN(const size_t changes, runner_.Run(name, graph_, pass));
    changes_ += changes;
    return OkStatus();
  }

  Status Infer(KnownElements* known) {
    return runner_.RunRequired("type_inference", graph_, [&] {
      return InferTypes(graph_, *options_.shape_functions, options_.inference, known);
    });
  }

  Status Gather() {
    return runner_.RunRequired("constant_gathering", graph_, [&]() -> Status {
      TENON_ASSIGN_OR_RETURN(const size_t gathered, GatherConstants(graph_));
      changes_ += gathered;
      return OkStatus();
    });
  }

  Graph& graph_;
  PassOptions& options_;
  PassRunner& runner_;
  size_t changes_ = 0;  // of the round
};

}  // namespace

Status RunGeneralPasses(Graph& graph, PassOptions options) {
  PlainPassRunner plain;
  return GeneralPasses(graph, options, options.runner == nullptr ? plain : *options.runner).Run();
}

}  // namespace tenon
