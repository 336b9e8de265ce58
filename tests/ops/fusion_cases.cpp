#include "ops/fusion_cases.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "ir/inference.h"

namespace tenon {
namespace {

Status SameAsInput(const Node&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  return context.SetOutput(0, std::move(shape));
}

Status Broadcast(const Node&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape a, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape b, context.Input(1));
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, BroadcastShapes(a, b));
  return context.SetOutput(0, std::move(shape));
}

Status Reduce(const Node& node, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  Shape axes(node.GetInts("axes"));
  if (context.HasInput(1)) {
    TENON_ASSIGN_OR_RETURN(axes, context.InputAsInts(1));
  }
  for (const int64_t axis : axes) {
    TENON_ASSIGN_OR_RETURN(const size_t normalized, NormalizeAxis(axis, shape.rank()));
    shape[normalized] = Dim(1);
  }
  return context.SetOutput(0, std::move(shape));
}

Status MatMul(const Node&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape a, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape b, context.Input(1));
  if (b.rank() == 1) return UnknownShape();
  a[a.rank() - 1] = b[b.rank() - 1];
  return context.SetOutput(0, std::move(a));
}

Status Transpose(const Node& node, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape input, context.Input(0));
  SymbolicShape output;
  for (const int64_t axis : node.GetInts("perm")) output.Append(input[static_cast<size_t>(axis)]);
  return context.SetOutput(0, std::move(output));
}

// Kernels of size 1, so that the spatial axes stay.
Status Conv(const Node&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape w, context.Input(1));
  x[1] = w[0];
  return context.SetOutput(0, std::move(x));
}

// One scale and one zero point.
Status DynamicQuantize(const Node& node, ShapeContext& context) {
  TENON_RETURN_IF_ERROR(context.SetOutput(1, SymbolicShape{}));
  TENON_RETURN_IF_ERROR(context.SetOutput(2, SymbolicShape{}));
  return SameAsInput(node, context);
}

Status Reshape(const Node&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(Dims dims, context.InputAsDims(1));
  return context.SetOutput(0, SymbolicShape(std::move(dims)));
}

// The test says it.
Status Said(const Node&, ShapeContext&) { return UnknownShape(); }

class Shapes final : public ShapeFunctionTable {
 public:
  ShapeFunction Find(const Node& node) const override {
    constexpr std::string_view kBinary[] = {"Add", "Sub", "Mul", "Div", "Pow"};
    if (std::count(std::begin(kBinary), std::end(kBinary), node.op_type)) return Broadcast;
    if (node.op_type == "ReduceMean") return Reduce;
    constexpr std::string_view kProducts[] = {"Gemm", "MatMul", "MatMulInteger"};
    if (std::count(std::begin(kProducts), std::end(kProducts), node.op_type)) return MatMul;
    if (node.op_type == "Transpose") return Transpose;
    if (node.op_type == "Reshape") return Reshape;
    if (node.op_type == "Conv" || node.op_type == "ConvInteger") return Conv;
    if (node.op_type == "DynamicQuantizeLinear") return DynamicQuantize;
    if (node.op_type == "Unsqueeze" || node.op_type == "Expand") return Said;
    return SameAsInput;
  }
};

bool HasEveryKernel(std::string_view, std::string_view, DataType) { return true; }

}  // namespace

void InferForFusions(Graph& graph) {
  const Shapes shapes;
  const Status status = InferTypes(graph, shapes);
  EXPECT_TRUE(status.ok()) << status.message();
}

RuleSet RulesOf(std::vector<Fusion> fusions) {
  std::vector<Rule> rules;
  for (Fusion& fusion : fusions) rules.push_back(std::move(fusion.rule));
  return RuleSet(std::move(rules));
}

std::string FusedText(Graph& graph) {
  InferForFusions(graph);
  for (const FusionPass& pass : MakeFusions(HasEveryKernel)) ApplyRules(graph, pass.rules);
  return GraphText(graph);
}

}  // namespace tenon
