// QEmbedLayerNormalization of com.microsoft: sums of embeddings of 8 bits, normalized.
#include <algorithm>

#include "kernels/elementwise/quantize.h"
#include "kernels/normalization.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

constexpr size_t kWordIds = 0, kSegmentIds = 1, kTables = 2, kMask = 7, kScales = 8,
                 kZeroPoints = 13;
enum Output : size_t { kNormalized, kMaskIndex };

// The tables, by their index after kTables, kScales and kZeroPoints.
enum Table : size_t { kWords, kPositions, kSegments, kGamma, kBeta };
constexpr size_t kTableCount = 5;

struct EmbeddingAttrs {
  float epsilon = 1e-12f;
  static constexpr auto Fields() { return std::tuple(Field("epsilon", &EmbeddingAttrs::epsilon)); }
};

// Checks that scale and zero point of a table have one element.
Status CheckQuantization(const ShapeContext& context, size_t table) {
  for (const size_t i : {kScales + table, kZeroPoints + table}) {
    if (!context.HasInput(i)) continue;
    const Result<SymbolicShape> shape = context.Input(i);
    if (!shape && IsUnknownShape(shape.error())) continue;
    if (!shape) return shape.error();
    const Dim elements = shape->NumElements();
    if (!MayEqual(elements, Dim(1))) {
      return InvalidArgument("input {}: expected one element, got {}", i, *shape);
    }
  }
  return OkStatus();
}

[[gnu::cold]] Status InferEmbedding(const EmbeddingAttrs&, ShapeContext& context) {
  for (const size_t i : {kTables + kSegments, kScales + kSegments, kZeroPoints + kSegments}) {
    if (context.HasInput(i) != context.HasInput(kSegmentIds)) {
      return InvalidArgument("input {} and segment_ids are used together or not at all", i);
    }
  }
  for (size_t table = 0; table < kTableCount; ++table) {
    TENON_RETURN_IF_ERROR(CheckQuantization(context, table));
  }
  TENON_ASSIGN_OR_RETURN(const SymbolicShape ids, context.InputOfRank(kWordIds, 2));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape words, context.InputOfRank(kTables + kWords, 2));
  const Dim& size = words[1];
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kSegmentIds, ids));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kMask, ids));
  for (const size_t table : {kPositions, kSegments}) {
    TENON_RETURN_IF_ERROR(CheckInputShape(context, kTables + table, {Dim::Unknown(), size}));
  }
  for (const size_t table : {kGamma, kBeta}) {
    TENON_RETURN_IF_ERROR(CheckInputShape(context, kTables + table, {size}));
  }
  TENON_RETURN_IF_ERROR(context.SetOutput(kMaskIndex, {ids[0]}, DataType::kInt32));
  return context.SetOutput(kNormalized, {ids[0], ids[1], size}, DataType::kFloat);
}

// A table with its one scale and zero point.
struct QuantizedTable {
  const std::byte* data;
  kernels::QuantizedType type;
  float scale;
  int32_t zero_point;

  QuantizedTable(const KernelContext& context, size_t table)
      : data(static_cast<const std::byte*>(context.Input(kTables + table).raw())),
        scale(*context.Input(kScales + table).data<float>()) {
    const Tensor& zero = context.Input(kZeroPoints + table);
    const bool is_signed = zero.type() == DataType::kInt8;
    type = is_signed ? kernels::QuantizedType::kInt8 : kernels::QuantizedType::kUint8;
    zero_point = is_signed ? int32_t{*zero.data<int8_t>()} : int32_t{*zero.data<uint8_t>()};
  }
  // n elements of a row of as many.
  void Row(size_t row, size_t n, float* into) const {
    kernels::Dequantize(data + row * n, n, {&scale, &zero_point, false}, type, into);
  }
};

Status CheckIds(const Tensor& ids, size_t input, int64_t rows) {
  for (const int32_t id : ids.values<int32_t>()) {
    if (id >= 0 && id < rows) continue;
    return InvalidArgument("input {}: expected indices in [0, {}), got {}", input, rows, id);
  }
  return OkStatus();
}

void CountOnes(const KernelContext& context, Tensor& counts) {
  const int64_t length = context.Input(kWordIds).shape()[1];
  for (int64_t b = 0; b < counts.size(); ++b) {
    int64_t count = 0;
    if (context.HasInput(kMask)) {
      const int32_t* row = context.Input(kMask).data<int32_t>() + b * length;
      count = std::count(row, row + length, 1);
    }
    counts.data<int32_t>()[b] = static_cast<int32_t>(count);
  }
}

Status RunEmbedding(const EmbeddingAttrs& attrs, KernelContext& context) {
  const Tensor& ids = context.Input(kWordIds);
  const bool has_segments = context.HasInput(kSegmentIds);
  const auto rows_of = [&](size_t table) { return context.Input(kTables + table).shape()[0]; };
  TENON_RETURN_IF_ERROR(CheckIds(ids, kWordIds, rows_of(kWords)));
  if (has_segments) {
    TENON_RETURN_IF_ERROR(CheckIds(context.Input(kSegmentIds), kSegmentIds, rows_of(kSegments)));
  }
  if (ids.shape()[1] > rows_of(kPositions)) {
    return InvalidArgument("input 0: expected at most {} positions, got {}", rows_of(kPositions),
                           ids.shape());
  }
  CountOnes(context, context.Output(kMaskIndex));
  const QuantizedTable words(context, kWords), positions(context, kPositions);
  const QuantizedTable segments(context, has_segments ? kSegments : kWords);
  const auto n = static_cast<size_t>(context.Input(kTables + kWords).shape()[1]);
  const auto length = static_cast<size_t>(ids.shape()[1]);
  const auto tokens = static_cast<size_t>(ids.size());
  const size_t memory = context.TaskScratchBytes(tokens, 3 * n * sizeof(float));
  const size_t vectors = (2 * n * sizeof(float) + 63) / 64 * 64;
  auto* scratch = static_cast<std::byte*>(context.Scratch(vectors + memory));
  if (scratch == nullptr) return RuntimeException("out of memory for rows of {} elements", n);
  auto* gamma = reinterpret_cast<float*>(scratch);
  float* beta = gamma + n;
  QuantizedTable(context, kGamma).Row(0, n, gamma);
  QuantizedTable(context, kBeta).Row(0, n, beta);
  float* y = context.Output(kNormalized).data<float>();
  context.ForEachTaskIn(scratch + vectors, tokens, 3 * n * sizeof(float),
                        [&](size_t token, std::byte* rows) {
                          auto* word = reinterpret_cast<float*>(rows);
                          float *position = word + n, *segment = nullptr;
                          words.Row(static_cast<size_t>(ids.data<int32_t>()[token]), n, word);
                          positions.Row(token % length, n, position);
                          if (has_segments) {
                            segment = position + n;
                            const int32_t id = context.Input(kSegmentIds).data<int32_t>()[token];
                            segments.Row(static_cast<size_t>(id), n, segment);
                          }
                          kernels::LayerNorm({word, position, segment}, y + token * n, 1, n,
                                             {attrs.epsilon, gamma, beta});
                        });
  return OkStatus();
}

constexpr OpRow kRows[] = {
    Op<InferEmbedding, RunEmbedding>("QEmbedLayerNormalization",
                                     {.domain = "com.microsoft",
                                      .types = {DataType::kInt8, DataType::kUint8},
                                      .typed_input = kTables}),
};

}  // namespace

TENON_OP_FAMILY(QuantizedEmbedding, kRows);

}  // namespace tenon
