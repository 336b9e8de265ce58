// Softmax and the normalizations.

#include <algorithm>
#include <numeric>

#include "kernel_writer.h"
#include "operators.h"
#include "rows.h"

namespace codegen {
namespace {

TensorRef FromRows(Planner& planner, Shape shape, const Rows& rows, const char* name,
                   std::string code) {
  return planner.FromRoot(rows.tensor->type, std::move(shape),
                          [rows, name, code = std::move(code), size = RowGroupSize(planner, rows),
                           holds = planner.target().holds_rows](KernelWriter& writer) {
                            return WriteRows(writer, rows, name, code, size, holds);
                          });
}

std::vector<size_t> AxesFrom(size_t first, size_t rank) {
  std::vector<size_t> axes(rank - first);
  std::iota(axes.begin(), axes.end(), first);
  return axes;
}

// Before Softmax-13 all axes from `axis` on are one.
Status LowerSoftmax(Planner& planner, const Node& node) {
  const TensorRef x = planner.Input(node, 0);
  const size_t rank = x->shape.size();
  const bool is_modern = node.since >= 13;
  PLUGIN_ASSIGN_OR_RETURN(const size_t axis,
                          NormalizeAxis(node.Int("axis", is_modern ? -1 : 1), rank));
  const std::vector<size_t> axes = is_modern ? std::vector{axis} : AxesFrom(axis, rank);
  PLUGIN_ASSIGN_OR_RETURN(const Rows rows, MakeRows(planner, x, axes));
  std::string code =
      "  REDUCE(peak, -INFINITY, MAXIMUM, X(column))\n"
      "  REDUCE(total, 0.0f, SUM, exp(X(column) - peak))\n"
      "  FOR_COLUMNS\n";
  code += node.type == "Softmax"
              ? "    STORE(ROW * COLUMNS + column, exp(X(column) - peak) / total);\n"
              : "    STORE(ROW * COLUMNS + column, X(column) - peak - log(total));\n";
  const Shape by_rows = rows.tensor->shape;
  TensorRef y = FromRows(planner, by_rows, rows, "softmax", std::move(code));
  if (by_rows != x->shape || (is_modern && axis + 1 != rank)) {
    // The axis goes back to its place.
    PLUGIN_RETURN_IF_ERROR(planner.Store(y));
    Shape strides(rank);
    size_t source = 0;
    for (size_t i = 0; i < rank; ++i) {
      strides[i] = i == axis ? y->strides[rank - 1] : y->strides[source++];
    }
    PLUGIN_ASSIGN_OR_RETURN(y, planner.View(y, x->shape, std::move(strides), 0));
  }
  return planner.SetOutput(node, 0, y);
}

std::string NormalizingCode(bool subtract_mean, float epsilon) {
  std::string code = subtract_mean ? "  REDUCE(total, 0.0f, SUM, X(column))\n"
                                     "  const float mean = total / (float)COLUMNS;\n"
                                   : "  const float mean = 0.0f;\n";
  code += fmt::format(
      "  REDUCE(squares, 0.0f, SUM, (X(column) - mean) * (X(column) - mean))\n"
      "  const float scale = 1.0f / sqrt(squares / (float)COLUMNS + {:.9e}f);\n"
      "  FOR_COLUMNS\n"
      "    STORE(ROW * COLUMNS + column, (X(column) - mean) * scale);\n",
      epsilon);
  return code;
}

// The tensor times a scale plus a bias, either of which may be absent (null). RMSNormalization's
// scale may be of another type than x; the result is of the scale's.
TensorRef Affine(Planner& planner, TensorRef x, const TensorRef& scale, const TensorRef& bias) {
  const Shape shape = x->shape;
  if (scale) x = planner.Expression(scale->type, shape, "$0 * $1", {x, scale});
  if (bias) x = planner.Expression(x->type, shape, "$0 + $1", {x, bias});
  return x;
}

TensorRef InputOrNull(Planner& planner, const Node& node, size_t index) {
  return planner.HasInput(node, index) ? planner.Input(node, index) : nullptr;
}

Result<TensorRef> NormalizeFrom(Planner& planner, const TensorRef& x, size_t axis, bool centered,
                                float epsilon) {
  PLUGIN_ASSIGN_OR_RETURN(const Rows rows, MakeRows(planner, x, AxesFrom(axis, x->shape.size())));
  return FromRows(planner, x->shape, rows, "normalization", NormalizingCode(centered, epsilon));
}

// LayerNormalization-17, RMSNormalization-23 and com.microsoft's SimplifiedLayerNormalization.
Status LowerLayerNormalization(Planner& planner, const Node& node) {
  const TensorRef x = planner.Input(node, 0);
  PLUGIN_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(node.Int("axis", -1), x->shape.size()));
  PLUGIN_ASSIGN_OR_RETURN(const TensorRef y,
                          NormalizeFrom(planner, x, axis, node.type == "LayerNormalization",
                                        node.Float("epsilon", 1e-5f)));
  return planner.SetOutput(
      node, 0, Affine(planner, y, InputOrNull(planner, node, 1), InputOrNull(planner, node, 2)));
}

// com.microsoft: x + skip + bias, normalized; the sum may be an output too.
Status LowerSkipLayerNormalization(Planner& planner, const Node& node) {
  const bool centered = node.type == "SkipLayerNormalization";
  const TensorRef x = planner.Input(node, 0);
  PLUGIN_ASSIGN_OR_RETURN(TensorRef sum, planner.Add(x, planner.Input(node, 1)));
  if (const TensorRef bias = InputOrNull(planner, node, centered ? 4 : 3)) {
    PLUGIN_ASSIGN_OR_RETURN(sum, planner.Add(sum, bias));
  }
  PLUGIN_RETURN_IF_ERROR(planner.Store(sum));
  PLUGIN_ASSIGN_OR_RETURN(
      const TensorRef y,
      NormalizeFrom(planner, sum, x->shape.size() - 1, centered, node.Float("epsilon", 1e-12f)));
  PLUGIN_RETURN_IF_ERROR(planner.SetOutput(node, 3, sum));
  return planner.SetOutput(node, 0,
                           Affine(planner, y, planner.Input(node, 2),
                                  centered ? InputOrNull(planner, node, 3) : nullptr));
}

// A parameter of each channel, ready to be broadcast over a [n, channels, ...] tensor.
Result<TensorRef> PerChannel(Planner& planner, const Node& node, size_t index, size_t rank) {
  const TensorRef parameter = planner.Input(node, index);
  Shape shape(rank - 1, 1);
  shape[0] = ElementCount(parameter->shape);
  return planner.Reshape(parameter, std::move(shape));
}

// InstanceNormalization-6 and GroupNormalization-21: groups of channels, one by one or more.
Status LowerGroupNormalization(Planner& planner, const Node& node) {
  const TensorRef x = planner.Input(node, 0);
  const size_t rank = x->shape.size();
  if (rank < 2) return Failure("expected channels, got shape {}", x->shape);
  const int64_t groups =
      node.type == "InstanceNormalization" ? x->shape[1] : node.Int("num_groups", 0);
  if (groups < 1 || x->shape[1] % groups != 0) {
    return Failure("expected {} channels in equal groups, got {} groups", x->shape[1], groups);
  }
  const int64_t rest = ElementCount(x->shape) / std::max<int64_t>(1, x->shape[0] * groups);
  PLUGIN_ASSIGN_OR_RETURN(const TensorRef grouped,
                          planner.Reshape(x, {x->shape[0] * groups, rest}));
  PLUGIN_ASSIGN_OR_RETURN(TensorRef y,
                          NormalizeFrom(planner, grouped, 1, true, node.Float("epsilon", 1e-5f)));
  // The kernel writes elements in the order of x, so that it may be x's shape that it has.
  y->shape = x->shape;
  y->strides = RowMajorStrides(x->shape);
  PLUGIN_ASSIGN_OR_RETURN(const TensorRef scale, PerChannel(planner, node, 1, rank));
  PLUGIN_ASSIGN_OR_RETURN(const TensorRef bias, PerChannel(planner, node, 2, rank));
  return planner.SetOutput(node, 0, Affine(planner, y, scale, bias));
}

// BatchNormalization of inference.
Status LowerBatchNormalization(Planner& planner, const Node& node) {
  const TensorRef x = planner.Input(node, 0);
  if (x->shape.size() < 2) return Failure("expected channels, got shape {}", x->shape);
  std::vector<TensorRef> operands = {x};
  for (size_t i = 1; i <= 4; ++i) {
    PLUGIN_ASSIGN_OR_RETURN(TensorRef parameter, PerChannel(planner, node, i, x->shape.size()));
    operands.push_back(std::move(parameter));
  }
  return planner.SetOutput(
      node, 0,
      planner.Expression(
          x->type, x->shape,
          fmt::format("($0 - $3) / sqrt($4 + {:.9e}f) * $1 + $2", node.Float("epsilon", 1e-5f)),
          std::move(operands)));
}

// LRN-1: across the channels around each one.
KernelBody WriteLrn(KernelWriter& writer, const TensorRef& x, const Node& node, size_t group_size) {
  const int64_t size = node.Int("size", 1);
  const int64_t count = ElementCount(x->shape);
  const int64_t inner = count / std::max<int64_t>(1, x->shape[0] * x->shape[1]);
  std::string code = fmt::format(
      "#define COUNT {}\n#define CHANNELS {}\n#define INNER {}\n#define BEFORE {}\n"
      "#define AFTER {}\n#define BIAS {}\n#define SCALE {}\n#define BETA {}\n{}",
      writer.Int(count), writer.Int(x->shape[1]), writer.Int(inner), writer.Int((size - 1) / 2),
      writer.Int(size / 2), writer.Float(node.Float("bias", 1)),
      writer.Float(node.Float("alpha", 1e-4f) / static_cast<float>(size)),
      writer.Float(node.Float("beta", 0.75f)), writer.Input(*x).Macro("X"));
  code += R"(
  const int item = get_global_id(0);
  if (item >= COUNT) return;
  const int channel = item / INNER % CHANNELS;
  float squares = 0.0f;
  for (int other = max(channel - BEFORE, 0); other <= min(channel + AFTER, CHANNELS - 1); ++other) {
    const float value = X(item + (other - channel) * INNER);
    squares += value * value;
  }
  STORE(item, X(item) / pow(BIAS + SCALE * squares, BETA));
)";
  const auto items = (static_cast<size_t>(count) + group_size - 1) / group_size * group_size;
  return {.name = "local_response",
          .code = std::move(code),
          .global = {items, 1, 1},
          .local = {group_size, 1, 1}};
}

