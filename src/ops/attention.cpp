// Attention: softmax(scale Q K' + mask) V for every head, in blocks of queries whose scores stay in
// the L2 cache.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/arithmetic.h"
#include "kernels/gemm.h"
#include "kernels/softmax.h"
#include "ops/families.h"

namespace tenon {
namespace {

enum Input : size_t { kQ, kK, kV, kMask, kPastKey, kPastValue, kKeyLengths };
enum Output : size_t { kY, kPresentKey, kPresentValue, kScores };

// What output `qk_matmul_output` holds.
enum ScoresMode : int64_t { kProduct, kSoftcapped, kMasked, kWeights };

struct AttentionAttrs {
  bool is_causal = false;
  int64_t q_heads = 0, kv_heads = 0;  // for inputs of rank 3
  std::optional<float> scale;
  float softcap = 0;
  int64_t scores_mode = kProduct;
  // Since version 25: how far a query sees to both sides of its own position; -1: without limit.
  int64_t left_window = -1, right_window = -1;
  static constexpr auto Fields() {
    using A = AttentionAttrs;
    return std::tuple(
        Field("is_causal", &A::is_causal), Field("q_num_heads", &A::q_heads),
        Field("kv_num_heads", &A::kv_heads), Field("scale", &A::scale),
        Field("softcap", &A::softcap), Field("qk_matmul_output_mode", &A::scores_mode),
        Field("left_window_size", &A::left_window), Field("right_window_size", &A::right_window));
  }
};

// --- Shapes ---

struct Heads {
  Dim batch, heads, length, size;
};

// Input `i`, [batch, heads, length, size] or [batch, length, heads * size].
Result<Heads> HeadsOf(const ShapeContext& context, size_t i, int64_t heads) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.Input(i));
  if (x.rank() == 4) return Heads{x[0], x[1], x[2], x[3]};
  if (x.rank() != 3) return InvalidArgument("input {}: expected rank 3 or 4, got {}", i, x);
  if (heads <= 0) {
    return InvalidArgument("inputs of rank 3 need q_num_heads and kv_num_heads, got {}", heads);
  }
  if (x[2].is_number() && x[2].value() % heads != 0) {
    return InvalidArgument("input {}: expected {} heads of one size, got {}", i, heads, x);
  }
  return Heads{x[0], Dim(heads), x[1], FloorDiv(x[2], Dim(heads))};
}

bool MayBeEqual(const Dim& a, const Dim& b) { return !a.is_number() || !b.is_number() || a == b; }

Status CheckPast(const ShapeContext& context) {
  const bool has_past = context.HasInput(kPastKey);
  if (has_past != context.HasInput(kPastValue)) {
    return InvalidArgument("past_key and past_value are used together or not at all");
  }
  if (has_past && context.HasInput(kKeyLengths)) {
    return InvalidArgument("nonpad_kv_seqlen is not used together with past_key");
  }
  if (has_past && !(context.HasOutput(kPresentKey) && context.HasOutput(kPresentValue))) {
    return InvalidArgument("past_key needs the outputs present_key and present_value");
  }
  return OkStatus();
}

// Each dimension of the mask is the scores' or 1; the last may be shorter.
Status CheckMask(const ShapeContext& context, const SymbolicShape& scores) {
  if (!context.HasInput(kMask)) return OkStatus();
  const Result<SymbolicShape> mask = context.Input(kMask);
  if (!mask) return IsUnknownShape(mask.error()) ? OkStatus() : mask.error();
  bool fits = mask->rank() >= 1 && mask->rank() <= 4;
  for (size_t back = 1; fits && back <= mask->rank(); ++back) {
    const Dim& dim = (*mask)[mask->rank() - back];
    const Dim& size = scores[4 - back];
    const bool is_shorter =
        back == 1 && dim.is_number() && size.is_number() && dim.value() <= size.value();
    fits = is_shorter || dim == Dim(1) || MayBeEqual(dim, size);
  }
  if (fits) return OkStatus();
  return InvalidArgument("input 3: expected a mask for scores {}, got {}", scores, *mask);
}

