// Passes over a graph that hold for any provider.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "ir/inference.h"
#include "ir/model.h"
#include "ir/rewrite.h"

namespace tenon {

// Each of these works on `graph` and its subgraphs and returns how much it changed. Outputs of the
// graph keep their producers, so that none becomes another output, an input or an initializer.

// Removes nodes whose outputs nobody uses, captures and initializers without uses, and optional
// outputs without uses.
size_t RemoveDeadCode(Graph& graph);

// Turns Constant nodes into initializers, and captures of constants into initializers of the
// subgraph, which share the memory. Error: a Constant node without a value, by name.
Result<size_t> GatherConstants(Graph& graph);

// Joins initializers that are small and equal, and then nodes that compute the same from the same
// inputs. Operators that are not in the schema table count as different each time.
size_t JoinCommonSubexpressions(Graph& graph);

// Replaces nodes by initializers where inference knows all elements of their outputs, and constant
// parts of the shapes that Reshape gets: [batch, seq, 12, 64] becomes [0, 0, 12, 64].
size_t FoldKnownElements(Graph& graph, const KnownElements& known);

// Applies SimplifyingRules().
size_t Simplify(Graph& graph);
// The rules for identities, views, casts and the like.
const RuleSet& SimplifyingRules();

// Puts the branch that a constant condition takes in place of the If.
Status InlineConstantIfs(Graph& graph, size_t* changes);

// Computes single nodes for constant folding. Implemented by whoever has kernels.
class NodeEvaluator {
 public:
  virtual ~NodeEvaluator() = default;
  virtual bool CanEvaluate(const Graph& graph, const Node& node) const = 0;
  // `inputs` has one value per node input, kNone where left out; the result one per node output.
  virtual Result<std::vector<Value>> Evaluate(const Graph& graph, const Node& node,
                                              std::span<const Value> inputs) = 0;
};

// What a node does with its inputs, as bytes that are equal for nodes that do the same in this
// process; nothing if that cannot be told. Nodes with subgraphs are not to be compared.
std::optional<std::string> OperationKey(const Node& node);

// What constant folding may spend, over all calls that share the budget.
struct FoldingBudget {
  // Bytes of folded values that are larger than what they were computed from.
  size_t bytes = size_t{64} << 20;
  std::chrono::nanoseconds time = std::chrono::seconds(2);
  // Values no more than so many times as large as what they were computed from cost no bytes.
  size_t free_factor = 1;
};

// Replaces deterministic nodes with constant inputs by their values, as long as the budget lasts.
// A node whose evaluation fails stays, so that the failure is reported when it runs. Other nodes
// than those that `is_wanted` stay too.
size_t FoldConstants(
    Graph& graph, NodeEvaluator& evaluator, FoldingBudget& budget,
    FunctionRef<bool(const Graph&, const Node&)> is_wanted = [](const Graph&, const Node&) {
      return true;
    });

// Replaces calls of model-local functions by their bodies, everywhere in the model, and drops the
// functions. Errors: kInvalidGraph for functions that call themselves, naming the calls in between,
// and for models that grow beyond a million nodes.
Status InlineFunctions(Model& model);

// Replaces nodes for which `has_kernel` is false by their operator's function body, where the
// schema has one, again and again. `graph` may be a subgraph's.
Status ExpandOperators(Graph& graph,
                       const std::function<bool(const Graph&, const Node&)>& has_kernel);

struct PassOptions {
  const ShapeFunctionTable* shape_functions = nullptr;  // never null
  NodeEvaluator* evaluator = nullptr;                   // null: nothing is folded by evaluation
  FoldingBudget budget;
  InferenceOptions inference;
};

// Inference and all of the passes on a graph, until nothing changes. Functions are inlined before.
Status RunGeneralPasses(Graph& graph, PassOptions options);

}  // namespace tenon