Status LowerLrn(Planner& planner, const Node& node) {
  PLUGIN_ASSIGN_OR_RETURN(const TensorRef x, planner.Contiguous(planner.Input(node, 0)));
  if (x->shape.size() < 2) return Failure("expected channels, got shape {}", x->shape);
  if (node.Int("size", 1) < 1) return Failure("expected a size of 1 or more");
  return planner.SetOutput(
      node, 0,
      planner.FromRoot(x->type, x->shape,
                       [x, &node, size = planner.group_size()](KernelWriter& writer) {
                         return WriteLrn(writer, x, node, size);
                       }));
}

bool HasOneOutput(const Graph&, const Node& node) {
  for (size_t i = 1; i < node.outputs.size(); ++i) {
    if (node.outputs[i] >= 0) return false;
  }
  return node.Int("training_mode", 0) == 0;
}

bool HasNoStatistics(const Graph&, const Node& node) {
  return (node.outputs.size() < 2 || node.outputs[1] < 0) &&
         (node.outputs.size() < 3 || node.outputs[2] < 0);
}

}  // namespace

std::span<const Operator> NormalizationOperators() {
  static constexpr Operator kRows[] = {
      {.type = "Softmax", .lower = LowerSoftmax, .types = kFloats},
      {.type = "LogSoftmax", .lower = LowerSoftmax, .types = kFloats},
      {.type = "LayerNormalization",
       .lower = LowerLayerNormalization,
       .types = kFloats,
       .accepts = HasOneOutput},
      {.type = "RMSNormalization",
       .lower = LowerLayerNormalization,
       .types = kFloats,
       .accepts = HasOneOutput},
      {.type = "SimplifiedLayerNormalization",
       .lower = LowerLayerNormalization,
       .types = kFloats,
       .accepts = HasOneOutput},
      {.type = "SkipLayerNormalization",
       .lower = LowerSkipLayerNormalization,
       .types = kFloats,
       .accepts = HasNoStatistics,
       .domain = "com.microsoft"},
      {.type = "SkipSimplifiedLayerNormalization",
       .lower = LowerSkipLayerNormalization,
       .types = kFloats,
       .accepts = HasNoStatistics,
       .domain = "com.microsoft"},
      {.type = "LRN", .lower = LowerLrn, .types = kFloats},
      {.type = "InstanceNormalization", .lower = LowerGroupNormalization, .types = kFloats},
      {.type = "GroupNormalization",
       .lower = LowerGroupNormalization,
       .types = kFloats,
       .since = 21},
      {.type = "BatchNormalization",
       .lower = LowerBatchNormalization,
       .types = kFloats,
       .accepts = HasOneOutput,
       .since = 7},
  };
  return kRows;
}

}  // namespace codegen