Status InferAttention(const AttentionAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape query, context.Input(kQ));
  TENON_ASSIGN_OR_RETURN(const Heads q, HeadsOf(context, kQ, attrs.q_heads));
  TENON_ASSIGN_OR_RETURN(const Heads k, HeadsOf(context, kK, attrs.kv_heads));
  TENON_ASSIGN_OR_RETURN(const Heads v, HeadsOf(context, kV, attrs.kv_heads));
  if (!MayBeEqual(q.batch, k.batch) || !MayBeEqual(q.batch, v.batch) ||
      !MayBeEqual(k.heads, v.heads) || !MayBeEqual(k.length, v.length) ||
      !MayBeEqual(q.size, k.size)) {
    return InvalidArgument("shapes of Q {}, K {} and V {} do not fit together", query,
                           *context.Input(kK), *context.Input(kV));
  }
  if (q.heads.is_number() && k.heads.is_number() &&
      (k.heads.value() == 0 ? q.heads.value() != 0 : q.heads.value() % k.heads.value() != 0)) {
    return InvalidArgument("expected a multiple of {} query heads, got {}", k.heads, q.heads);
  }
  TENON_RETURN_IF_ERROR(CheckPast(context));
  Dim length = k.length;
  if (context.HasInput(kPastKey)) {
    TENON_ASSIGN_OR_RETURN(const SymbolicShape past, context.InputOfRank(kPastKey, 4));
    TENON_ASSIGN_OR_RETURN(const SymbolicShape past_value, context.InputOfRank(kPastValue, 4));
    const bool fits = MayBeEqual(past[0], k.batch) && MayBeEqual(past[1], k.heads) &&
                      MayBeEqual(past[3], k.size) && MayBeEqual(past_value[0], v.batch) &&
                      MayBeEqual(past_value[1], v.heads) && MayBeEqual(past_value[3], v.size) &&
                      MayBeEqual(past[2], past_value[2]);
    if (!fits) return InvalidArgument("past {} and {} do not fit K and V", past, past_value);
    length = past[2] + k.length;
  }
  const SymbolicShape scores = {q.batch, q.heads, q.length, length};
  TENON_RETURN_IF_ERROR(CheckMask(context, scores));
  TENON_RETURN_IF_ERROR(context.SetOutput(
      kY, query.rank() == 4 ? SymbolicShape({q.batch, q.heads, q.length, v.size})
                            : SymbolicShape({q.batch, q.length, q.heads * v.size})));
  TENON_RETURN_IF_ERROR(context.SetOutput(kPresentKey, {k.batch, k.heads, length, k.size}));
  TENON_RETURN_IF_ERROR(context.SetOutput(kPresentValue, {v.batch, v.heads, length, v.size}));
  return context.SetOutput(kScores, scores);
}

// --- Operands ---

// The matrices of a tensor, one for each batch and head; rows are `row_stride` elements apart.
struct HeadMatrices {
  size_t batch, heads, length, size;
  size_t batch_stride, head_stride, row_stride;

  size_t Offset(size_t b, size_t h) const { return b * batch_stride + h * head_stride; }
};

HeadMatrices MatricesOf(const Shape& shape, int64_t head_count) {
  const auto dim = [&](size_t axis) { return static_cast<size_t>(shape[axis]); };
  if (shape.rank() == 4) {
    const size_t matrix = dim(2) * dim(3);
    return {dim(0), dim(1), dim(2), dim(3), dim(1) * matrix, matrix, dim(3)};
  }
  const auto heads = static_cast<size_t>(head_count);
  const size_t size = dim(2) / heads;
  return {dim(0), heads, dim(1), size, dim(1) * dim(2), size, dim(2)};
}

// The mask's rows, by broadcasting.
class Mask {
 public:
  Mask() = default;
  explicit Mask(const Tensor& mask) : is_bool_(mask.type() == DataType::kBool), data_(mask.raw()) {
    const Shape& shape = mask.shape();
    length_ = static_cast<size_t>(shape.back());
    size_t stride = 1;
    for (size_t back = 1; back <= shape.rank(); ++back) {
      const auto dim = static_cast<size_t>(shape[shape.rank() - back]);
      strides_[4 - back] = dim == 1 ? 0 : stride;
      stride *= dim;
    }
  }

  // Keys beyond it are invisible.
  size_t length() const { return length_; }
  // The addends of keys [0, length()) for a query: in place, or written to `buffer`; null: none.
  const float* Row(size_t b, size_t h, size_t query, float* buffer) const {
    if (data_ == nullptr) return nullptr;
    const size_t offset = b * strides_[0] + h * strides_[1] + query * strides_[2];
    if (!is_bool_) return static_cast<const float*>(data_) + offset;
    const bool* keep = static_cast<const bool*>(data_) + offset;
    for (size_t i = 0; i < length_; ++i) {
      buffer[i] = keep[i] ? 0 : -std::numeric_limits<float>::infinity();
    }
    return buffer;
  }

