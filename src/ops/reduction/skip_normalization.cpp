// Normalizations of sums, in domain com.microsoft: of an input with its skip connection, and of the
// embeddings of words.
#include <algorithm>

#include "kernels/normalization.h"
#include "ops/framework/indices.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// Input `i`, if it is present and its shape known, must be [size].
Status CheckVector(const ShapeContext& context, size_t i, const Dim& size) {
  if (!context.HasInput(i)) return OkStatus();
  const Result<SymbolicShape> shape = context.Input(i);
  if (!shape) return IsUnknownShape(shape.error()) ? OkStatus() : shape.error();
  const bool fits =
      shape->rank() == 1 && (!(*shape)[0].is_number() || !size.is_number() || (*shape)[0] == size);
  if (fits) return OkStatus();
  return InvalidArgument("input {}: expected shape [{}], got {}", i, size, *shape);
}

const float* OptionalFloats(const KernelContext& context, size_t i) {
  return context.HasInput(i) ? context.Input(i).data<float>() : nullptr;
}
float* OptionalOutput(KernelContext& context, size_t i) {
  return context.HasOutput(i) ? context.Output(i).data<float>() : nullptr;
}

// --- SkipLayerNormalization-1, SkipSimplifiedLayerNormalization-1 ---

struct EpsilonAttrs {
  float epsilon = 1e-12f;
  static constexpr auto Fields() { return std::tuple(Field("epsilon", &EpsilonAttrs::epsilon)); }
};

enum SkipOutput : size_t { kY, kMean, kInvStd, kSum };

// The last axes of the input, at least two of them, or all.
Status CheckSkip(const SymbolicShape& x, const ShapeContext& context) {
  const Result<SymbolicShape> skip = context.Input(1);
  if (!skip) return IsUnknownShape(skip.error()) ? OkStatus() : skip.error();
  bool fits = skip->rank() <= x.rank() && skip->rank() + 1 >= x.rank() && skip->rank() >= 1;
  for (size_t back = 1; fits && back <= skip->rank(); ++back) {
    const Dim& a = (*skip)[skip->rank() - back];
    const Dim& b = x[x.rank() - back];
    const bool is_batch = back == 3 && a == Dim(1);
    fits = is_batch || !a.is_number() || !b.is_number() || a == b;
  }
  if (fits) return OkStatus();
  return InvalidArgument(
      "input 1: expected a shape that repeats along the first axis of {}, got {}", x, *skip);
}

template <bool subtract_mean>
Status InferSkipNorm(const EpsilonAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  if (x.rank() < 1) return InvalidArgument("input 0: expected rank >= 1, got a scalar");
  TENON_RETURN_IF_ERROR(CheckSkip(x, context));
  const Dim& size = x[x.rank() - 1];
  for (size_t i = 2; i < (subtract_mean ? 5 : 4); ++i) {
    TENON_RETURN_IF_ERROR(CheckVector(context, i, size));
  }
  SymbolicShape statistics = x;
  statistics[x.rank() - 1] = Dim(1);
  TENON_RETURN_IF_ERROR(context.SetOutput(kMean, statistics, DataType::kFloat));
  TENON_RETURN_IF_ERROR(context.SetOutput(kInvStd, std::move(statistics), DataType::kFloat));
  TENON_RETURN_IF_ERROR(context.SetOutput(kSum, x));
  return context.SetOutput(kY, std::move(x));
}

