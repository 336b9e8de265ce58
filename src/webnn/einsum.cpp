// Einsum of one or two operands, as sums, transpositions and one product of matrices.
#include <algorithm>

#include "ops/linear/einsum_equation.h"
#include "webnn/emission.h"

namespace tenon::webnn {
namespace {

bool Has(const Labels& labels, uint8_t label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

int64_t AxisOf(const Labels& labels, uint8_t label) {
  return std::find(labels.begin(), labels.end(), label) - labels.begin();
}

// An operand and the labels of its axes.
struct Labelled {
  Operand operand;
  Labels labels;
};

// Sums over the axes that are neither in the result nor in `other`, which may be null.
Result<Labelled> WithoutOwnAxes(ProgramBuilder& b, const Labelled& x, const Labels& result,
                                const Labels* other) {
  Numbers axes;
  Labelled rest = {x.operand, {}};
  for (size_t i = 0; i < x.labels.size(); ++i) {
    const uint8_t label = x.labels[i];
    const bool stays = Has(result, label) || (other != nullptr && Has(*other, label));
    if (stays) {
      rest.labels.push_back(label);
    } else {
      axes.push_back(static_cast<int64_t>(i));
    }
  }
  if (axes.empty()) return rest;
  TENON_ASSIGN_OR_RETURN(rest.operand, b.Reduce("reduceSum", x.operand, axes, false));
  return rest;
}

// Transposes to the order of `labels`, which are those of the operand.
Result<Operand> InOrder(ProgramBuilder& b, const Labelled& x, const Labels& labels) {
  if (x.labels == labels) return x.operand;
  Numbers permutation;
  for (const uint8_t label : labels) permutation.push_back(AxisOf(x.labels, label));
  return b.Transpose(x.operand, permutation);
}

// The product of the sizes of some labels, of which the operand has all.
int64_t SizeOf(const ProgramBuilder& b, const Labelled& x, const Labels& labels) {
  int64_t size = 1;
  for (const uint8_t label : labels) {
    size *= b.ShapeOf(x.operand)[static_cast<size_t>(AxisOf(x.labels, label))];
  }
  return size;
}

Labels Joined(std::initializer_list<const Labels*> lists) {
  Labels joined;
  for (const Labels* const list : lists) joined.insert(joined.end(), list->begin(), list->end());
  return joined;
}

// A matrix product over the labels that both have and the result lacks, batched over the labels
// that all three have.
Result<Labelled> Product(ProgramBuilder& b, const Labelled& x, const Labelled& y,
                         const Labels& result) {
  Labels batch, left, right, summed;
  for (const uint8_t label : x.labels) {
    (Has(y.labels, label) ? Has(result, label) ? batch : summed : left).push_back(label);
  }
  for (const uint8_t label : y.labels) {
    if (!Has(x.labels, label)) right.push_back(label);
  }
  const int64_t batches = SizeOf(b, x, batch), m = SizeOf(b, x, left), k = SizeOf(b, x, summed),
                n = SizeOf(b, y, right);
  TENON_ASSIGN_OR_RETURN(const Operand x_moved, InOrder(b, x, Joined({&batch, &left, &summed})));
  TENON_ASSIGN_OR_RETURN(const Operand y_moved, InOrder(b, y, Joined({&batch, &summed, &right})));
  TENON_ASSIGN_OR_RETURN(const Operand rows, b.Reshape(x_moved, Shape({batches, m, k})));
  TENON_ASSIGN_OR_RETURN(const Operand columns, b.Reshape(y_moved, Shape({batches, k, n})));
  TENON_ASSIGN_OR_RETURN(const Operand product, b.Call("matmul", {{"a", rows}, {"b", columns}}, {},
                                                       {b.TypeOf(rows), Shape({batches, m, n})}));
  Shape shape;
  for (const Labels* const list : {&batch, &left}) {
    for (const uint8_t label : *list) shape.Append(SizeOf(b, x, {label}));
  }
  for (const uint8_t label : right) shape.Append(SizeOf(b, y, {label}));
  Labelled made = {{}, Joined({&batch, &left, &right})};
  TENON_ASSIGN_OR_RETURN(made.operand, b.Reshape(product, shape));
  return made;
}

// Labels that occur once, and have one size everywhere.
Status CheckLabels(const ProgramBuilder& b, std::span<const Labelled> operands) {
  int64_t sizes[kMostLabels] = {};
  for (const Labelled& one : operands) {
    for (size_t i = 0; i < one.labels.size(); ++i) {
      const uint8_t label = one.labels[i];
      if (std::count(one.labels.begin(), one.labels.end(), label) != 1) {
        return NotImplemented("diagonals");
      }
      const int64_t size = b.ShapeOf(one.operand)[i];
      if (sizes[label] != 0 && sizes[label] != size)
        return NotImplemented("axes that are broadcast");
      sizes[label] = size;
    }
  }
  return OkStatus();
}

Status EmitEinsum(NodeContext& context) {
  ProgramBuilder& b = context.builder();
  TENON_ASSIGN_OR_RETURN(const EinsumEquation equation,
                         EinsumEquation::Parse(context.node().GetString("equation", "")));
  const size_t count = context.input_count();
  if (count > 2 || equation.operand_count() != count) {
    return NotImplemented("{} operands", count);
  }
  std::vector<Labelled> operands;
  std::vector<size_t> ranks;
  for (size_t i = 0; i < count; ++i) {
    TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(i));
    ranks.push_back(b.RankOf(x));
    TENON_ASSIGN_OR_RETURN(Labels labels, equation.LabelsOf(i, b.RankOf(x)));
    operands.push_back({x, std::move(labels)});
  }
  TENON_RETURN_IF_ERROR(CheckLabels(b, operands));
  const Labels result = equation.OutputLabels(equation.EllipsisRank(ranks));
  const Labels* const other = count == 2 ? &operands[1].labels : nullptr;
  TENON_ASSIGN_OR_RETURN(Labelled made, WithoutOwnAxes(b, operands[0], result, other));
  if (count == 2) {
    TENON_ASSIGN_OR_RETURN(const Labelled second,
                           WithoutOwnAxes(b, operands[1], result, &operands[0].labels));
    TENON_ASSIGN_OR_RETURN(made, Product(b, made, second, result));
  }
  TENON_ASSIGN_OR_RETURN(const Operand y, InOrder(b, made, result));
  return context.SetOutput(0, y);
}

constexpr Row kRows[] = {
    {"Einsum", EmitEinsum, "matmul",
     "one or two operands; no diagonals, no axes that are broadcast"},
};

}  // namespace

TENON_WEBNN_FAMILY(Einsum, kRows);

}  // namespace tenon::webnn
