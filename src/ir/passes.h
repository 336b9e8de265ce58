// Passes over a graph that apply to any provider.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/function_ref.h"
#include "ir/inference.h"
#include "ir/model.h"
#include "ir/pass_runner.h"
#include "ir/rewrite.h"

namespace tenon {

// Each of these changes `graph` and its subgraphs and returns the number of changes. Outputs of the
// graph keep their producers, so that none becomes another output, an input or an initializer.

// Removes nodes whose outputs are unused, captures and initializers without uses, and optional
// outputs without uses.
size_t RemoveDeadCode(Graph& graph);

// Turns Constant nodes into initializers, and captures of constants into initializers of the
// subgraph, which share the memory. Error: a Constant node without a value, by name.
Result<size_t> GatherConstants(Graph& graph);

// Merges initializers that are small and equal.
size_t ShareConstants(Graph& graph);
// Merges nodes that compute the same from the same inputs. An operator that is not in the schema
// table always counts as different.
size_t JoinCommonSubexpressions(Graph& graph);

// Replaces nodes by initializers if inference knows all elements of their outputs, and replaces
// constant parts of Reshape's shapes: [batch, seq, 12, 64] becomes [0, 0, 12, 64].
size_t FoldKnownElements(Graph& graph, const KnownElements& known);
// The same for nodes Shape alone.
size_t FoldKnownShapes(Graph& graph, const KnownElements& known);

// Applies the rules to the graph and its subgraphs.
size_t Simplify(Graph& graph, const RuleSet& rules);
// The rules for identities, views, casts and the like.
const RuleSet& SimplifyingRules();
// Those of them that leave views of views, and divisions by powers of two.
const RuleSet& RulesKeepingExportedPatterns();

// The rules that replace Conv and MatMul between DequantizeLinear and QuantizeLinear by QLinearConv
// and QLinearMatMul where those mean the same but for the rounding of sums.
const RuleSet& QuantizedOperatorRules();

// Replaces an If with a constant condition by its branch.
Status InlineConstantIfs(Graph& graph, size_t* changes);

// Computes single nodes for constant folding. Implemented by a room with kernels.
class NodeEvaluator {
 public:
  virtual ~NodeEvaluator() = default;
  virtual bool CanEvaluate(const Graph& graph, const Node& node) const = 0;
  // `inputs` has one value per node input, kNone for absent ones; the result has one per node
  // output.
  virtual Result<std::vector<Value>> Evaluate(const Graph& graph, const Node& node,
                                              std::span<const Value> inputs) = 0;
};

// What a node computes from its inputs, as bytes that are equal in this process for nodes that
// compute the same; nothing if that is unknown. Nodes with subgraphs are not compared.
std::optional<std::string> OperationKey(const Node& node);

// The limits of constant folding, over all calls that share the budget.
struct FoldingBudget {
  // Bytes of folded values, without those of the constants that they replace.
  size_t bytes = size_t{64} << 20;
  // The same of ConstantOfShape, whose results share memory where that can be repeated.
  size_t uniform_bytes = size_t{1} << 30;
  std::unordered_set<const void*> uniform = {};  // the elements of these results
  // A node that takes longer stays.
  std::chrono::nanoseconds time = std::chrono::seconds(2);
  // If it is more than 1, values that are at most so many times larger than the values they were
  // computed from count no bytes.
  size_t free_factor = 1;
};

// Replaces deterministic nodes with constant inputs by their values, until the budget is used up. A
// node whose evaluation fails stays, so that the failure is reported when it runs. Nodes for which
// `is_wanted` is false stay too.
size_t FoldConstants(
    Graph& graph, NodeEvaluator& evaluator, FoldingBudget& budget,
    FunctionRef<bool(const Graph&, const Node&)> is_wanted = [](const Graph&, const Node&) {
      return true;
    });

// Replaces calls of model-local functions by their bodies, everywhere in the model, and drops the
// functions. Errors: kInvalidGraph for functions that call themselves, naming the calls in between,
// and for models that grow beyond a million nodes.
Status InlineFunctions(Model& model);

// Repeatedly replaces nodes for which `has_kernel` is false by their operator's function body, if
// the schema has one. `graph` may be a subgraph's.
Status ExpandOperators(Graph& graph,
                       const std::function<bool(const Graph&, const Node&)>& has_kernel);

struct PassOptions {
  const ShapeFunctionTable* shape_functions = nullptr;  // never null
  NodeEvaluator* evaluator = nullptr;                   // null: nothing is folded by evaluation
  FoldingBudget budget;
  InferenceOptions inference;
  // Whether to leave what exporters wrote and tools look for: views of views, divisions, and shape
  // computations that depend on inputs that are not constant, but are known to inference, such as
  // the last size of x[batch, 64].
  bool keeps_exported_patterns = false;
  PassRunner* runner = nullptr;  // null: every pass is run
};

// Applies inference and all passes to a graph until nothing changes. Functions must be inlined
// before.
Status RunGeneralPasses(Graph& graph, PassOptions options);

}  // namespace tenon