template <bool subtract_mean>
Status RunSkipNorm(const EpsilonAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  const Tensor& skip = context.Input(1);
  const auto n = static_cast<size_t>(x.shape().back());
  if (x.size() == 0) return OkStatus();
  const size_t rows = static_cast<size_t>(x.size()) / n;
  const size_t skip_rows = static_cast<size_t>(skip.size()) / n;
  const float* gamma = OptionalFloats(context, 2);
  const float* beta = subtract_mean ? OptionalFloats(context, 3) : nullptr;
  const float* bias = OptionalFloats(context, subtract_mean ? 4 : 3);
  float* y = context.Output(kY).data<float>();
  float* sum = OptionalOutput(context, kSum);
  float* mean = OptionalOutput(context, kMean);
  float* inv_std = OptionalOutput(context, kInvStd);
  const auto normalize = subtract_mean ? kernels::LayerNorm : kernels::RmsNorm;
  if (!subtract_mean && mean) std::fill_n(mean, rows, 0.0f);
  const size_t grain = kernels::NormalizationGrain(n);
  context.threads().ParallelFor(rows, grain, [&](size_t begin, size_t end) {
    while (begin < end) {
      // The position where the skip repeats.
      const size_t skip_row = begin % skip_rows;
      const size_t count = std::min(end - begin, skip_rows - skip_row);
      const kernels::NormalizationInput input = {x.data<float>() + begin * n,
                                                 skip.data<float>() + skip_row * n, bias,
                                                 sum ? sum + begin * n : nullptr};
      normalize(input, y + begin * n, count, n,
                {attrs.epsilon, gamma, beta, subtract_mean && mean ? mean + begin : nullptr,
                 inv_std ? inv_std + begin : nullptr});
      begin += count;
    }
  });
  return OkStatus();
}

// --- EmbedLayerNormalization-1 ---

enum EmbedInput : size_t {
  kWordIds,
  kSegmentIds,
  kWords,
  kPositions,
  kSegments,
  kGamma,
  kBeta,
  kMask,
  kPositionIds
};
enum EmbedOutput : size_t { kNormalized, kMaskIndex, kEmbeddingSum };

Status InferEmbedding(const EpsilonAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape ids, context.InputOfRank(kWordIds, 2));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape words, context.InputOfRank(kWords, 2));
  if (context.HasInput(kSegmentIds) != context.HasInput(kSegments)) {
    return InvalidArgument("segment_ids and segment_embedding are used together or not at all");
  }
  TENON_RETURN_IF_ERROR(CheckVector(context, kGamma, words[1]));
  TENON_RETURN_IF_ERROR(CheckVector(context, kBeta, words[1]));
  for (const size_t i : {kPositions, kSegments}) {
    if (!context.HasInput(i)) continue;
    const Result<SymbolicShape> table = context.InputOfRank(i, 2);
    if (!table && IsUnknownShape(table.error())) continue;
    if (!table) return table.error();
    if ((*table)[1].is_number() && words[1].is_number() && !((*table)[1] == words[1])) {
      return InvalidArgument("input {}: expected rows of {} elements as in {}, got {}", i, words[1],
                             words, *table);
    }
  }
  for (const size_t i : {kSegmentIds, kMask, kPositionIds}) {
    if (!context.HasInput(i)) continue;
    const Result<SymbolicShape> shape = context.InputOfRank(i, 2);
    if (!shape && IsUnknownShape(shape.error())) continue;
    if (!shape) return shape.error();
    const auto fits = [&](size_t axis) {
      const Dim& dim = (*shape)[axis];
      return !dim.is_number() || !ids[axis].is_number() || dim == ids[axis];
    };
    const bool may_repeat = i == kPositionIds && (*shape)[0] == Dim(1);
    if (!(fits(0) || may_repeat) || !fits(1)) {
      return InvalidArgument("input {}: expected shape {}, got {}", i, ids, *shape);
    }
  }
  TENON_RETURN_IF_ERROR(context.SetOutput(kMaskIndex, {ids[0]}, DataType::kInt32));
  const DataType type = context.ElementType(kWords);
  TENON_RETURN_IF_ERROR(context.SetOutput(kEmbeddingSum, {ids[0], ids[1], words[1]}, type));
  return context.SetOutput(kNormalized, {ids[0], ids[1], words[1]}, type);
}

// Unlike in Gather, negative indices are not counted from the end.
Status CheckIds(const KernelContext& context, size_t ids, size_t table) {
  if (!context.HasInput(ids)) return OkStatus();
  const Tensor& indices = context.Input(ids);
  const int64_t rows = context.Input(table).shape()[0];
  for (int64_t i = 0; i < indices.size(); ++i) {
    const int32_t id = indices.data<int32_t>()[i];
    if (id < 0 || id >= rows) {
      return InvalidArgument("input {}: expected indices in [0, {}), got {}", ids, rows, id);
    }
  }
  return OkStatus();
}

