// com.microsoft MatMulNBits: weights of four bits.

#include "kernels.h"
#include "operators.h"
#include "product.h"

namespace cuda {
namespace {

// Up to so many rows are multiplied without making elements of the weights first.
constexpr int64_t kFewRows = 8;
constexpr int64_t kChunk = 32;
constexpr size_t kChunkFloats = 36;

struct Weights {
  TensorRef b;
  TensorRef scales;
  TensorRef zeros;  // may be null
  int64_t n;
  int64_t k;
  int64_t block;
};

std::string Definitions(const Weights& w) {
  const int element = w.scales->type == DataType::kFloat16    ? 1
                      : w.scales->type == DataType::kBFloat16 ? 2
                                                              : 3;
  const int zeros = !w.zeros ? 0 : w.zeros->type == DataType::kUInt8 ? 1 : 2;
  return fmt::format("#define ELEMENT {}\n#define BLOCK {}\n#define ZEROS {}\n", element, w.block,
                     zeros);
}

std::vector<TensorRef> OperandsOf(const Weights& w) {
  std::vector<TensorRef> operands = {w.b, w.scales};
  if (w.zeros) operands.push_back(w.zeros);
  return operands;
}

// a [rows, k] times the weights, for few rows.
TensorRef MultiplyFew(Planner& planner, const TensorRef& a, const Weights& w, Shape shape) {
  const int64_t rows = ElementCount(shape) / w.n;
  const int64_t together = rows > 2 ? 4 : rows;
  const int64_t columns = together > 1 ? 1 : w.n >= 8192 ? 4 : w.n >= 2048 ? 2 : 1;
  std::vector<TensorRef> operands = OperandsOf(w);
  operands.insert(operands.begin(), a);
  auto call = std::make_shared<KernelCall>(
      ContextOf(planner).device, "nbits_product",
      Definitions(w) + fmt::format("#define ROWS {}\n#define COLUMNS {}\n", together, columns) +
          kNbitsProductSource,
      std::move(operands));
  call->numbers = {static_cast<int32_t>(rows), static_cast<int32_t>(w.n),
                   static_cast<int32_t>(w.k)};
  constexpr int64_t kWarps = 8;
  call->grid = {static_cast<unsigned>((w.n + kWarps * columns - 1) / (kWarps * columns)),
                static_cast<unsigned>((rows + together - 1) / together), 1};
  call->block = {static_cast<unsigned>(kWarps * 32), 1, 1};
  call->shared_bytes = static_cast<unsigned>(static_cast<size_t>(together * w.k / kChunk) *
                                             kChunkFloats * sizeof(float));
  return planner.FromCall(a->type, std::move(shape), std::move(call));
}

Result<TensorRef> Dequantize(Planner& planner, const Weights& w) {
  auto call = std::make_shared<KernelCall>(ContextOf(planner).device, "nbits_dequantize",
                                           Definitions(w) + kNbitsDequantizeSource, OperandsOf(w));
  call->numbers = {static_cast<int32_t>(w.n), static_cast<int32_t>(w.k)};
  const int64_t words = (w.k + w.block - 1) / w.block * w.block / 8 * w.n;
  call->grid = {static_cast<unsigned>((words + 255) / 256), 1, 1};
  call->block = {256, 1, 1};
  const TensorRef rows = planner.FromCall(w.scales->type, {w.n, w.k}, std::move(call));
  PLUGIN_RETURN_IF_ERROR(planner.Store(rows));
  return planner.View(rows, {w.k, w.n}, {1, w.k}, 0);
}

Result<Weights> ReadWeights(Planner& planner, const Node& node) {
  Weights w;
  w.n = node.Int("N", 0);
  w.k = node.Int("K", 0);
  w.block = node.Int("block_size", 0);
  PLUGIN_ASSIGN_OR_RETURN(w.b, planner.Contiguous(planner.Input(node, 1)));
  PLUGIN_ASSIGN_OR_RETURN(w.scales, planner.Contiguous(planner.Input(node, 2)));
  if (planner.HasInput(node, 3)) {
    PLUGIN_ASSIGN_OR_RETURN(w.zeros, planner.Contiguous(planner.Input(node, 3)));
  }
  const int64_t blocks = (w.k + w.block - 1) / w.block;
  if (w.n < 1 || w.k < 1 || ElementCount(w.b->shape) != w.n * blocks * w.block / 2 ||
      ElementCount(w.scales->shape) != w.n * blocks) {
    return Failure("expected weights [{}, {}, {}] and {} scales, got {} and {}", w.n, blocks,
                   w.block / 2, w.n * blocks, w.b->shape, w.scales->shape);
  }
  return w;
}

Status LowerMatMulNBits(Planner& planner, const Node& node) {
  PLUGIN_ASSIGN_OR_RETURN(const Weights w, ReadWeights(planner, node));
  PLUGIN_ASSIGN_OR_RETURN(const TensorRef a, planner.Contiguous(planner.Input(node, 0)));
  if (a->shape.empty() || a->shape.back() != w.k) {
    return Failure("input 0: expected {} columns, got {}", w.k, a->shape);
  }
  Shape shape = a->shape;
  shape.back() = w.n;
  const int64_t rows = ElementCount(shape) / w.n;
  const bool is_even = w.k % kChunk == 0 && w.block % kChunk == 0;
  // Four rows of the longest inputs take more shared memory than there is.
  constexpr int64_t kMostFloats = 40 * 1024;
  const bool fits = std::min<int64_t>(rows, 4) * w.k <= kMostFloats;
  TensorRef y;
  const bool is_few = rows <= kFewRows || !ContextOf(planner).HasBlas();
  if (is_few && is_even && fits) {
    y = MultiplyFew(planner, a, w, std::move(shape));
  } else {
    PLUGIN_ASSIGN_OR_RETURN(const TensorRef b, Dequantize(planner, w));
    PLUGIN_ASSIGN_OR_RETURN(y, Multiply(planner, a, b));
  }
  if (planner.HasInput(node, 5)) {
    const TensorRef bias = planner.Input(node, 5);
    const EpilogueCall* call = Extensible(*y);
    auto extended = call ? call->Add(planner, y->shape, bias) : nullptr;
    y = extended ? planner.FromCall(y->type, y->shape, std::move(extended))
                 : planner.Expression(y->type, y->shape, "$0 + $1", {y, bias});
  }
  return planner.SetOutput(node, 0, y);
}

bool IsFourBits(const Graph& graph, const Node& node) {
  const int64_t block = node.Int("block_size", 0);
  const auto has = [&](size_t input) {
    return node.inputs.size() > input && node.inputs[input] >= 0;
  };
  const DataType type = graph.value(node.inputs[0]).type;
  if (node.Int("bits", 4) != 4 || block < 16 || (block & (block - 1)) != 0 || has(4)) return false;
  if (!IsFloat(type) || graph.value(node.inputs[1]).type != DataType::kUInt8) return false;
  if (graph.value(node.inputs[2]).type != type) return false;
  if (!has(3)) return true;
  const DataType zeros = graph.value(node.inputs[3]).type;
  return zeros == DataType::kUInt8 || zeros == type;
}

}  // namespace

std::span<const Operator> QuantizedOperators() {
  static constexpr Operator kRows[] = {
      {.type = "MatMulNBits",
       .lower = LowerMatMulNBits,
       .types = kFloats | BitOf(DataType::kUInt8),
       .accepts = IsFourBits,
       .domain = "com.microsoft"},
  };
  return kRows;
}

}  // namespace cuda
