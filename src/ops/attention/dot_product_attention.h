// softmax(scale Q K' + addends) V for every head of a batch: the computation that all attention
// operators share. It goes by blocks of queries and parts of the keys, whose scores stay in the L2
// cache: each part adds its values to the output, and what earlier ones gave is scaled as the
// largest score grows. A task computes some blocks of a head, for which it packs each part once.
#pragma once

#include <limits>
#include <optional>

#include "base/function_ref.h"
#include "kernels/gemm/gemm.h"
#include "kernels/softmax.h"
#include "runtime/kernel_context.h"

namespace tenon {

// The matrices of a tensor, one for each batch and head: [length, size] elements, rows
// `row_stride` elements apart.
struct HeadMatrices {
  size_t batch = 0, heads = 0, length = 0, size = 0;
  size_t batch_stride = 0, head_stride = 0, row_stride = 0;

  size_t Offset(size_t b, size_t h) const { return b * batch_stride + h * head_stride; }
};
// Of a tensor [batch, heads, length, size].
HeadMatrices HeadsFirst(size_t batch, size_t heads, size_t length, size_t size);
// Of a tensor [batch, length, heads * size].
HeadMatrices HeadsLast(size_t batch, size_t length, size_t heads, size_t size);

struct KeyRange {
  size_t begin, end;
  size_t size() const { return end - begin; }
};

// The stage of the scores when they are stored.
enum class ScoresMode { kProduct, kSoftcapped, kMasked, kWeights };

struct AttentionOperands {
  // The heads of q are a multiple of those of k and v; k and v have the same length.
  HeadMatrices q, k, v, y;
  const float* q_data = nullptr;
  const float* k_data = nullptr;
  const float* v_data = nullptr;
  float* y_data = nullptr;
  float scale = 1;
  float softcap = 0;  // > 0: scores are softcap tanh(scores / softcap) before the addends
  // The keys that a query may see. The result is a row of zeros for a query that sees none, and for
  // one whose scores all are -inf.
  FunctionRef<KeyRange(size_t b, size_t query)> visible;
  // The addends of a query's scores before the softmax: one value for each of `keys`, which are
  // some that it may see, in place or written to `buffer`, which has room for them; null: none.
  FunctionRef<const float*(size_t b, size_t h, size_t query, KeyRange keys, float* buffer)> addends;
  // [q.heads]: each adds exp(sink) to the denominators of its head's softmax; null: none.
  const float* sinks = nullptr;
  float* scores = nullptr;  // [batch, heads, queries, keys], or null
  ScoresMode scores_mode = ScoresMode::kProduct;
  // The kMasked score of a key that a query may not see.
  float hidden_score = -std::numeric_limits<float>::infinity();
  // [batch, heads, queries], receives the logarithms of the softmax's denominators, without those
  // of sinks, and 0 for a query that sees no key; or null.
  float* log_sums = nullptr;
};

// Queries of one head, and the smallest range that has the keys of all of them.
struct QueryBlock {
  size_t b, h, first, rows;
  KeyRange keys;
};

class DotProductAttention {
 public:
  // The operands, and the memory that they refer to, must outlive it.
  explicit DotProductAttention(const AttentionOperands& operands);

  size_t task_count() const { return task_count_; }
  // Runs all tasks of a kernel that needs no other scratch memory. Error: out of memory.
  Status Run(KernelContext& context) const;
  // Runs them in a kernel's own memory, `task_bytes(context)` bytes aligned to 64.
  size_t task_bytes(const KernelContext& context) const {
    return context.TaskScratchBytes(task_count_, scratch_bytes());
  }
  void RunIn(KernelContext& context, std::byte* memory) const;

  // For other computations with the weights, such as gradients, block by block.
  size_t blocks_of_head() const;
  QueryBlock Block(size_t b, size_t h, size_t index) const;
  size_t weight_floats() const;  // of any block, in whole vectors
  size_t mask_floats() const;
  // The scratch of the product that TakeWeights computes.
  kernels::GemmSizes KeyProductSizes(const QueryBlock& block) const {
    return {block.rows, block.keys.size(), in_.q.size};
  }
  // weights, [rows, keys] = softmax(scale Q K' + addends). `mask_row` has mask_floats().
  void TakeWeights(const QueryBlock& block, float* weights, float* mask_row,
                   float* gemm_scratch) const;

 private:
  // Keys and values that a task has packed; none if the pointers are null.
  struct PackedPart {
    KeyRange keys = {};
    const float* key_data = nullptr;
    const float* value_data = nullptr;
  };
  struct Queries {
    size_t first, last;  // last: the end
  };

  size_t scratch_bytes() const;  // for each running task
  // Tasks may run in any order, on any threads. scratch: aligned to 64.
  void RunTask(size_t task, float* scratch) const;
  Queries QueriesOf(size_t group) const;
  // f(block, part) for the queries from `first` to `last` and each part of their keys; the keys of
  // the block are those in the part.
  template <class F>
  void ForEachPart(size_t b, size_t h, size_t first, size_t last, F f) const;
  PackedPart Pack(size_t b, size_t h, KeyRange part, float* scratch) const;
  void AddPart(const QueryBlock& block, const PackedPart& packed, float* scratch,
               kernels::SoftmaxState* states) const;
  void Finish(size_t b, size_t h, size_t query, const kernels::SoftmaxState& state) const;
  float* OutputRow(size_t b, size_t h, size_t query) const {
    return in_.y_data + in_.y.Offset(b, h) + query * in_.y.row_stride;
  }
  KeyRange KeysOf(size_t b, size_t first, size_t rows) const;
  size_t GemmScratch() const;
  size_t KeyHead(size_t h) const { return h / (in_.q.heads / in_.k.heads); }
  kernels::GemmArgs KeyProduct(size_t b, size_t h, size_t first, size_t rows) const;
  KeyRange MultiplyKeys(const QueryBlock& block, const PackedPart& packed, float* scores,
                        float* gemm_scratch) const;
  float ScoreScale() const { return in_.softcap > 0 ? in_.softcap : 1; }  // of MultiplyKeys' result
  void TakeSoftmax(size_t b, size_t h, size_t query, KeyRange keys, float* scores,
                   float* mask_row) const;
  void StoreScores(const QueryBlock& block, float* mask_row, float* gemm_scratch) const;
  void StoreMasked(size_t b, size_t h, size_t query, float* mask_row, float* scores) const;
  float* ScoresOf(size_t b, size_t h, size_t query) const;

  const AttentionOperands& in_;
  size_t task_count_ = 0;
  size_t rows_ = 0;    // queries in a block
  size_t part_ = 0;    // keys in a part
  size_t blocks_ = 0;  // in a head
  size_t groups_ = 0;  // of blocks, in a head: each is a task
  // In a task's scratch memory, in floats. The states are those of its queries.
  struct {
    size_t scores = 0, mask_row = 0, states = 0, packed_keys = 0, packed_values = 0;
  } offsets_;
  size_t task_floats_ = 0;  // after which the products have theirs
  size_t weight_rows_ = 0;  // queries in a block of weights
};

}  // namespace tenon