void CountOnes(const Tensor* mask, Tensor& counts) {
  const int64_t batch = counts.shape()[0];
  for (int64_t b = 0; b < batch; ++b) {
    int32_t& count = counts.data<int32_t>()[b];
    count = 0;
    if (mask == nullptr) continue;
    const int64_t length = mask->shape()[1];
    const int32_t* row = mask->data<int32_t>() + b * length;
    count = static_cast<int32_t>(std::count(row, row + length, 1));
  }
}

Status RunEmbedding(const EpsilonAttrs& attrs, KernelContext& context) {
  TENON_RETURN_IF_ERROR(CheckIds(context, kWordIds, kWords));
  TENON_RETURN_IF_ERROR(CheckIds(context, kSegmentIds, kSegments));
  TENON_RETURN_IF_ERROR(CheckIds(context, kPositionIds, kPositions));
  const Shape& ids = context.Input(kWordIds).shape();
  const auto length = static_cast<size_t>(ids[1]);
  if (!context.HasInput(kPositionIds) && ids[1] > context.Input(kPositions).shape()[0]) {
    return InvalidArgument("input 0: expected at most {} positions, got {}",
                           context.Input(kPositions).shape()[0], ids);
  }
  if (context.HasOutput(kMaskIndex)) {
    CountOnes(context.HasInput(kMask) ? &context.Input(kMask) : nullptr,
              context.Output(kMaskIndex));
  }
  const auto n = static_cast<size_t>(context.Input(kWords).shape()[1]);
  // The row of a table for position `row` of the batch.
  const auto row_of = [&](size_t index_input, size_t table, size_t row) -> const float* {
    if (!context.HasInput(index_input)) return nullptr;
    const Tensor& indices = context.Input(index_input);
    const size_t at = row % static_cast<size_t>(indices.size());
    return context.Input(table).data<float>() + indices.data<int32_t>()[at] * n;
  };
  float* sum = OptionalOutput(context, kEmbeddingSum);
  float* y = context.Output(kNormalized).data<float>();
  const kernels::NormalizationParameters parameters = {
      attrs.epsilon, context.Input(kGamma).data<float>(), context.Input(kBeta).data<float>()};
  const auto rows = static_cast<size_t>(context.Input(kWordIds).size());
  context.threads().ParallelFor(
      rows, kernels::NormalizationGrain(n), [&](size_t begin, size_t end) {
        for (size_t row = begin; row < end; ++row) {
          const float* position = row_of(kPositionIds, kPositions, row);
          if (!position) position = context.Input(kPositions).data<float>() + row % length * n;
          kernels::LayerNorm({row_of(kWordIds, kWords, row), position,
                              row_of(kSegmentIds, kSegments, row), sum ? sum + row * n : nullptr},
                             y + row * n, 1, n, parameters);
        }
      });
  return OkStatus();
}

constexpr KernelTraits kInPlace = {.in_place_input = 0};
constexpr const char* kMicrosoft = "com.microsoft";

constexpr OpRow kRows[] = {
    Op<InferSkipNorm<true>, RunSkipNorm<true>>(
        "SkipLayerNormalization",
        {.domain = kMicrosoft, .types = kFloat32Only, .traits = kInPlace}),
    Op<InferSkipNorm<false>, RunSkipNorm<false>>(
        "SkipSimplifiedLayerNormalization",
        {.domain = kMicrosoft, .types = kFloat32Only, .traits = kInPlace}),
    Op<InferEmbedding, RunEmbedding>(
        "EmbedLayerNormalization",
        {.domain = kMicrosoft, .types = kFloat32Only, .typed_input = kWords}),
};

}  // namespace

TENON_OP_FAMILY(SkipNormalization, kRows);

}  // namespace tenon
