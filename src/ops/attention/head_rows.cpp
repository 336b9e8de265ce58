#include "ops/attention/head_rows.h"

#include <algorithm>

namespace tenon {
namespace {

// Rows of `size` floats for a task of some microseconds.
size_t RowGrain(size_t size) { return 16 * 1024 / std::max<size_t>(1, size) + 1; }

Result<std::optional<SymbolicShape>> KnownShape(const ShapeContext& context, size_t i) {
  if (!context.HasInput(i)) return std::optional<SymbolicShape>();
  Result<SymbolicShape> shape = context.Input(i);
  if (shape) return std::optional<SymbolicShape>(std::move(*shape));
  if (IsUnknownShape(shape.error())) return std::optional<SymbolicShape>();
  return Error(std::move(shape).error());
}

}  // namespace

void CopyRows(ThreadPool& threads, const HeadSource& from, const HeadMatrices& to_matrices,
              float* to, BatchRow first_row, const RowEdit* edit) {
  const HeadMatrices& m = from.matrices;
  const size_t rows = m.batch * m.heads * m.length;
  threads.ParallelFor(rows, RowGrain(m.size), [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) {
      const size_t i = row % m.length, h = row / m.length % m.heads, b = row / m.length / m.heads;
      const float* source = from.data + m.Offset(b, h) + i * m.row_stride;
      float* target = to + to_matrices.Offset(b, h) + (first_row(b) + i) * to_matrices.row_stride;
      if (from.bias) {
        const float* bias = from.bias + h * m.size;
        for (size_t p = 0; p < m.size; ++p) target[p] = source[p] + bias[p];
      } else {
        std::copy_n(source, m.size, target);
      }
      if (edit) (*edit)(b, h, i, target);
    }
  });
}

void CopyCache(ThreadPool& threads, const HeadMatrices& from_matrices, const float* from,
               const HeadMatrices& to_matrices, float* to, BatchRow count) {
  if (from == to) return;
  const HeadMatrices& m = from_matrices;
  threads.ParallelFor(m.batch * m.heads, 1, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const size_t b = i / m.heads, h = i % m.heads;
      std::copy_n(from + m.Offset(b, h), count(b) * m.size, to + to_matrices.Offset(b, h));
    }
  });
}

Status CheckPaddingMask(const ShapeContext& context, size_t input, const Dim& batch,
                        const Dim& queries, const Dim& keys, bool allows_square) {
  TENON_ASSIGN_OR_RETURN(const auto mask, KnownShape(context, input));
  if (!mask) return OkStatus();
  const SymbolicShape& m = *mask;
  bool fits = false;
  if (m.rank() == 1) {
    fits = MayEqual(m[0], batch) || MayEqual(m[0], batch * Dim(2)) ||
           MayEqual(m[0], batch * Dim(3) + Dim(2));
  } else if (m.rank() == 2) {
    const bool says_nothing = allows_square && MayEqual(m[1], Dim(1)) &&
                              (MayEqual(m[0], batch) || MayEqual(m[0], Dim(1)));
    fits = says_nothing || (MayEqual(m[0], batch) && MayEqual(m[1], keys));
  } else if (m.rank() == 3) {
    fits = MayEqual(m[0], batch) && MayEqual(m[1], queries) && MayEqual(m[2], keys);
  } else if (m.rank() == 4) {
    const bool is_long_enough =
        !m[3].is_number() || !keys.is_number() || m[3].value() >= keys.value();
    fits = allows_square && MayEqual(m[0], batch) && MayEqual(m[1], Dim(1)) &&
           MayEqual(m[2], m[3]) && is_long_enough;
  }
  if (fits) return OkStatus();
  return InvalidArgument(
      "input {}: expected a mask for {} sequences of {} queries and {} keys, got "
      "{}",
      input, batch, queries, keys, m);
}

Status CheckScoreBias(const ShapeContext& context, size_t i, const Dim& batch, const Dim& heads,
                      const Dim& queries, const Dim& keys) {
  TENON_ASSIGN_OR_RETURN(const auto bias, KnownShape(context, i));
  if (!bias) return OkStatus();
  const SymbolicShape& s = *bias;
  const bool fits = s.rank() == 4 && (s[0] == Dim(1) || MayEqual(s[0], batch)) &&
                    (s[1] == Dim(1) || MayEqual(s[1], heads)) && MayEqual(s[2], queries) &&
                    MayEqual(s[3], keys);
  if (fits) return OkStatus();
  return InvalidArgument("input {}: expected [{} or 1, {} or 1, {}, {}], got {}", i, batch, heads,
                         queries, keys, s);
}