 private:
  bool is_bool_ = false;
  const void* data_ = nullptr;
  size_t length_ = std::numeric_limits<size_t>::max();
  size_t strides_[4] = {};
};

// --- The product ---

struct KeyRange {
  size_t begin, end;
  size_t size() const { return end - begin; }
};

class AttentionRun {
 public:
  AttentionRun(const AttentionAttrs& attrs, KernelContext& context)
      : attrs_(attrs),
        context_(context),
        q_(MatricesOf(context.Input(kQ).shape(), attrs.q_heads)),
        k_(MatricesOf(context.Input(kK).shape(), attrs.kv_heads)),
        v_(MatricesOf(context.Input(kV).shape(), attrs.kv_heads)),
        y_(MatricesOf(context.Output(kY).shape(), attrs.q_heads)),
        key_data_(context.Input(kK).data<float>()),
        value_data_(context.Input(kV).data<float>()) {
    if (context.HasInput(kMask)) mask_ = Mask(context.Input(kMask));
    if (context.HasInput(kPastKey)) past_ = static_cast<size_t>(context.Input(kPastKey).shape()[2]);
    scale_ = attrs.scale.value_or(1 / std::sqrt(static_cast<float>(q_.size)));
  }

  Status Run() {
    TENON_RETURN_IF_ERROR(CheckTypes());
    MakePresent(kPresentKey, kPastKey, &k_, &key_data_);
    MakePresent(kPresentValue, kPastValue, &v_, &value_data_);
    const size_t heads = q_.batch * q_.heads;
    if (heads == 0 || q_.length == 0) return OkStatus();
    // Blocks of scores of 256 KiB; each block reads and packs the keys anew.
    constexpr size_t kBlockFloats = 64 * 1024;
    rows_ = std::min(q_.length,
                     std::clamp<size_t>(kBlockFloats / std::max<size_t>(1, k_.length), 16, 256));
    const size_t blocks = CeilDiv(q_.length, rows_);
    score_floats_ = RoundUp<size_t>(rows_ * k_.length, 16);
    mask_floats_ = RoundUp<size_t>(k_.length, 16);
    const size_t bytes = (score_floats_ + mask_floats_) * sizeof(float) + GemmBytes();
    return context_.ForEachTask(heads * blocks, bytes, [&](size_t task, std::byte* scratch) {
      const size_t head = task / blocks, first = task % blocks * rows_;
      RunBlock(head / q_.heads, head % q_.heads, first, std::min(rows_, q_.length - first),
               reinterpret_cast<float*>(scratch));
    });
  }

 private:
  Status CheckTypes() const {
    for (const size_t i : {kK, kV}) {
      if (context_.Input(i).type() != DataType::kFloat) {
        return NotImplemented("input {} of type {} with a Q of float", i,
                              DataTypeName(context_.Input(i).type()));
      }
    }
    if (attrs_.scores_mode < kProduct || attrs_.scores_mode > kWeights) {
      return InvalidArgument("expected qk_matmul_output_mode in [0, 3], got {}",
                             attrs_.scores_mode);
    }
    return OkStatus();
  }

  // Scratch for the products of any block.
  size_t GemmBytes() const {
    size_t bytes = 0;
    for (size_t b = 0; b < q_.batch; ++b) {
      for (size_t first = 0; first < q_.length; first += rows_) {
        const size_t rows = std::min(rows_, q_.length - first);
        const size_t keys = KeysOfBlock(b, first, rows).size();
        for (const kernels::GemmSizes& sizes :
             {kernels::GemmSizes{rows, keys, q_.size}, kernels::GemmSizes{rows, v_.size, keys},
              kernels::GemmSizes{rows, k_.length, q_.size}}) {
          bytes = std::max(bytes, kernels::GemmScratchSize(sizes, false));
        }
      }
    }
    return bytes;
  }

