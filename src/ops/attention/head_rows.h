// Shared by com.microsoft's attention operators: copies of rows of heads from inputs to caches, and
// the addends of scores.
#pragma once

#include "ir/shape_context.h"
#include "ops/attention/dot_product_attention.h"
#include "ops/framework/expected_shape.h"
#include "runtime/kernel_context.h"

namespace tenon {

// One of Q, K and V in the layout of an input. `bias`, [heads * size] or null, is to be added.
struct HeadSource {
  HeadMatrices matrices;
  const float* data = nullptr;
  const float* bias = nullptr;
};

using RowEdit = FunctionRef<void(size_t b, size_t h, size_t i, float* row)>;
using BatchRow = FunctionRef<size_t(size_t b)>;

// Copies the rows of all matrices of `from` to `to`, from row first_row(b) on, adds the bias, and
// calls `edit` for each unless that is null. All rows fit.
void CopyRows(ThreadPool& threads, const HeadSource& from, const HeadMatrices& to_matrices,
              float* to, BatchRow first_row, const RowEdit* edit = nullptr);

// Copies rows [0, count(b)) of all matrices of a cache to another of other length.
void CopyCache(ThreadPool& threads, const HeadMatrices& from_matrices, const float* from,
               const HeadMatrices& to_matrices, float* to, BatchRow count);

// Divides one piece of memory: first adds up sizes, then returns the parts.
class FloatPieces {
 public:
  // The offset of a piece of `floats` floats, aligned to 64 bytes.
  size_t Add(size_t floats) {
    const size_t offset = floats_;
    floats_ += (floats + 15) / 16 * 16;
    return offset;
  }
  size_t bytes() const { return floats_ * sizeof(float); }

 private:
  size_t floats_ = 0;
};

// Marks padding among the keys, in the forms of input mask_index or key_padding_mask, of int32:
//   [batch]               lengths of the keys
//   [2 batch]             ends, then beginnings
//   [3 batch + 2]         lengths, then sums that say nothing new
//   [batch, keys]         1 for keys that count
//   [batch, queries, keys]
//   [batch, 1, n, n]      with the rows of the queries after those of the past; n >= keys
//   [batch or 1, 1]       no mask, unless there is one key
// Checks that the mask has one of these shapes; the last two only if `allows_square`, which means
// that the keys are past and queries. Unknown sizes pass.
Status CheckPaddingMask(const ShapeContext& context, size_t input, const Dim& batch,
                        const Dim& queries, const Dim& keys, bool allows_square);

struct ScoreSizes {
  size_t batch, heads, queries, keys, past;
};

// The addends of scores: `filter` for padding, plus a bias [batch or 1, heads or 1, queries, keys].
class ScoreAddends {
 public:
  ScoreAddends() = default;
  // `padding` and `bias` may be null. The mask has passed CheckPaddingMask.
  ScoreAddends(const Tensor* padding, const Tensor* bias, float filter, const ScoreSizes& sizes);

  // The number of floats that Prepare writes.
  size_t table_floats() const { return table_rows_ * sizes_.keys; }
  void Prepare(float* table);

  // Of a range of keys; null: none.
  const float* Row(size_t b, size_t h, size_t query, KeyRange keys, float* buffer) const;

 private:
  bool IsPadding(size_t b, size_t query, size_t key) const;

  const Tensor* padding_ = nullptr;
  float filter_ = 0;
  ScoreSizes sizes_ = {};
  size_t table_rows_ = 0;
  bool has_query_rows_ = false;
  const float* table_ = nullptr;
  const float* bias_ = nullptr;
  size_t bias_batch_stride_ = 0, bias_head_stride_ = 0, bias_row_stride_ = 0;
};

// Checks that input `i`, if it is present, is [batch or 1, heads or 1, queries, keys].
Status CheckScoreBias(const ShapeContext& context, size_t i, const Dim& batch, const Dim& heads,
                      const Dim& queries, const Dim& keys);

// Checks that input `i`, if it is present, is [batch, heads, any, size]; `length` becomes the third
// size if the shape is known.
Status CheckCache(const ShapeContext& context, size_t i, const Dim& batch, const Dim& heads,
                  const Dim& size, Dim* length);

// A rotary embedding of pairs of elements; [max, half] tables.
struct Rotation {
  const float* cos = nullptr;
  const float* sin = nullptr;
  size_t half = 0;           // pairs
  bool interleaved = false;  // pairs are neighbours, else half apart
};
// Rotates the first 2 * half elements of a row by the angles of `position`.
void Rotate(const Rotation& rotation, size_t position, float* row);

}  // namespace tenon
