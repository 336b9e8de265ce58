#include "ops/attention/dot_product_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/arithmetic.h"
#include "base/stop_signal.h"
#include "kernels/softmax.h"

namespace tenon {
namespace {

constexpr float kHidden = -std::numeric_limits<float>::infinity();

// The factor by which exp(sink) in the denominator reduces each weight of a softmax. `scores` are
// the softmax's input, `most` is their maximum, and `weight` the weight of that.
float ShareBesideSink(float most, float weight, float sink) {
  // The sum of exp(score - most) is 1 / weight.
  return 1 / (1 + std::exp(sink - most) * weight);
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
  const size_t heads = in_.q.batch * in_.q.heads;
  if (heads == 0 || in_.q.length == 0) return;
  // Blocks of scores of 256 KiB.
  constexpr size_t kBlockFloats = 64 * 1024;
  constexpr size_t kEnoughTasks = 32;
  rows_ = std::min(in_.q.length,
                   std::clamp<size_t>(kBlockFloats / std::max<size_t>(1, in_.k.length), 16, 256));
  blocks_ = CeilDiv(in_.q.length, rows_);
  groups_ = std::min(blocks_, CeilDiv(kEnoughTasks, heads));
  score_floats_ = RoundUp<size_t>(rows_ * in_.k.length, 16);
  mask_floats_ = RoundUp<size_t>(in_.k.length, 16);
  if (groups_ < blocks_) {
    packed_floats_ = kernels::PackedGemmBSize(in_.k.length, in_.q.size) / sizeof(float);
  }
  task_count_ = heads * groups_;
}

size_t DotProductAttention::scratch_bytes() const {
  return (score_floats_ + mask_floats_ + packed_floats_) * sizeof(float) + GemmScratch();
}

void DotProductAttention::RunTask(size_t task, float* scratch) const {
  const size_t head = task / groups_;
  const size_t b = head / in_.q.heads, h = head % in_.q.heads;
  const auto part = [&](size_t group) { return blocks_ * group / groups_; };
  const size_t first = part(task % groups_), last = part(task % groups_ + 1);
  float* const mask_row = scratch + score_floats_;
  float* const packed_keys = mask_row + mask_floats_;
  float* const gemm_scratch = packed_keys + packed_floats_;
  PackedKeys packed = {};
  if (last - first > 1) packed = PackKeys(b, h, first, last, packed_keys);
  for (size_t i = first; i < last && !StopSignal::CutsCurrent(); ++i) {
    RunBlock(Block(b, h, i), packed, scratch, mask_row, gemm_scratch);
  }
}

// Those that the queries of some blocks may see.
DotProductAttention::PackedKeys DotProductAttention::PackKeys(size_t b, size_t h,
                                                              size_t first_block, size_t last_block,
                                                              float* packed) const {
  const size_t first = first_block * rows_;
  const size_t rows = std::min(last_block * rows_, in_.q.length) - first;
  const KeyRange keys = KeysOfBlock(b, first, rows);
  const float* const data =
      in_.k_data + in_.k.Offset(b, KeyHead(h)) + keys.begin * in_.k.row_stride;
  kernels::PackGemmB(kernels::Transposed(data, in_.k.row_stride), keys.size(), in_.q.size, packed);
  return {keys, packed};
}

void DotProductAttention::RunBlock(const QueryBlock& block, const PackedKeys& packed, float* scores,
                                   float* mask_row, float* gemm_scratch) const {
  const auto [b, h, first, rows, keys] = block;
  if (in_.scores && in_.scores_mode != ScoresMode::kWeights) {
    StoreScores(b, h, first, rows, mask_row, gemm_scratch);
  }
  const KeyRange columns = TakeWeights(block, packed, scores, mask_row, gemm_scratch);
  kernels::GemmArgs args;
  args.sizes = {rows, in_.v.size, keys.size()};
  args.a = kernels::RowMajor(scores + (keys.begin - columns.begin), columns.size());
  args.b = kernels::RowMajor(
      in_.v_data + in_.v.Offset(b, KeyHead(h)) + keys.begin * in_.v.row_stride, in_.v.row_stride);
  args.c = in_.y_data + in_.y.Offset(b, h) + first * in_.y.row_stride;
  args.ldc = in_.y.row_stride;
  kernels::Gemm(args, gemm_scratch);
  if (in_.scores && in_.scores_mode == ScoresMode::kWeights) {
    StoreWeights(b, h, first, rows, columns, scores);
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

QueryBlock DotProductAttention::Block(size_t b, size_t h, size_t index) const {
  const size_t first = index * rows_;
  const size_t rows = std::min(rows_, in_.q.length - first);
  return {b, h, first, rows, KeysOfBlock(b, first, rows)};
}

void DotProductAttention::TakeWeights(const QueryBlock& block, float* weights, float* mask_row,
                                      float* gemm_scratch) const {
  TakeWeights(block, {}, weights, mask_row, gemm_scratch);
}

// Returns the keys whose weights are the columns of `weights`.
KeyRange DotProductAttention::TakeWeights(const QueryBlock& block, const PackedKeys& packed,
                                          float* weights, float* mask_row,
                                          float* gemm_scratch) const {
  const auto [b, h, first, rows, keys] = block;
  const KeyRange columns = MultiplyKeys(block, packed, weights, gemm_scratch);
  for (size_t i = 0; i < rows; ++i) {
    const KeyRange own = in_.visible(b, first + i);
    const float* mask = in_.addends(b, h, first + i, mask_row);
    float* log_sum = nullptr;
    if (in_.log_sums) log_sum = in_.log_sums + (b * in_.q.heads + h) * in_.q.length + first + i;
    TakeSoftmax(h, own, columns, mask, weights + i * columns.size(), log_sum);
  }
  return columns;
}

// The smallest range that has the keys of all of these queries.
KeyRange DotProductAttention::KeysOfBlock(size_t b, size_t first, size_t rows) const {
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
  for (size_t b = 0; b < in_.q.batch && rows_ > 0; ++b) {
    for (size_t first = 0; first < in_.q.length; first += rows_) {
      const size_t rows = std::min(rows_, in_.q.length - first);
      const size_t keys = KeysOfBlock(b, first, rows).size();
      for (const kernels::GemmSizes& sizes :
           {kernels::GemmSizes{rows, keys, in_.q.size}, kernels::GemmSizes{rows, in_.v.size, keys},
            kernels::GemmSizes{rows, in_.k.length, in_.q.size}}) {
        bytes = std::max(bytes, kernels::GemmScratchSize(sizes, false));
      }
      const kernels::GemmSizes on_packed = {rows, in_.k.length, in_.q.size};
      bytes = std::max(bytes, kernels::GemmScratchSize(on_packed, true));
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
KeyRange DotProductAttention::MultiplyKeys(const QueryBlock& block, const PackedKeys& packed,
                                           float* scores, float* gemm_scratch) const {
  kernels::GemmArgs args = KeyProduct(block.b, block.h, block.first, block.rows);
  KeyRange columns = block.keys;
  if (packed.data != nullptr && block.keys.size() > 0) {
    const size_t panel = kernels::GemmPanelColumns(), origin = packed.keys.begin;
    const size_t first = (columns.begin - origin) / panel * panel;
    columns = {origin + first,
               std::min(origin + RoundUp(columns.end - origin, panel), packed.keys.end)};
    args.packed_b = packed.data + first * in_.q.size;
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
void DotProductAttention::TakeSoftmax(size_t h, KeyRange own, KeyRange keys, const float* mask,
                                      float* scores, float* log_sum) const {
  const auto is_visible = [](float addend) { return addend != kHidden; };
  const bool sees_any =
      own.size() > 0 &&
      (mask == nullptr || std::any_of(mask + own.begin, mask + own.end, is_visible));
  if (!sees_any) {
    std::fill_n(scores, keys.size(), 0.0f);
    if (log_sum) *log_sum = 0;
    return;
  }
  float* row = scores + (own.begin - keys.begin);
  const float* own_mask = mask ? mask + own.begin : nullptr;
  const float scale = in_.softcap > 0 ? in_.softcap : 1;
  size_t best = 0;
  float most = kHidden;
  for (size_t i = 0; in_.sinks && i < own.size(); ++i) {
    const float score = scale * row[i] + (own_mask ? own_mask[i] : 0);
    if (score > most) {
      most = score;
      best = i;
    }
  }
  kernels::SoftmaxRows(row, row, 1, own.size(),
                       {.scale = scale, .mask = own_mask, .log_sums = log_sum});
  if (in_.sinks) {
    const float share = ShareBesideSink(most, row[best], in_.sinks[h]);
    for (size_t i = 0; i < own.size(); ++i) row[i] *= share;
  }
  std::fill(scores, row, 0.0f);
  std::fill(row + own.size(), scores + keys.size(), 0.0f);
}

float* DotProductAttention::ScoresOf(size_t b, size_t h, size_t query) const {
  return in_.scores + ((b * in_.q.heads + h) * in_.q.length + query) * in_.k.length;
}

// The scores in the modes before the softmax.
void DotProductAttention::StoreScores(size_t b, size_t h, size_t first, size_t rows,
                                      float* mask_row, float* gemm_scratch) const {
  kernels::GemmArgs args = KeyProduct(b, h, first, rows);
  args.c = ScoresOf(b, h, first);
  args.ldc = in_.k.length;
  kernels::Gemm(args, gemm_scratch);
  if (in_.scores_mode == ScoresMode::kProduct) return;
  for (size_t i = 0; i < rows; ++i) {
    float* row = args.c + i * in_.k.length;
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
  const float* mask = in_.addends(b, h, query, mask_row);
  std::fill_n(scores, own.begin, in_.hidden_score);
  std::fill(scores + own.end, scores + in_.k.length, in_.hidden_score);
  for (size_t j = own.begin; mask && j < own.end; ++j) scores[j] += mask[j];
}

void DotProductAttention::StoreWeights(size_t b, size_t h, size_t first, size_t rows, KeyRange keys,
                                       const float* weights) const {
  for (size_t i = 0; i < rows; ++i) {
    float* row = ScoresOf(b, h, first + i);
    std::fill_n(row, in_.k.length, 0.0f);
    std::copy_n(weights + i * keys.size(), keys.size(), row + keys.begin);
  }
}

}  // namespace tenon