  // Past and new rows one after the other, where that output is there; they are then what is read.
  void MakePresent(Output present, Input past, HeadMatrices* matrices, const float** data) {
    if (!context_.HasOutput(present)) return;
    Tensor& y = context_.Output(present);
    const HeadMatrices all = MatricesOf(y.shape(), 0);
    const size_t old_rows = all.length - matrices->length;
    for (size_t b = 0; b < all.batch; ++b) {
      for (size_t h = 0; h < all.heads; ++h) {
        float* into = y.data<float>() + all.Offset(b, h);
        if (old_rows > 0) {
          const size_t floats = old_rows * all.size;
          into = std::copy_n(context_.Input(past).data<float>() + (b * all.heads + h) * floats,
                             floats, into);
        }
        const float* from = *data + matrices->Offset(b, h);
        for (size_t i = 0; i < matrices->length; ++i) {
          into = std::copy_n(from + i * matrices->row_stride, all.size, into);
        }
      }
    }
    *matrices = all;
    *data = y.data<float>();
  }

  // The keys that a query may see, before the mask.
  KeyRange VisibleKeys(size_t b, size_t query) const {
    auto end = static_cast<int64_t>(std::min(k_.length, mask_.length()));
    auto position = static_cast<int64_t>(past_ + query);
    if (context_.HasInput(kKeyLengths)) {
      const int64_t keys = context_.Input(kKeyLengths).data<int64_t>()[b];
      end = std::min(end, std::max<int64_t>(keys, 0));
      position = keys - static_cast<int64_t>(q_.length) + static_cast<int64_t>(query);
    }
    int64_t begin = 0;
    if (attrs_.is_causal) end = std::min(end, position + 1);
    if (attrs_.left_window >= 0) begin = std::max(begin, position - attrs_.left_window);
    if (attrs_.right_window >= 0) end = std::min(end, position + attrs_.right_window + 1);
    end = std::max<int64_t>(end, 0);
    begin = std::clamp<int64_t>(begin, 0, end);
    return {static_cast<size_t>(begin), static_cast<size_t>(end)};
  }

  // The smallest range that has the keys of all of these queries.
  KeyRange KeysOfBlock(size_t b, size_t first, size_t rows) const {
    KeyRange keys = {k_.length, 0};
    for (size_t i = 0; i < rows; ++i) {
      const KeyRange own = VisibleKeys(b, first + i);
      if (own.size() == 0) continue;
      keys = {std::min(keys.begin, own.begin), std::max(keys.end, own.end)};
    }
    return keys.begin < keys.end ? keys : KeyRange{0, 0};
  }

  void RunBlock(size_t b, size_t h, size_t first, size_t rows, float* scratch) const {
    float* scores = scratch;
    float* mask_row = scratch + score_floats_;
    float* gemm_scratch = mask_row + mask_floats_;
    const size_t kv_head = h / (q_.heads / k_.heads);
    const KeyRange keys = KeysOfBlock(b, first, rows);
    MultiplyKeys(b, h, first, rows, keys, scores, gemm_scratch);
    if (context_.HasOutput(kScores) && attrs_.scores_mode != kWeights) {
      StoreScores(b, h, first, rows, mask_row, gemm_scratch);
    }
    for (size_t i = 0; i < rows; ++i) {
      const KeyRange own = VisibleKeys(b, first + i);
      const float* mask = mask_.Row(b, h, first + i, mask_row);
      TakeSoftmax(own, keys, mask, scores + i * keys.size());
    }
    kernels::GemmArgs args;
    args.sizes = {rows, v_.size, keys.size()};
    args.a = kernels::RowMajor(scores, keys.size());
    args.b = kernels::RowMajor(value_data_ + v_.Offset(b, kv_head) + keys.begin * v_.row_stride,
                               v_.row_stride);
    args.c = context_.Output(kY).data<float>() + y_.Offset(b, h) + first * y_.row_stride;
    args.ldc = y_.row_stride;
    kernels::Gemm(args, gemm_scratch);
    if (context_.HasOutput(kScores) && attrs_.scores_mode == kWeights) {
      StoreWeights(b, h, first, rows, keys, scores);
    }
  }

  // scale Q K' of `rows` queries and all keys, without its output.
  kernels::GemmArgs KeyProduct(size_t b, size_t h, size_t first, size_t rows) const {
    const size_t kv_head = h / (q_.heads / k_.heads);
    kernels::GemmArgs args;
    args.alpha = scale_;
    args.sizes = {rows, k_.length, q_.size};
    args.a = kernels::RowMajor(
        context_.Input(kQ).data<float>() + q_.Offset(b, h) + first * q_.row_stride, q_.row_stride);
    args.b = kernels::Transposed(key_data_ + k_.Offset(b, kv_head), k_.row_stride);
    return args;
  }

