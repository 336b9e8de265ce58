#include "ops/attention/dot_product_attention.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "base/arithmetic.h"
#include "base/stop_signal.h"

namespace tenon {
namespace {

// The floats of a block's scores: 192 KiB.
constexpr size_t kBlockFloats = 48 * 1024;
// Queries of a block and keys of a part, where they are many.
constexpr size_t kRows = 96, kPart = 384;
constexpr size_t kMostRows = 256;

// The size of nearly equal pieces of `size`, as few as pieces of up to `most` allow, that consist
// of whole units.
size_t PieceSize(size_t size, size_t most, size_t unit) {
  return std::min(size, RoundUp(CeilDiv(size, CeilDiv(size, most)), unit));
}

KeyRange Common(KeyRange a, KeyRange b) {
  const KeyRange both = {std::max(a.begin, b.begin), std::min(a.end, b.end)};
  return both.begin < both.end ? both : KeyRange{0, 0};
}

}  // namespace

HeadMatrices HeadsFirst(size_t batch, size_t heads, size_t length, size_t size) {
  const size_t matrix = length * size;
  return {batch, heads, length, size, heads * matrix, matrix, size};
}

HeadMatrices HeadsLast(size_t batch, size_t length, size_t heads, size_t size) {
  return {batch, heads, length, size, length * heads * size, size, heads * size};
}

DotProductAttention::DotProductAttention(const AttentionOperands& operands) : in_(operands) {
  const size_t heads = in_.q.batch * in_.q.heads, keys = std::max<size_t>(1, in_.k.length);
  if (heads == 0 || in_.q.length == 0) return;
  constexpr size_t kEnoughTasks = 32;
  constexpr size_t kWeightFloats = 64 * 1024;
  weight_rows_ = std::min(in_.q.length, std::clamp<size_t>(kWeightFloats / keys, 16, 256));
  rows_ = std::min(in_.q.length, kMostRows);
  if (rows_ * keys > kBlockFloats) {
    rows_ = PieceSize(in_.q.length, kRows, kernels::GemmTileRows());
  }
  part_ = PieceSize(keys, std::max(kPart, kBlockFloats / rows_), kernels::GemmPanelColumns());
  blocks_ = CeilDiv(in_.q.length, rows_);
  groups_ = std::min(blocks_, CeilDiv(kEnoughTasks, heads));
  const size_t task_rows = std::min(in_.q.length, CeilDiv(blocks_, groups_) * rows_);
  const auto take = [this](size_t floats) {
    return std::exchange(task_floats_, task_floats_ + RoundUp<size_t>(floats, 16));
  };
  offsets_.scores = take(rows_ * part_);
  offsets_.mask_row = take(in_.scores ? in_.k.length : part_);
  offsets_.states = take(task_rows * sizeof(kernels::SoftmaxState) / sizeof(float));
  if (groups_ < blocks_) {
    offsets_.packed_keys = take(kernels::PackedGemmBSize(part_, in_.q.size) / sizeof(float));
    offsets_.packed_values = take(kernels::PackedGemmBSize(in_.v.size, part_) / sizeof(float));
  }
  task_count_ = heads * groups_;
}

size_t DotProductAttention::scratch_bytes() const {
  return task_floats_ * sizeof(float) + GemmScratch();
}

DotProductAttention::Queries DotProductAttention::QueriesOf(size_t group) const {
  const auto begin = [this](size_t i) {
    return std::min(blocks_ * i / groups_ * rows_, in_.q.length);
  };
  return {begin(group), begin(group + 1)};
}

template <class F>
void DotProductAttention::ForEachPart(size_t b, size_t h, size_t first, size_t last, F f) const {
  const KeyRange keys = KeysOf(b, first, last - first);
  for (size_t begin = keys.begin; begin < keys.end; begin += part_) {
    const KeyRange part = {begin, std::min(begin + part_, keys.end)};
    for (size_t query = first; query < last; query += rows_) {
      const size_t rows = std::min(rows_, last - query);
      const QueryBlock block = {b, h, query, rows, Common(KeysOf(b, query, rows), part)};
      if (block.keys.size() > 0) f(block, part);
    }
  }
}

void DotProductAttention::RunTask(size_t task, float* scratch) const {
  const size_t head = task / groups_;
  const size_t b = head / in_.q.heads, h = head % in_.q.heads;
  const auto [first, last] = QueriesOf(task % groups_);
  auto* const states = reinterpret_cast<kernels::SoftmaxState*>(scratch + offsets_.states);
  std::uninitialized_fill_n(states, last - first, kernels::SoftmaxState());
  PackedPart packed;
  ForEachPart(b, h, first, last, [&](const QueryBlock& block, KeyRange part) {
    if (StopSignal::CutsCurrent()) return;
    if (last - first > rows_ && packed.keys.end != part.end) {
      packed = Pack(b, h, part, scratch);
    }
    AddPart(block, packed, scratch, states + (block.first - first));
  });
  for (size_t query = first; query < last; ++query) {
    Finish(b, h, query, states[query - first]);
  }
  for (size_t query = first; in_.scores && query < last; query += rows_) {
    if (StopSignal::CutsCurrent()) return;
    const QueryBlock block = {b, h, query, std::min(rows_, last - query), {0, in_.k.length}};
    StoreScores(block, scratch + offsets_.mask_row, scratch + task_floats_);
  }
}

DotProductAttention::PackedPart DotProductAttention::Pack(size_t b, size_t h, KeyRange part,
                                                          float* scratch) const {
  float* const keys = scratch + offsets_.packed_keys;
  float* const values = scratch + offsets_.packed_values;
  const float* const k = in_.k_data + in_.k.Offset(b, KeyHead(h)) + part.begin * in_.k.row_stride;
  const float* const v = in_.v_data + in_.v.Offset(b, KeyHead(h)) + part.begin * in_.v.row_stride;
  kernels::PackGemmB(kernels::Transposed(k, in_.k.row_stride), part.size(), in_.q.size, keys);
  kernels::PackGemmB(kernels::RowMajor(v, in_.v.row_stride), in_.v.size, part.size(), values);
  return {part, keys, values};
}

// Adds the values of the block's keys to the outputs of its queries, whose states these are.
void DotProductAttention::AddPart(const QueryBlock& block, const PackedPart& packed, float* scratch,
                                  kernels::SoftmaxState* states) const {
  const auto [b, h, first, rows, keys] = block;
  float* const block_scores = scratch + offsets_.scores;
  float* const gemm_scratch = scratch + task_floats_;
  const KeyRange columns = MultiplyKeys(block, packed, block_scores, gemm_scratch);
  // Outputs are sums, and weights relative to the largest score, until the task's end.
  const bool is_first =
      std::all_of(states, states + rows, [](const auto& s) { return s.is_new(); });
  for (size_t i = 0; i < rows; ++i) {
    float* const scores = block_scores + i * columns.size();
    const KeyRange own = Common(in_.visible(b, first + i), keys);
    float* const begin = scores + (own.size() ? own.begin - columns.begin : 0);
    if (own.size() > 0) {
      const float* mask = in_.addends(b, h, first + i, own, scratch + offsets_.mask_row);
      const float factor = kernels::SoftmaxPart(begin, own.size(), ScoreScale(), mask, &states[i]);
      if (!is_first && factor != 1) {
        kernels::ScaleRow(OutputRow(b, h, first + i), in_.v.size, factor);
      }
    }
    std::fill(scores, begin, 0.0f);
    std::fill(begin + own.size(), scores + columns.size(), 0.0f);
  }
  kernels::GemmArgs args;
  args.sizes = {rows, in_.v.size, keys.size()};
  args.beta = is_first ? 0 : 1;
  args.a = kernels::RowMajor(block_scores + (keys.begin - columns.begin), columns.size());
  args.b = kernels::RowMajor(
      in_.v_data + in_.v.Offset(b, KeyHead(h)) + keys.begin * in_.v.row_stride, in_.v.row_stride);
  if (keys.size() == packed.keys.size()) args.packed_b = packed.value_data;
  args.c = OutputRow(b, h, first);
  args.ldc = in_.y.row_stride;
  kernels::Gemm(args, gemm_scratch);
}

// Divides the sum of values by that of weights.
void DotProductAttention::Finish(size_t b, size_t h, size_t query,
                                 const kernels::SoftmaxState& state) const {
  float* const y = OutputRow(b, h, query);
  if (state.sum == 0) {
    std::fill_n(y, in_.v.size, 0.0f);
  } else {
    const float sink = in_.sinks ? std::exp(in_.sinks[h] - state.max) : 0;
    kernels::ScaleRow(y, in_.v.size, 1 / (state.sum + sink));
  }
  if (in_.log_sums) {
    in_.log_sums[(b * in_.q.heads + h) * in_.q.length + query] =
        state.sum == 0 ? 0 : state.max + std::log(state.sum);
  }
}

Status DotProductAttention::Run(KernelContext& context) const {
  return context.ForEachTask(task_count_, scratch_bytes(), [&](size_t task, std::byte* scratch) {
    RunTask(task, reinterpret_cast<float*>(scratch));
  });
}

void DotProductAttention::RunIn(KernelContext& context, std::byte* memory) const {
  context.ForEachTaskIn(memory, task_count_, scratch_bytes(), [&](size_t task, std::byte* scratch) {
    RunTask(task, reinterpret_cast<float*>(scratch));
  });
}

size_t DotProductAttention::blocks_of_head() const {
  return task_count_ ? CeilDiv(in_.q.length, weight_rows_) : 0;
}

size_t DotProductAttention::weight_floats() const {
  return RoundUp<size_t>(weight_rows_ * in_.k.length, 16);
}

size_t DotProductAttention::mask_floats() const { return RoundUp<size_t>(in_.k.length, 16); }

QueryBlock DotProductAttention::Block(size_t b, size_t h, size_t index) const {
  const size_t first = index * weight_rows_;
  const size_t rows = std::min(weight_rows_, in_.q.length - first);
  return {b, h, first, rows, KeysOf(b, first, rows)};
}

void DotProductAttention::TakeWeights(const QueryBlock& block, float* weights, float* mask_row,
                                      float* gemm_scratch) const {
  const size_t columns = MultiplyKeys(block, {}, weights, gemm_scratch).size();
  for (size_t i = 0; i < block.rows; ++i) {
    TakeSoftmax(block.b, block.h, block.first + i, block.keys, weights + i * columns, mask_row);
  }
}

// The smallest range that has the keys of all of these queries.
KeyRange DotProductAttention::KeysOf(size_t b, size_t first, size_t rows) const {
  KeyRange keys = {in_.k.length, 0};
  for (size_t i = 0; i < rows; ++i) {
    const KeyRange own = in_.visible(b, first + i);
    if (own.size() == 0) continue;
    keys = {std::min(keys.begin, own.begin), std::max(keys.end, own.end)};
  }
  return keys.begin < keys.end ? keys : KeyRange{0, 0};
}

// Scratch for the products of any block.
size_t DotProductAttention::GemmScratch() const {
  size_t bytes = 0;
  const auto add = [&bytes](const kernels::GemmSizes& sizes, bool is_packed) {
    bytes = std::max(bytes, kernels::GemmScratchSize(sizes, is_packed));
  };
  for (size_t b = 0; b < in_.q.batch && task_count_ > 0; ++b) {
    for (size_t group = 0; group < groups_; ++group) {
      const auto [first, last] = QueriesOf(group);
      ForEachPart(b, 0, first, last, [&](const QueryBlock& block, KeyRange part) {
        for (const bool is_packed : {false, true}) {
          // Of packed keys, whole panels are multiplied.
          add({block.rows, is_packed ? part.size() : block.keys.size(), in_.q.size}, is_packed);
          add({block.rows, in_.v.size, block.keys.size()}, is_packed);
        }
      });
    }
  }
  if (in_.scores) {
    for (const size_t rows : {rows_, in_.q.length % rows_}) {
      add({rows, in_.k.length, in_.q.size}, false);
    }
  }
  return bytes;
}

// scale Q K' of `rows` queries and all keys, without its output.
kernels::GemmArgs DotProductAttention::KeyProduct(size_t b, size_t h, size_t first,
                                                  size_t rows) const {
  kernels::GemmArgs args;
  args.alpha = in_.scale;
  args.sizes = {rows, in_.k.length, in_.q.size};
  args.a = kernels::RowMajor(in_.q_data + in_.q.Offset(b, h) + first * in_.q.row_stride,
                             in_.q.row_stride);
  args.b = kernels::Transposed(in_.k_data + in_.k.Offset(b, KeyHead(h)), in_.k.row_stride);
  return args;
}

// scores = scale Q K', or tanh(scale Q K' / softcap) for the softmax to scale. Returns the keys of
// its columns, which are those of the block, or of all panels of packed keys that have some of
// them.
KeyRange DotProductAttention::MultiplyKeys(const QueryBlock& block, const PackedPart& packed,
                                           float* scores, float* gemm_scratch) const {
  kernels::GemmArgs args = KeyProduct(block.b, block.h, block.first, block.rows);
  KeyRange columns = block.keys;
  if (packed.key_data != nullptr) {
    const size_t panel = kernels::GemmPanelColumns(), origin = packed.keys.begin;
    const size_t first = (columns.begin - origin) / panel * panel;
    columns = {origin + first,
               std::min(origin + RoundUp(columns.end - origin, panel), packed.keys.end)};
    args.packed_b = packed.key_data + first * in_.q.size;
  } else {
    args.b.data += columns.begin * in_.k.row_stride;
  }
  args.sizes.n = columns.size();
  args.c = scores;
  args.ldc = columns.size();
  if (in_.softcap > 0) {
    args.alpha = in_.scale / in_.softcap;
    args.epilogue.activation.op = UnaryOp::kTanh;
  }
  kernels::Gemm(args, gemm_scratch);
  return columns;
}

// Turns one query's scores, of the keys in `keys`, into weights; 0 for invisible keys.
void DotProductAttention::TakeSoftmax(size_t b, size_t h, size_t query, KeyRange keys,
                                      float* scores, float* mask_row) const {
  const KeyRange own = in_.visible(b, query);
  float* row = scores;
  if (own.size() > 0) {
    row += own.begin - keys.begin;
    const float* mask = in_.addends(b, h, query, own, mask_row);
    kernels::SoftmaxState state;
    kernels::SoftmaxPart(row, own.size(), ScoreScale(), mask, &state);
    const float sink = in_.sinks ? std::exp(in_.sinks[h] - state.max) : 0;
    if (state.sum != 0) kernels::ScaleRow(row, own.size(), 1 / (state.sum + sink));
  }
  std::fill(scores, row, 0.0f);
  std::fill(row + own.size(), scores + keys.size(), 0.0f);
}

float* DotProductAttention::ScoresOf(size_t b, size_t h, size_t query) const {
  return in_.scores + ((b * in_.q.heads + h) * in_.q.length + query) * in_.k.length;
}

void DotProductAttention::StoreScores(const QueryBlock& block, float* mask_row,
                                      float* gemm_scratch) const {
  const auto [b, h, first, rows, keys] = block;
  float* const scores = ScoresOf(b, h, first);
  if (in_.scores_mode == ScoresMode::kWeights) {
    return TakeWeights(block, scores, mask_row, gemm_scratch);
  }
  kernels::GemmArgs args = KeyProduct(b, h, first, rows);
  args.c = scores;
  args.ldc = in_.k.length;
  kernels::Gemm(args, gemm_scratch);
  if (in_.scores_mode == ScoresMode::kProduct) return;
  for (size_t i = 0; i < rows; ++i) {
    float* row = scores + i * in_.k.length;
    if (in_.softcap > 0) {
      std::transform(row, row + in_.k.length, row,
                     [this](float x) { return in_.softcap * std::tanh(x / in_.softcap); });
    }
    if (in_.scores_mode == ScoresMode::kMasked) StoreMasked(b, h, first + i, mask_row, row);
  }
}

void DotProductAttention::StoreMasked(size_t b, size_t h, size_t query, float* mask_row,
                                      float* scores) const {
  const KeyRange own = in_.visible(b, query);
  std::fill_n(scores, own.begin, in_.hidden_score);
  std::fill(scores + own.end, scores + in_.k.length, in_.hidden_score);
  if (own.size() == 0) return;
  const float* mask = in_.addends(b, h, query, own, mask_row);
  for (size_t j = own.begin; mask && j < own.end; ++j) scores[j] += mask[j - own.begin];
}

}  // namespace tenon