Status CheckCache(const ShapeContext& context, size_t i, const Dim& batch, const Dim& heads,
                  const Dim& size, Dim* length) {
  TENON_ASSIGN_OR_RETURN(const auto cache, KnownShape(context, i));
  if (!cache) {
    if (context.HasInput(i)) *length = Dim::Unknown();
    return OkStatus();
  }
  const SymbolicShape& s = *cache;
  const bool fits =
      s.rank() == 4 && MayEqual(s[0], batch) && MayEqual(s[1], heads) && MayEqual(s[3], size);
  if (!fits) {
    return InvalidArgument("input {}: expected [{}, {}, past, {}], got {}", i, batch, heads, size,
                           s);
  }
  *length = s[2];
  return OkStatus();
}

namespace {

// Whether the mask has the shape of one without effect.
bool SaysNothing(const Tensor* padding, const ScoreSizes& sizes) {
  return padding && padding->rank() == 2 &&
         padding->shape() !=
             Shape({static_cast<int64_t>(sizes.batch), static_cast<int64_t>(sizes.keys)});
}

}  // namespace

ScoreAddends::ScoreAddends(const Tensor* padding, const Tensor* bias, float filter,
                           const ScoreSizes& sizes)
    : padding_(SaysNothing(padding, sizes) ? nullptr : padding), filter_(filter), sizes_(sizes) {
  if (padding_) {
    has_query_rows_ = padding->rank() > 2;
    table_rows_ = sizes.batch * (has_query_rows_ ? sizes.queries : 1);
  }
  if (bias) {
    const Shape& s = bias->shape();
    bias_ = bias->data<float>();
    bias_row_stride_ = static_cast<size_t>(s[3]);
    const size_t matrix = static_cast<size_t>(s[2]) * bias_row_stride_;
    bias_head_stride_ = s[1] == 1 ? 0 : matrix;
    bias_batch_stride_ = s[0] == 1 ? 0 : static_cast<size_t>(s[1]) * matrix;
  }
}

bool ScoreAddends::IsPadding(size_t b, size_t query, size_t key) const {
  const int32_t* mask = padding_->data<int32_t>();
  const Shape& s = padding_->shape();
  const auto position = static_cast<int64_t>(key);
  switch (s.rank()) {
    case 1: {
      const bool has_begin = static_cast<size_t>(s[0]) == 2 * sizes_.batch;
      return position >= mask[b] || (has_begin && position < mask[sizes_.batch + b]);
    }
    case 2:
      return mask[b * sizes_.keys + key] <= 0;
    case 3:
      return mask[(b * sizes_.queries + query) * sizes_.keys + key] <= 0;
    default: {
      const auto n = static_cast<size_t>(s[3]);
      return mask[(b * n + sizes_.past + query) * n + key] <= 0;
    }
  }
}

void ScoreAddends::Prepare(float* table) {
  if (padding_ == nullptr) return;
  table_ = table;
  const size_t queries = has_query_rows_ ? sizes_.queries : 1;
  for (size_t row = 0; row < table_rows_; ++row) {
    for (size_t key = 0; key < sizes_.keys; ++key) {
      *table++ = IsPadding(row / queries, row % queries, key) ? filter_ : 0;
    }
  }
}

const float* ScoreAddends::Row(size_t b, size_t h, size_t query, KeyRange keys,
                               float* buffer) const {
  const float* padding = nullptr;
  if (table_) {
    padding =
        table_ + (has_query_rows_ ? b * sizes_.queries + query : b) * sizes_.keys + keys.begin;
  }
  if (!bias_) return padding;
  const float* bias = bias_ + b * bias_batch_stride_ + h * bias_head_stride_ +
                      query * bias_row_stride_ + keys.begin;
  if (!padding) return bias;
  for (size_t i = 0; i < keys.size(); ++i) buffer[i] = padding[i] + bias[i];
  return buffer;
}

void Rotate(const Rotation& rotation, size_t position, float* row) {
  const size_t half = rotation.half;
  const float* cos = rotation.cos + position * half;
  const float* sin = rotation.sin + position * half;
  if (rotation.interleaved) {
    for (size_t i = 0; i < half; ++i) {
      const float x = row[2 * i], y = row[2 * i + 1];
      row[2 * i] = x * cos[i] - y * sin[i];
      row[2 * i + 1] = x * sin[i] + y * cos[i];
    }
    return;
  }
  float* second = row + half;
  for (size_t i = 0; i < half; ++i) {
    const float x = row[i], y = second[i];
    row[i] = x * cos[i] - y * sin[i];
    second[i] = x * sin[i] + y * cos[i];
  }
}

}  // namespace tenon
