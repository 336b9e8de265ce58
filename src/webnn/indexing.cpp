// Gathering and scattering by indices.
#include "webnn/emission.h"

namespace tenon::webnn {
namespace {

// Converts indices to a type that the context accepts; they are smaller than a dimension.
Result<Operand> Indices(NodeContext& context, size_t i) {
  ProgramBuilder& builder = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand indices, context.Input(i));
  const OperandLimits* const limits = builder.limits().Find(context.method(), "indices");
  if (limits == nullptr || limits->types.Contains(builder.TypeOf(indices))) return indices;
  return builder.Cast(indices, DataType::kInt32);
}

// Gather and GatherElements, which have an axis, and GatherND.
Status EmitGather(NodeContext& context) {
  const Node& node = context.node();
  if (node.GetInt("batch_dims", 0) != 0) return NotImplemented("WebNN has no batches of indices");
  ProgramBuilder& builder = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const Operand indices, Indices(context, 1));
  TENON_ASSIGN_OR_RETURN(const Shape shape, context.OutputShape(0));
  Parameters options;
  if (context.method() != "gatherND") {
    TENON_ASSIGN_OR_RETURN(const int64_t axis,
                           context.Axis(node.GetInt("axis", 0), builder.RankOf(x)));
    options.push_back({"axis", axis});
  }
  TENON_ASSIGN_OR_RETURN(const Operand y,
                         builder.Call(context.method(), {{"input", x}, {"indices", indices}},
                                      std::move(options), {builder.TypeOf(x), shape}));
  return context.SetOutput(0, y);
}

Status EmitScatter(NodeContext& context) {
  const Node& node = context.node();
  if (node.GetString("reduction", "none") != "none") {
    return NotImplemented("WebNN overwrites what it scatters to");
  }
  ProgramBuilder& builder = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const Operand indices, Indices(context, 1));
  TENON_ASSIGN_OR_RETURN(const Operand updates, context.Input(2));
  Parameters options;
  if (context.method() == "scatterElements") {
    TENON_ASSIGN_OR_RETURN(const int64_t axis,
                           context.Axis(node.GetInt("axis", 0), builder.RankOf(x)));
    options.push_back({"axis", axis});
  }
  TENON_ASSIGN_OR_RETURN(
      const Operand y,
      builder.Call(context.method(), {{"input", x}, {"indices", indices}, {"updates", updates}},
                   std::move(options), {builder.TypeOf(x), builder.ShapeOf(x)}));
  return context.SetOutput(0, y);
}

constexpr Row kRows[] = {
    {"Gather", EmitGather, "gather"},
    {"GatherElements", EmitGather, "gatherElements"},
    {"GatherND", EmitGather, "gatherND", "batch_dims is 0"},
    {"Scatter", EmitScatter, "scatterElements"},
    {"ScatterElements", EmitScatter, "scatterElements", "reduction is none"},
    {"ScatterND", EmitScatter, "scatterND", "reduction is none"},
};

}  // namespace

TENON_WEBNN_FAMILY(Indexing, kRows);

}  // namespace tenon::webnn