  // scores, rows x keys.size() = scale Q K', or tanh(scale Q K' / softcap) for the softmax to
  // scale.
  void MultiplyKeys(size_t b, size_t h, size_t first, size_t rows, KeyRange keys, float* scores,
                    float* gemm_scratch) const {
    kernels::GemmArgs args = KeyProduct(b, h, first, rows);
    args.sizes.n = keys.size();
    args.b.data += keys.begin * k_.row_stride;
    args.c = scores;
    args.ldc = keys.size();
    if (attrs_.softcap > 0) {
      args.alpha = scale_ / attrs_.softcap;
      args.epilogue.activation.kind = kernels::Activation::kTanh;
    }
    kernels::Gemm(args, gemm_scratch);
  }

  // One query's scores, of the keys in `keys`, become weights; 0 for keys that it does not see.
  void TakeSoftmax(KeyRange own, KeyRange keys, const float* mask, float* scores) const {
    const auto is_visible = [](float addend) {
      return addend != -std::numeric_limits<float>::infinity();
    };
    const bool sees_any =
        own.size() > 0 &&
        (mask == nullptr || std::any_of(mask + own.begin, mask + own.end, is_visible));
    if (!sees_any) {
      std::fill_n(scores, keys.size(), 0.0f);
      return;
    }
    float* row = scores + (own.begin - keys.begin);
    kernels::SoftmaxRows(row, row, 1, own.size(),
                         {.scale = attrs_.softcap > 0 ? attrs_.softcap : 1,
                          .mask = mask ? mask + own.begin : nullptr});
    std::fill(scores, row, 0.0f);
    std::fill(row + own.size(), scores + keys.size(), 0.0f);
  }

  float* ScoresOf(size_t b, size_t h, size_t query) const {
    return context_.Output(kScores).data<float>() +
           ((b * q_.heads + h) * q_.length + query) * k_.length;
  }

  // Output `qk_matmul_output` in the modes before the softmax.
  void StoreScores(size_t b, size_t h, size_t first, size_t rows, float* mask_row,
                   float* gemm_scratch) const {
    kernels::GemmArgs args = KeyProduct(b, h, first, rows);
    args.c = ScoresOf(b, h, first);
    args.ldc = k_.length;
    kernels::Gemm(args, gemm_scratch);
    if (attrs_.scores_mode == kProduct) return;
    for (size_t i = 0; i < rows; ++i) {
      float* row = args.c + i * k_.length;
      if (attrs_.softcap > 0) {
        std::transform(row, row + k_.length, row,
                       [this](float x) { return attrs_.softcap * std::tanh(x / attrs_.softcap); });
      }
      if (attrs_.scores_mode == kMasked) AddMask(b, h, first + i, mask_row, row);
    }
  }

  void AddMask(size_t b, size_t h, size_t query, float* mask_row, float* scores) const {
    constexpr float kHidden = -std::numeric_limits<float>::infinity();
    const KeyRange own = VisibleKeys(b, query);
    const float* mask = mask_.Row(b, h, query, mask_row);
    std::fill_n(scores, own.begin, kHidden);
    std::fill(scores + own.end, scores + k_.length, kHidden);
    for (size_t j = own.begin; mask && j < own.end; ++j) scores[j] += mask[j];
  }

  void StoreWeights(size_t b, size_t h, size_t first, size_t rows, KeyRange keys,
                    const float* weights) const {
    for (size_t i = 0; i < rows; ++i) {
      float* row = ScoresOf(b, h, first + i);
      std::fill_n(row, k_.length, 0.0f);
      std::copy_n(weights + i * keys.size(), keys.size(), row + keys.begin);
    }
  }

  const AttentionAttrs& attrs_;
  KernelContext& context_;
  const HeadMatrices q_;
  HeadMatrices k_, v_;  // with the past
  const HeadMatrices y_;
  const float* key_data_;
  const float* value_data_;
  Mask mask_;
  size_t past_ = 0;
  float scale_;
  size_t rows_ = 0;  // queries in a block
  size_t score_floats_ = 0, mask_floats_ = 0;
};

Status RunAttention(const AttentionAttrs& attrs, KernelContext& context) {
  return AttentionRun(attrs, context).Run();
}

constexpr OpRow kRows[] = {
    Op<InferAttention, RunAttention>("Attention", {.since = 23, .types = kFloat32Only}),
};

}  // namespace

const std::span<const OpRow> kAttentionFamily = kRows;

}  // namespace tenon
