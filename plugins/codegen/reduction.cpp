// Reduce..., ArgMax, ArgMin and global pooling.

#include <numeric>

#include "kernel_writer.h"
#include "operators.h"
#include "rows.h"

namespace codegen {
namespace {

// The code that leaves the result of a row in `total`.
std::string CodeOf(std::string_view type) {
  const auto reduce = [](const char* start, const char* combine, const char* element) {
    return fmt::format("  REDUCE(total, {}, {}, {})\n", start, combine, element);
  };
  if (type == "ReduceMax" || type == "GlobalMaxPool") {
    return reduce("-INFINITY", "MAXIMUM", "X(column)");
  }
  if (type == "ReduceMin") return reduce("INFINITY", "MINIMUM", "X(column)");
  if (type == "ReduceProd") return reduce("1.0f", "PRODUCT", "X(column)");
  if (type == "ReduceL1") return reduce("0.0f", "SUM", "fabs(X(column))");
  if (type == "ReduceSumSquare") return reduce("0.0f", "SUM", "X(column) * X(column)");
  if (type == "ReduceL2") {
    return reduce("0.0f", "SUM", "X(column) * X(column)") + "  total = sqrt(total);\n";
  }
  if (type == "ReduceLogSum") {
    return reduce("0.0f", "SUM", "X(column)") + "  total = log(total);\n";
  }
  if (type == "ReduceLogSumExp") {
    return reduce("-INFINITY", "MAXIMUM", "X(column)") +
           "  const float peak = isinf(total) ? 0.0f : total;\n" +
           "  REDUCE(powers, 0.0f, SUM, exp(X(column) - peak))\n  total = log(powers) + peak;\n";
  }
  std::string sum = reduce("0.0f", "SUM", "X(column)");
  if (type == "ReduceMean" || type == "GlobalAveragePool") sum += "  total /= (float)COLUMNS;\n";
  return sum;
}

Status Reduce(Planner& planner, const Node& node, const std::vector<size_t>& axes, bool keep) {
  const TensorRef x = planner.Input(node, 0);
  Shape shape;
  for (size_t axis = 0; axis < x->shape.size(); ++axis) {
    const bool is_reduced = std::find(axes.begin(), axes.end(), axis) != axes.end();
    if (!is_reduced) shape.push_back(x->shape[axis]);
    if (is_reduced && keep) shape.push_back(1);
  }
  PLUGIN_ASSIGN_OR_RETURN(const Rows rows, MakeRows(planner, x, axes));
  const std::string code = CodeOf(node.type) + "  if (LANE == 0) STORE(ROW, total);\n";
  return planner.SetOutput(
      node, 0,
      planner.FromRoot(x->type, std::move(shape),
                       [rows, code, size = RowGroupSize(planner, rows),
                        holds = planner.target().holds_rows](KernelWriter& writer) {
                         return WriteRows(writer, rows, "reduce", code, size, holds);
                       }));
}

Status LowerReduce(Planner& planner, const Node& node) {
  const TensorRef x = planner.Input(node, 0);
  const size_t rank = x->shape.size();
  std::vector<int64_t> wanted = node.Ints("axes", {});
  if (planner.HasInput(node, 1)) {
    PLUGIN_ASSIGN_OR_RETURN(wanted, planner.KnownInput(node, 1));
  }
  if (wanted.empty() && node.Int("noop_with_empty_axes", 0) != 0) {
    return planner.SetOutput(node, 0, planner.Expression(x->type, x->shape, "$0", {x}));
  }
  std::vector<bool> is_reduced(rank, wanted.empty());
  for (const int64_t axis : wanted) {
    PLUGIN_ASSIGN_OR_RETURN(const size_t normalized, NormalizeAxis(axis, rank));
    is_reduced[normalized] = true;
  }
  std::vector<size_t> axes;
  for (size_t axis = 0; axis < rank; ++axis) {
    if (is_reduced[axis]) axes.push_back(axis);
  }
  return Reduce(planner, node, axes, node.Int("keepdims", 1) != 0);
}

Status LowerGlobalPool(Planner& planner, const Node& node) {
  const size_t rank = planner.Input(node, 0)->shape.size();
  if (rank < 3) return Failure("expected spatial axes");
  std::vector<size_t> axes(rank - 2);
  std::iota(axes.begin(), axes.end(), size_t{2});
  return Reduce(planner, node, axes, true);
}

// One item for each row: the first of equal elements wins, or the last.
Status LowerArg(Planner& planner, const Node& node) {
  const TensorRef x = planner.Input(node, 0);
  PLUGIN_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(node.Int("axis", 0), x->shape.size()));
  PLUGIN_ASSIGN_OR_RETURN(const Rows rows, MakeRows(planner, x, {axis}));
  Shape shape = x->shape;
  shape[axis] = 1;
  if (node.Int("keepdims", 1) == 0) shape.erase(shape.begin() + static_cast<ptrdiff_t>(axis));
  const bool last = node.Int("select_last_index", 0) != 0;
  const std::string better =
      fmt::format("{}{}", node.type == "ArgMax" ? ">" : "<", last ? "=" : "");
  const std::string code = fmt::format(
      "  if (LANE == 0) {{\n    int best = 0;\n    for (int column = 1; column < COLUMNS; "
      "++column)\n"
      "      if (X(column) {} X(best)) best = column;\n    STORE(ROW, best);\n  }}\n",
      better);
  return planner.SetOutput(
      node, 0,
      planner.FromRoot(DataType::kInt64, std::move(shape), [rows, code](KernelWriter& writer) {
        return WriteRows(writer, rows, "arg", code, 1, /*holds_rows=*/false);
      }));
}

}  // namespace

std::span<const Operator> ReductionOperators() {
  static const std::vector<Operator> kRows = [] {
    std::vector<Operator> rows;
    for (const char* type :
         {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
          "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"}) {
      const bool any = std::string_view(type) == "ReduceSum";
      rows.push_back({.type = type,
                      .lower = LowerReduce,
                      .types = any ? kNumbers : kFloats,
                      .known_inputs = 2});
    }
    rows.push_back({.type = "GlobalAveragePool", .lower = LowerGlobalPool, .types = kFloats});
    rows.push_back({.type = "GlobalMaxPool", .lower = LowerGlobalPool, .types = kFloats});
    rows.push_back({.type = "ArgMax", .lower = LowerArg, .types = kNumbers});
    rows.push_back({.type = "ArgMin", .lower = LowerArg, .types = kNumbers});
    return rows;
  }();
  return kRows;
}

}  // namespace codegen
