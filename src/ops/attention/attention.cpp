// Attention: softmax(scale Q K' + mask) V for every head.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/gemm/gemm_any.h"
#include "kernels/softmax.h"
#include "ops/attention/dot_product_attention.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

enum Input : size_t { kQ, kK, kV, kMask, kPastKey, kPastValue, kKeyLengths };
enum Output : size_t { kY, kPresentKey, kPresentValue, kScores };

struct AttentionAttrs {
  bool is_causal = false;
  int64_t q_heads = 0, kv_heads = 0;  // for inputs of rank 3
  std::optional<float> scale;
  float softcap = 0;
  int64_t scores_mode = 0;  // a ScoresMode
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

Status CheckPast(const ShapeContext& context) {
  const bool has_past = context.HasInput(kPastKey);
  if (has_past != context.HasInput(kPastValue)) {
    return InvalidArgument("past_key and past_value are used together or not at all");
  }
  if (has_past && context.HasInput(kKeyLengths)) {
    return InvalidArgument("nonpad_kv_seqlen is not used together with past_key");
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
    fits = is_shorter || dim == Dim(1) || MayEqual(dim, size);
  }
  if (fits) return OkStatus();
  return InvalidArgument("input 3: expected a mask for scores {}, got {}", scores, *mask);
}

Status InferAttention(const AttentionAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape query, context.Input(kQ));
  TENON_ASSIGN_OR_RETURN(const Heads q, HeadsOf(context, kQ, attrs.q_heads));
  TENON_ASSIGN_OR_RETURN(const Heads k, HeadsOf(context, kK, attrs.kv_heads));
  TENON_ASSIGN_OR_RETURN(const Heads v, HeadsOf(context, kV, attrs.kv_heads));
  if (!MayEqual(q.batch, k.batch) || !MayEqual(q.batch, v.batch) || !MayEqual(k.heads, v.heads) ||
      !MayEqual(k.length, v.length) || !MayEqual(q.size, k.size)) {
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
    const bool fits = MayEqual(past[0], k.batch) && MayEqual(past[1], k.heads) &&
                      MayEqual(past[3], k.size) && MayEqual(past_value[0], v.batch) &&
                      MayEqual(past_value[1], v.heads) && MayEqual(past_value[3], v.size) &&
                      MayEqual(past[2], past_value[2]);
    if (!fits) return InvalidArgument("past {} and {} do not fit K and V", past, past_value);
    length = past[2] + k.length;
  }
  if (context.HasInput(kKeyLengths)) {
    TENON_ASSIGN_OR_RETURN(const SymbolicShape lengths, context.InputOfRank(kKeyLengths, 1));
    if (!MayEqual(lengths[0], q.batch)) {
      return InvalidArgument("input 6: expected {} lengths, got {}", q.batch, lengths);
    }
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

HeadMatrices MatricesOf(const Shape& shape, int64_t head_count) {
  const auto dim = [&](size_t axis) { return static_cast<size_t>(shape[axis]); };
  if (shape.rank() == 4) return HeadsFirst(dim(0), dim(1), dim(2), dim(3));
  const auto heads = static_cast<size_t>(head_count);
  return HeadsLast(dim(0), dim(1), heads, dim(2) / heads);
}

// The mask's rows, by broadcasting. T: float or double.
template <class T>
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

  // Keys from here on are invisible.
  size_t length() const { return length_; }
  // The addends for a query, of `keys`, which end by length(): in place, or written to `buffer`;
  // null: none.
  const T* Row(size_t b, size_t h, size_t query, KeyRange keys, T* buffer) const {
    if (data_ == nullptr) return nullptr;
    const size_t offset = b * strides_[0] + h * strides_[1] + query * strides_[2] + keys.begin;
    if (!is_bool_) return static_cast<const T*>(data_) + offset;
    const bool* keep = static_cast<const bool*>(data_) + offset;
    for (size_t i = 0; i < keys.size(); ++i) {
      buffer[i] = keep[i] ? 0 : -std::numeric_limits<T>::infinity();
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

template <class T>
class AttentionRun {
 public:
  AttentionRun(const AttentionAttrs& attrs, KernelContext& context)
      : attrs_(attrs),
        context_(context),
        q_(MatricesOf(context.Input(kQ).shape(), attrs.q_heads)),
        k_(MatricesOf(context.Input(kK).shape(), attrs.kv_heads)),
        v_(MatricesOf(context.Input(kV).shape(), attrs.kv_heads)),
        key_data_(context.Input(kK).data<T>()),
        value_data_(context.Input(kV).data<T>()) {
    if (context.HasInput(kMask)) mask_ = Mask<T>(context.Input(kMask));
    if (context.HasInput(kPastKey)) past_ = static_cast<size_t>(context.Input(kPastKey).shape()[2]);
  }

  Status Run() {
    TENON_RETURN_IF_ERROR(CheckTypes());
    TENON_RETURN_IF_ERROR(CheckKeyLengths());
    TENON_RETURN_IF_ERROR(MakePresent(kPresentKey, kPastKey, &k_, &key_data_));
    TENON_RETURN_IF_ERROR(MakePresent(kPresentValue, kPastValue, &v_, &value_data_));
    if constexpr (std::is_same_v<T, float>) {
      return MultiplyFloats();
    } else {
      return MultiplyScalars();
    }
  }

 private:
  Status MultiplyFloats() {
    const auto visible = [this](size_t b, size_t query) { return VisibleKeys(b, query); };
    const auto addends = [this](size_t b, size_t h, size_t query, KeyRange keys, float* buffer) {
      return mask_.Row(b, h, query, keys, buffer);
    };
    AttentionOperands in = {.q = q_,
                            .k = k_,
                            .v = v_,
                            .y = MatricesOf(context_.Output(kY).shape(), attrs_.q_heads),
                            .q_data = context_.Input(kQ).data<T>(),
                            .k_data = key_data_,
                            .v_data = value_data_,
                            .y_data = context_.Output(kY).data<T>(),
                            .softcap = attrs_.softcap,
                            .visible = visible,
                            .addends = addends,
                            .scores_mode = static_cast<ScoresMode>(attrs_.scores_mode)};
    in.scale = attrs_.scale.value_or(1 / std::sqrt(static_cast<float>(q_.size)));
    if (context_.HasOutput(kScores)) in.scores = context_.Output(kScores).data<T>();
    const DotProductAttention attention(in);
    if (attention.task_count() == 0) return OkStatus();
    return attention.Run(context_);
  }

  // One query after the other, computed in T.
  Status MultiplyScalars() {
    const HeadMatrices y = MatricesOf(context_.Output(kY).shape(), attrs_.q_heads);
    const size_t queries = q_.batch * q_.heads * q_.length;
    return context_.ForEachTask(
        queries, 2 * k_.length * sizeof(T),
        [&](size_t task, std::byte* scratch) { RunQuery(task, y, reinterpret_cast<T*>(scratch)); });
  }

  void RunQuery(size_t task, const HeadMatrices& y, T* weights) {
    const size_t query = task % q_.length, head = task / q_.length;
    const size_t b = head / q_.heads, h = head % q_.heads, kv_head = h / (q_.heads / k_.heads);
    const T* q = context_.Input(kQ).data<T>() + q_.Offset(b, h) + query * q_.row_stride;
    const T* k = key_data_ + k_.Offset(b, kv_head);
    const T* v = value_data_ + v_.Offset(b, kv_head);
    const T scale = attrs_.scale ? T(*attrs_.scale) : 1 / std::sqrt(static_cast<T>(q_.size));
    kernels::MultiplyRows<T>({k, k_.row_stride, 1}, {q, 1, 1}, k_.length, 1, q_.size, weights);
    for (size_t i = 0; i < k_.length; ++i) weights[i] *= scale;
    Store(ScoresMode::kProduct, task, weights);
    if (const T cap = attrs_.softcap; cap > 0) {
      for (size_t i = 0; i < k_.length; ++i) weights[i] = cap * std::tanh(weights[i] / cap);
    }
    Store(ScoresMode::kSoftcapped, task, weights);
    Hide(b, h, query, weights);
    Store(ScoresMode::kMasked, task, weights);
    TakeSoftmax(weights);
    Store(ScoresMode::kWeights, task, weights);
    T* out = context_.Output(kY).data<T>() + y.Offset(b, h) + query * y.row_stride;
    if (std::find(weights, weights + k_.length, T(0)) == weights + k_.length) {
      kernels::MultiplyRows<T>({weights, k_.length, 1}, {v, v_.row_stride, 1}, 1, v_.size,
                               k_.length, out);
      return;
    }
    std::fill_n(out, v_.size, T(0));
    for (size_t i = 0; i < k_.length; ++i) {
      if (weights[i] == 0) continue;  // not visible, whatever its value is
      for (size_t c = 0; c < v_.size; ++c) out[c] += weights[i] * v[i * v_.row_stride + c];
    }
  }

  // Adds the mask, and -infinity for keys that the query does not see.
  void Hide(size_t b, size_t h, size_t query, T* scores) const {
    const KeyRange keys = VisibleKeys(b, query);
    const T* mask = mask_.Row(b, h, query, {0, mask_.length()}, scores + k_.length);
    for (size_t i = 0; i < k_.length; ++i) {
      const bool is_seen = i >= keys.begin && i < keys.end;
      if (is_seen && mask) scores[i] += mask[i];
      if (!is_seen) scores[i] = -std::numeric_limits<T>::infinity();
    }
  }

  // A query that sees no key has no weights.
  void TakeSoftmax(T* scores) const {
    T* const end = scores + k_.length;
    const T most = k_.length == 0 ? 0 : *std::max_element(scores, end);
    if (most == -std::numeric_limits<T>::infinity()) {
      std::fill(scores, end, T(0));
      return;
    }
    kernels::SoftmaxRows(scores, scores, 1, k_.length, false);
  }

  void Store(ScoresMode mode, size_t task, const T* scores) {
    if (!context_.HasOutput(kScores) || attrs_.scores_mode != static_cast<int64_t>(mode)) return;
    std::copy_n(scores, k_.length, context_.Output(kScores).data<T>() + task * k_.length);
  }

  Status CheckTypes() const {
    for (const size_t i : {kK, kV}) {
      if (context_.Input(i).type() != context_.Input(kQ).type()) {
        return NotImplemented("input {} of type {} with a Q of {}", i,
                              DataTypeName(context_.Input(i).type()),
                              DataTypeName(context_.Input(kQ).type()));
      }
    }
    if (context_.HasInput(kMask) && context_.Input(kMask).type() != DataType::kBool &&
        context_.Input(kMask).type() != context_.Input(kQ).type()) {
      return NotImplemented("a mask of {} with a Q of {}",
                            DataTypeName(context_.Input(kMask).type()),
                            DataTypeName(context_.Input(kQ).type()));
    }
    if (attrs_.scores_mode < 0 || attrs_.scores_mode > 3) {
      return InvalidArgument("expected qk_matmul_output_mode in [0, 3], got {}",
                             attrs_.scores_mode);
    }
    return OkStatus();
  }

  Status CheckKeyLengths() const {
    if (!context_.HasInput(kKeyLengths)) return OkStatus();
    const auto most = static_cast<int64_t>(k_.length);
    for (const int64_t keys : context_.Input(kKeyLengths).values<int64_t>()) {
      if (keys < 0 || keys > most) {
        return InvalidArgument("input 6: expected lengths in [0, {}], got {}", most, keys);
      }
    }
    return OkStatus();
  }

  // Past and new rows one after the other, if there are past ones or that output is wanted;
  // attention then reads them.
  Status MakePresent(Output present, Input past, HeadMatrices* matrices, const T** data) {
    const bool is_wanted = context_.HasOutput(present);
    if (!is_wanted && !context_.HasInput(past)) return OkStatus();
    Tensor& own = own_present_[present == kPresentValue];
    if (!is_wanted) {
      const Shape shape = {
          static_cast<int64_t>(matrices->batch), static_cast<int64_t>(matrices->heads),
          static_cast<int64_t>(past_ + matrices->length), static_cast<int64_t>(matrices->size)};
      TENON_ASSIGN_OR_RETURN(own, context_.AllocateTensor(context_.Input(kQ).type(), shape));
    }
    Tensor& y = is_wanted ? context_.Output(present) : own;
    const HeadMatrices all = MatricesOf(y.shape(), 0);
    const size_t old_rows = all.length - matrices->length;
    for (size_t b = 0; b < all.batch; ++b) {
      for (size_t h = 0; h < all.heads; ++h) {
        T* into = y.data<T>() + all.Offset(b, h);
        if (old_rows > 0) {
          const size_t old_elements = old_rows * all.size;
          into = std::copy_n(context_.Input(past).data<T>() + (b * all.heads + h) * old_elements,
                             old_elements, into);
        }
        const T* from = *data + matrices->Offset(b, h);
        for (size_t i = 0; i < matrices->length; ++i) {
          into = std::copy_n(from + i * matrices->row_stride, all.size, into);
        }
      }
    }
    *matrices = all;
    *data = y.data<T>();
    return OkStatus();
  }

  // The keys that a query may see, before the mask.
  KeyRange VisibleKeys(size_t b, size_t query) const {
    auto end = static_cast<int64_t>(std::min(k_.length, mask_.length()));
    auto position = static_cast<int64_t>(past_ + query);
    if (context_.HasInput(kKeyLengths)) {
      const int64_t keys = context_.Input(kKeyLengths).data<int64_t>()[b];
      end = std::min(end, keys);
      position = keys - static_cast<int64_t>(q_.length) + static_cast<int64_t>(query);
    }
    int64_t begin = 0;
    if (attrs_.is_causal) end = std::min(end, position + 1);
    // No window needs to be longer than from the first query to the last key, or back.
    const auto longest = static_cast<int64_t>(q_.length + k_.length);
    if (attrs_.left_window >= 0) {
      begin = std::max(begin, position - std::min(attrs_.left_window, longest));
    }
    if (attrs_.right_window >= 0) {
      end = std::min(end, position + std::min(attrs_.right_window, longest) + 1);
    }
    end = std::max<int64_t>(end, 0);
    begin = std::clamp<int64_t>(begin, 0, end);
    return {static_cast<size_t>(begin), static_cast<size_t>(end)};
  }

  const AttentionAttrs& attrs_;
  KernelContext& context_;
  const HeadMatrices q_;
  HeadMatrices k_, v_;  // with the past
  const T* key_data_;
  const T* value_data_;
  Mask<T> mask_;
  size_t past_ = 0;
  Tensor own_present_[2];  // where nobody wants the outputs
};

Status RunAttention(const AttentionAttrs& attrs, KernelContext& context) {
  return context.Input(kQ).type() == DataType::kDouble ? AttentionRun<double>(attrs, context).Run()
                                                       : AttentionRun<float>(attrs, context).Run();
}

constexpr OpRow kRows[] = {
    Op<InferAttention, RunAttention>("Attention",
                                     {.since = 23, .types = {DataType::kFloat, DataType::kDouble}}),
};

}  // namespace

TENON_OP_FAMILY(Attention, kRows);

}  // namespace tenon
