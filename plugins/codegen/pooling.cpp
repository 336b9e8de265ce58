// MaxPool and AveragePool; the global forms are reductions.

#include "operators.h"
#include "window.h"

namespace codegen {
namespace {

KernelBody WritePool(KernelWriter& writer, const TensorRef& x, const Window& window, int64_t count,
                     const char* code_of_kind, size_t group_size) {
  const Elements input = writer.Input(*x);
  const WindowNames w(writer, window);
  std::string code = fmt::format(
      "#define COUNT {}\n#define OH {}\n#define OW {}\n#define H {}\n#define W {}\n"
      "#define KH {}\n#define KW {}\n#define SH {}\n#define SW {}\n#define DH {}\n#define DW {}\n"
      "#define PH {}\n#define PW {}\n{}",
      writer.Int(count), w.output[0], w.output[1], w.input[0], w.input[1], w.kernel[0], w.kernel[1],
      w.strides[0], w.strides[1], w.dilations[0], w.dilations[1], w.pads[0], w.pads[1],
      input.Macro("X"));
  code += code_of_kind;
  code += R"(
  const int item = get_global_id(0);
  if (item >= COUNT) return;
  const int left = item % OW * SW - PW;
  const int top = item / OW % OH * SH - PH;
  const int plane = item / (OW * OH) * H * W;
  float result = START;
  int seen = 0;
  for (int ky = 0; ky < KH; ++ky) {
    const int row = top + ky * DH;
    if (row < 0 || row >= H) continue;
    for (int kx = 0; kx < KW; ++kx) {
      const int column = left + kx * DW;
      if (column < 0 || column >= W) continue;
      const float value = X(plane + row * W + column);
      result = STEP;
      ++seen;
    }
  }
  STORE(item, END);
)";
  const auto items = (static_cast<size_t>(count) + group_size - 1) / group_size * group_size;
  return {.name = "pool",
          .code = std::move(code),
          .global = {items, 1, 1},
          .local = {group_size, 1, 1}};
}

constexpr const char* kMax =
    "#define START -INFINITY\n#define STEP isnan(value) || value > result ? value : result\n"
    "#define END result\n";
constexpr const char* kMean =
    "#define START 0.0f\n#define STEP result + value\n#define END result / (float)seen\n";
constexpr const char* kMeanWithPads =
    "#define START 0.0f\n#define STEP result + value\n#define END result / (float)(KH * KW)\n";

Status LowerPool(Planner& planner, const Node& node) {
  PLUGIN_ASSIGN_OR_RETURN(const TensorRef x, planner.Contiguous(planner.Input(node, 0)));
  PLUGIN_ASSIGN_OR_RETURN(
      const Window window,
      ReadWindow(node, x->shape, node.Ints("kernel_shape", {}), node.Int("ceil_mode", 0) != 0));
  Shape shape = WindowResult(window, x->shape, x->shape[1]);
  const char* kind = node.type == "MaxPool"                  ? kMax
                     : node.Int("count_include_pad", 0) != 0 ? kMeanWithPads
                                                             : kMean;
  const int64_t count = ElementCount(shape);
  return planner.SetOutput(
      node, 0,
      planner.FromRoot(x->type, std::move(shape),
                       [x, window, count, kind, size = planner.group_size()](KernelWriter& writer) {
                         return WritePool(writer, x, window, count, kind, size);
                       }));
}

// Without the indices of the maxima. With padding that counts and windows that go past it, the
// divisor is neither form's.
bool IsPlainPool(const Graph& graph, const Node& node) {
  const auto& shape = graph.value(node.inputs[0]).shape;
  const bool has_indices = node.outputs.size() > 1 && node.outputs[1] >= 0;
  const bool is_odd = node.Int("count_include_pad", 0) != 0 && node.Int("ceil_mode", 0) != 0;
  return shape && (shape->size() == 3 || shape->size() == 4) && !has_indices && !is_odd &&
         node.Int("storage_order", 0) == 0;
}

}  // namespace

std::span<const Operator> PoolingOperators() {
  static constexpr Operator kRows[] = {
      {.type = "MaxPool", .lower = LowerPool, .types = kFloats, .accepts = IsPlainPool},
      {.type = "AveragePool", .lower = LowerPool, .types = kFloats, .accepts = IsPlainPool},
  };
  return kRows;
}

}  // namespace codegen
