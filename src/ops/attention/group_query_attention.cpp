// GroupQueryAttention of com.microsoft: causal attention of many query heads to few key heads, with
// rotary embedding and a cache that may be one buffer for past and present.
#include <algorithm>
#include <cstring>

#include "base/arithmetic.h"
#include "ops/attention/grouped_heads.h"
#include "ops/attention/quantized_cache.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

enum Input : size_t {
  kQuery,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kLastPositions,  // of each sequence: its length, new tokens included, less one
  kTotalLength,    // the longest of them
  kCos,
  kSin,
  kPositions,
  kScoreBias,
  kSinks,
  kKeyScale,
  kValueScale,
  kQueryNorm,
  kKeyNorm
};
enum Output : size_t { kY, kPresentKey, kPresentValue, kScores };

struct GroupQueryAttrs : WindowedAttrs {
  int64_t causal = 1;
  int64_t smooth_softmax = -1;
  int64_t scores = 0;   // 0: none, 1: before the softmax, 2: after it
  bool slides = false;  // caches keep only the newest rows
  std::string key_type = "NONE", value_type = "NONE";
  static constexpr auto Fields() {
    using A = GroupQueryAttrs;
    return std::tuple_cat(
        WindowedAttrs::Fields(),
        std::tuple(Field("causal", &A::causal), Field("smooth_softmax", &A::smooth_softmax),
                   Field("qk_output", &A::scores), Field("sliding_window_cache", &A::slides),
                   Field("k_quant_type", &A::key_type), Field("v_quant_type", &A::value_type)));
  }
};

// --- Shapes ---

Status CheckAttrs(const GroupQueryAttrs& attrs) {
  TENON_RETURN_IF_ERROR(CheckGroups(attrs));
  if (attrs.scores < 0 || attrs.scores > 2) {
    return InvalidArgument("expected qk_output in [0, 2], got {}", attrs.scores);
  }
  if (attrs.causal != 0 && attrs.causal != 1) {
    return InvalidArgument("expected causal to be 0 or 1, got {}", attrs.causal);
  }
  if (attrs.causal == 0 && attrs.local_window >= 0) {
    return InvalidArgument("attribute 'local_window_size': expected -1 if causal is 0, got {}",
                           attrs.local_window);
  }
  if (attrs.slides && attrs.local_window < 1) {
    return InvalidArgument(
        "attribute 'sliding_window_cache': expected a local_window_size above 0, got {}",
        attrs.local_window);
  }
  return OkStatus();
}

struct CacheCodings {
  CacheCoding key, value;
};

Result<CacheCodings> CodingsOf(const GroupQueryAttrs& attrs, const Dim& size,
                               const ShapeContext& context) {
  const Dim channels = Dim(attrs.kv_heads) * size;
  CacheCodings codings;
  TENON_ASSIGN_OR_RETURN(
      codings.key, CheckCacheCoding(context, kPastKey, kKeyScale, attrs.key_type, {}, channels));
  TENON_ASSIGN_OR_RETURN(codings.value, CheckCacheCoding(context, kPastValue, kValueScale,
                                                         attrs.value_type, {}, channels));
  return codings;
}

// The sequence lengths at most `total`, if they are known.
Result<Dim> TotalLength(const ShapeContext& context) {
  const Tensor* total = context.InputData(kTotalLength);
  if (total == nullptr) return Dim::Unknown();
  if (total->size() != 1) {
    return InvalidArgument("input 6: expected one element, got {}", total->shape());
  }
  const int32_t length = total->data<int32_t>()[0];
  if (length < 0) return InvalidArgument("input 6: expected a length, got {}", length);
  return Dim(length);
}

// Rows of key and value: those of the query `q`, or none if the past has all keys.
Result<Dim> NewKeys(const GroupQueryAttrs& attrs, const SymbolicShape& q,
                    const ShapeContext& context) {
  if (!context.HasInput(kKey)) return q[1];
  TENON_ASSIGN_OR_RETURN(const SymbolicShape key, context.InputOfRank(kKey, 3));
  if (!(key[1] == Dim(0)) || !context.HasInput(kPastKey)) return q[1];
  if (attrs.slides) return InvalidArgument("input 1: a cache that slides needs new keys, got none");
  return Dim(0);
}

Status InferGroupQuery(const GroupQueryAttrs& attrs, ShapeContext& context) {
  TENON_RETURN_IF_ERROR(CheckAttrs(attrs));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape q, context.InputOfRank(kQuery, 3));
  TENON_ASSIGN_OR_RETURN(const Dim keys, NewKeys(attrs, q, context));
  TENON_ASSIGN_OR_RETURN(const Dim size, GroupedHeadSize(attrs, q, keys, context));
  if (attrs.do_rotary) TENON_RETURN_IF_ERROR(CheckAngleTables(context, kCos, size));
  const bool has_past = context.HasInput(kPastKey);
  if (has_past != context.HasInput(kPastValue)) {
    return InvalidArgument("past_key and past_value are used together or not at all");
  }
  const Dim heads(attrs.heads), kv_heads(attrs.kv_heads);
  TENON_ASSIGN_OR_RETURN(const CacheCodings codings, CodingsOf(attrs, size, context));
  const Dim key_size = CodedSize(codings.key, size), value_size = CodedSize(codings.value, size);
  Dim past(0), past_values(0);
  TENON_RETURN_IF_ERROR(CheckCache(context, kPastKey, q[0], kv_heads, key_size, &past));
  TENON_RETURN_IF_ERROR(CheckCache(context, kPastValue, q[0], kv_heads, value_size, &past_values));
  if (!MayEqual(past, past_values)) {
    return InvalidArgument("past_key has {} rows and past_value {}", past, past_values);
  }
  if (attrs.slides && !has_past) return InvalidArgument("a cache that slides needs past_key");
  if (attrs.slides && past.is_number() && past.value() < attrs.local_window) {
    return InvalidArgument(
        "input 3: expected rows for a local_window_size of {} with sliding_window_cache, got {}",
        attrs.local_window, past);
  }
  TENON_RETURN_IF_ERROR(CheckElementCount(context, kLastPositions, q[0]));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape last, context.Input(kLastPositions));
  bool has_batch_axis = last.rank() > 0;
  for (const Dim& dim : last) {
    has_batch_axis = has_batch_axis && (MayEqual(dim, Dim(1)) || MayEqual(dim, q[0]));
  }
  if (!has_batch_axis) return InvalidArgument("input 5: expected shape [{}], got {}", q[0], last);
  TENON_RETURN_IF_ERROR(CheckElementCount(context, kSinks, heads));
  TENON_RETURN_IF_ERROR(CheckElementCount(context, kQueryNorm, size));
  TENON_RETURN_IF_ERROR(CheckElementCount(context, kKeyNorm, size));
  TENON_RETURN_IF_ERROR(CheckElementCount(context, kPositions, q[0] * q[1]));
  TENON_ASSIGN_OR_RETURN(const Dim total, TotalLength(context));
  TENON_RETURN_IF_ERROR(CheckScoreBias(context, kScoreBias, q[0], heads, q[1], total));
  const Dim present = attrs.slides ? past : Max(past, total);
  const auto set_present = [&](size_t i, const Dim& channels, const std::string& coding) -> Status {
    SymbolicShape shape = {q[0], kv_heads, present, channels};
    // A cache that begins here has the type of the keys, unless it is coded in a type that the
    // model names.
    const bool is_new = !has_past && coding == "NONE";
    return is_new ? context.SetOutput(i, std::move(shape), context.ElementType(kQuery))
                  : context.SetOutput(i, std::move(shape));
  };
  TENON_RETURN_IF_ERROR(set_present(kPresentKey, key_size, attrs.key_type));
  TENON_RETURN_IF_ERROR(set_present(kPresentValue, value_size, attrs.value_type));
  TENON_RETURN_IF_ERROR(context.SetOutput(kScores, {q[0], heads, q[1], total}));
  return context.SetOutput(kY, {q[0], q[1], heads * size});
}

// --- Running ---

class GroupQueryRun : GroupedRun {
 public:
  GroupQueryRun(const GroupQueryAttrs& attrs, KernelContext& context)
      : GroupedRun(attrs, context, kCos), attrs_(attrs) {
    total_ = static_cast<size_t>(context.Input(kTotalLength).data<int32_t>()[0]);
    if (context.HasInput(kPastKey)) {
      capacity_ = static_cast<size_t>(context.Input(kPastKey).shape()[2]);
    }
  }

  Status Run() {
    TENON_RETURN_IF_ERROR(CheckLengths());
    const HeadMatrices cache = HeadsFirst(batch_, kv_heads_, CacheRows(), size_);
    FloatPieces pieces;
    const bool edits = attrs_.do_rotary || context_.HasInput(kQueryNorm);
    const size_t q_piece = edits ? pieces.Add(batch_ * queries_ * heads_ * size_) : 0;
    CacheParts keys = {kPastKey, kKeyScale, kPresentKey, CacheCoding::kNone};
    CacheParts values = {kPastValue, kValueScale, kPresentValue, CacheCoding::kNone};
    TENON_ASSIGN_OR_RETURN(keys.coding, CodingOf(kPastKey, attrs_.key_type));
    TENON_ASSIGN_OR_RETURN(values.coding, CodingOf(kPastValue, attrs_.value_type));
    const size_t k_piece = CachePiece(keys, cache, &pieces);
    const size_t v_piece = CachePiece(values, cache, &pieces);
    const bool is_smooth = attrs_.smooth_softmax == 1;
    const size_t sink_piece = is_smooth ? pieces.Add(heads_) : 0;
    ScoreAddends addends(nullptr,
                         context_.HasInput(kScoreBias) ? &context_.Input(kScoreBias) : nullptr, 0,
                         {batch_, heads_, queries_, total_, 0});
    // With one query a sequence, the heads that share keys are the rows of one product.
    const size_t group = heads_ / kv_heads_;
    const bool is_folded = queries_ == 1 && !context_.HasInput(kSinks) && !is_smooth;
    const auto visible = [&](size_t b, size_t query) {
      return VisibleKeys(b, is_folded ? 0 : query);
    };
    const auto row = [&](size_t b, size_t h, size_t query, KeyRange of, float* buffer) {
      of = {of.begin + FirstKey(b), of.end + FirstKey(b)};
      return is_folded ? addends.Row(b, h * group + query, 0, of, buffer)
                       : addends.Row(b, h, query, of, buffer);
    };
    AttentionOperands in = {
        .q = edits ? HeadsLast(batch_, queries_, heads_, size_) : q_.matrices,
        .k = cache,
        .v = cache,
        .y = HeadsLast(batch_, queries_, heads_, size_),
        .q_data = q_.data,
        .y_data = context_.Output(kY).data<float>(),
        .scale = scale_,
        .softcap = attrs_.softcap,
        .visible = visible,
        .addends = row,
        .scores_mode = attrs_.scores == 2 ? ScoresMode::kWeights : ScoresMode::kMasked,
        .hidden_score = 0};
    in.k.length = in.v.length = attrs_.slides ? cache.length : total_;
    if (has_scores()) {
      in.scores = context_.Output(kScores).data<float>();
    }
    if (is_folded) {
      Fold(group, &in.q);
      Fold(group, &in.y);
    }
    const DotProductAttention attention(in);
    auto* memory =
        static_cast<std::byte*>(context_.Scratch(pieces.bytes() + attention.task_bytes(context_)));
    if (memory == nullptr) return RuntimeException("out of memory for {} keys", total_);
    auto* floats = reinterpret_cast<float*>(memory);
    if (edits) {
      CopyQueries(in.q, floats + q_piece);
      in.q_data = floats + q_piece;
    }
    in.k_data = FillCache(keys, k_, cache, floats + k_piece);
    in.v_data = FillCache(values, v_, cache, floats + v_piece);
    if (context_.HasInput(kSinks)) in.sinks = context_.Input(kSinks).data<float>();
    if (is_smooth) {
      std::fill_n(floats + sink_piece, heads_, 0.0f);
      if (!in.sinks) in.sinks = floats + sink_piece;
    }
    attention.RunIn(context_, memory + pieces.bytes());
    return OkStatus();
  }

 private:
  Status CheckLengths() const {
    const bool has_past = context_.HasInput(kPastKey);
    const int32_t* last = context_.Input(kLastPositions).data<int32_t>();
    if (total_ < queries_) {
      return InvalidArgument("input 6: expected a total length of at least {}, got {}", queries_,
                             total_);
    }
    for (size_t b = 0; b < batch_; ++b) {
      const int64_t length = int64_t{last[b]} + 1;
      // A first run may have fewer tokens in a sequence than the others: padding follows them.
      const auto least = static_cast<int64_t>(is_first() ? 0 : queries_);
      if (length < least || length > static_cast<int64_t>(total_)) {
        return InvalidArgument("input 5: expected lengths in [{}, {}], less one, got {}", least,
                               total_, last[b]);
      }
      if (!has_past && length > static_cast<int64_t>(queries_)) {
        return InvalidArgument("input 5: {} keys of sequence {} need past_key", length, b);
      }
      if (!attrs_.slides && Cached(b) > capacity_) {
        return InvalidArgument("input 5: {} past keys of sequence {}, past_key has {}", Cached(b),
                               b, capacity_);
      }
    }
    if (!attrs_.do_rotary) return OkStatus();
    const int64_t angles = context_.Input(kCos).shape()[0];
    const bool has_positions = context_.HasInput(kPositions);
    for (size_t b = 0; b < batch_; ++b) {
      for (size_t i = 0; i < queries_; ++i) {
        const int64_t position =
            has_positions ? PositionInput(b, i) : static_cast<int64_t>(Past(b) + i);
        if (position >= 0 && position < angles) continue;
        return InvalidArgument("cos_cache: expected positions in [0, {}), got {}", angles,
                               position);
      }
    }
    return OkStatus();
  }

  bool is_first() const { return queries_ == total_; }
  int64_t PositionInput(size_t b, size_t i) const {
    return context_.Input(kPositions).data<int64_t>()[b * queries_ + i];
  }
  // All keys of a sequence.
  size_t Length(size_t b) const {
    return static_cast<size_t>(context_.Input(kLastPositions).data<int32_t>()[b]) + 1;
  }
  // Tokens of a sequence before the first query.
  size_t Past(size_t b) const { return is_first() ? 0 : Length(b) - queries_; }
  // Keys of a sequence that are already in the cache.
  size_t Cached(size_t b) const { return keys_ == 0 ? Length(b) : Past(b); }
  // How many of the first `length` keys of a sequence the cache keeps. A sliding cache drops at
  // once as many keys as it has room for beyond the window.
  size_t Kept(size_t length) const {
    if (!attrs_.slides || length <= capacity_) return length;
    const size_t dropped = capacity_ - static_cast<size_t>(attrs_.local_window) + 1;
    return length - dropped * CeilDiv(length - capacity_, dropped);
  }
  bool has_scores() const { return attrs_.scores != 0 && context_.HasOutput(kScores); }
  // The key in row 0 of attention's keys. If scores are an output, it has those of all keys.
  size_t FirstKey(size_t b) const { return has_scores() ? 0 : Past(b) - Kept(Past(b)); }
  // Number of rows that attention reads.
  size_t CacheRows() const {
    if (!attrs_.slides) return std::max(capacity_, total_);
    size_t rows = has_scores() ? total_ : 0;
    for (size_t b = 0; b < batch_; ++b) rows = std::max(rows, Past(b) - FirstKey(b) + queries_);
    return rows;
  }
  // New rows of a sequence, including padding if the cache has room for it.
  size_t NewRows(size_t b) const {
    if (!attrs_.slides) return keys_;
    return Length(b) - Past(b);
  }
  size_t Position(size_t b, size_t i) const {
    return context_.HasInput(kPositions) ? static_cast<size_t>(PositionInput(b, i)) : Past(b) + i;
  }

  KeyRange VisibleKeys(size_t b, size_t query) const {
    const size_t past = Past(b) - FirstKey(b);
    if (attrs_.causal == 0) return {0, Length(b)};
    // Padding after a sequence whose keys are all in the cache sees no more than these.
    const size_t seen = keys_ == 0 ? std::min(past + query + 1, Length(b)) : past + query + 1;
    return {std::min(attrs_.WindowBegin(past + query), seen), seen};
  }

  // [batch, heads, 1, size] as [batch, heads / group, group, size].
  static void Fold(size_t group, HeadMatrices* m) {
    m->row_stride = m->head_stride;
    m->head_stride *= group;
    m->heads /= group;
    m->length = group;
  }

  // The source of this output's cache.
  struct CacheParts {
    Input past, scale;
    Output present;
    CacheCoding coding;
  };

  // Whether attention reads the present directly.
  bool IsPresent(const CacheParts& parts) const {
    return context_.HasOutput(parts.present) && parts.coding == CacheCoding::kNone &&
           !attrs_.slides;
  }

  size_t CachePiece(const CacheParts& parts, const HeadMatrices& cache, FloatPieces* pieces) const {
    return IsPresent(parts) ? 0 : pieces->Add(cache.batch * cache.batch_stride);
  }

  void CopyQueries(const HeadMatrices&, float* into) {
    const auto edit = [&](size_t b, size_t, size_t i, float* row) {
      Normalize(kQueryNorm, attrs_.norm_epsilon, row);
      if (attrs_.do_rotary) Rotate(rotation_, Position(b, i), row);
    };
    const RowEdit row_edit = edit;
    CopyRows(
        context_.threads(), q_, HeadsLast(batch_, queries_, heads_, size_), into,
        [](size_t) { return 0; }, &row_edit);
  }

  Result<CacheCoding> CodingOf(Input past, std::string_view quantization) const {
    if (!context_.HasInput(past)) return CacheCoding::kNone;
    const DataType type = context_.Input(past).type();
    if (type == DataType::kFloat16) return CacheCoding::kFloat16;
    if (type == DataType::kBfloat16) return CacheCoding::kBfloat16;
    return CacheCodingOf(type, quantization, {});
  }

  // Past and new rows; the past is not moved if both share one buffer.
  const float* FillCache(const CacheParts& parts, const HeadSource& source,
                         const HeadMatrices& cache, float* piece) {
    if (parts.coding != CacheCoding::kNone || attrs_.slides) {
      CopyNewRows(parts, source, cache, piece);
      CodeCache(parts, cache, piece);
      return piece;
    }
    float* into =
        context_.HasOutput(parts.present) ? context_.Output(parts.present).data<float>() : piece;
    if (context_.HasInput(parts.past)) {
      const HeadMatrices old = HeadsFirst(batch_, kv_heads_, capacity_, size_);
      CopyCache(context_.threads(), old, context_.Input(parts.past).data<float>(), cache, into,
                [&](size_t b) { return Cached(b); });
    }
    CopyNewRows(parts, source, cache, into);
    if (!IsInPlace(parts))
      ClearRest(cache.length, size_ * sizeof(float), reinterpret_cast<std::byte*>(into));
    return into;
  }

  void CopyNewRows(const CacheParts& parts, const HeadSource& source, const HeadMatrices& cache,
                   float* into) {
    const auto edit = [&](size_t b, size_t, size_t i, float* row) {
      Normalize(kKeyNorm, attrs_.norm_epsilon, row);
      if (attrs_.do_rotary) Rotate(rotation_, Position(b, i), row);
    };
    const RowEdit row_edit = edit;
    const bool edits =
        parts.present == kPresentKey && (attrs_.do_rotary || context_.HasInput(kKeyNorm));
    CopyRows(
        context_.threads(), source, cache, into, [&](size_t b) { return Past(b) - FirstKey(b); },
        edits ? &row_edit : nullptr);
  }

  // A cache that is not of floats, or slides: its past rows as floats, followed by the new rows as
  // they will be read from it.
  void CodeCache(const CacheParts& parts, const HeadMatrices& cache, float* values) {
    const Tensor& past = context_.Input(parts.past);
    std::optional<CacheCoder> coder;
    if (parts.coding != CacheCoding::kNone) {
      const bool has_scale = context_.HasInput(parts.scale);
      coder.emplace(parts.coding, past, has_scale ? &context_.Input(parts.scale) : nullptr, size_);
    }
    const size_t bytes = coder ? coder->row_bytes() : size_ * sizeof(float);
    const size_t present = attrs_.slides ? capacity_ : cache.length;
    const auto* old = static_cast<const std::byte*>(past.raw());
    auto* into = context_.HasOutput(parts.present)
                     ? static_cast<std::byte*>(context_.Output(parts.present).raw())
                     : nullptr;
    context_.threads().ParallelFor(batch_ * kv_heads_, 1, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        const size_t b = i / kv_heads_, head = i % kv_heads_;
        const std::byte* from = old + i * capacity_ * bytes;
        std::byte* to = into ? into + i * present * bytes : nullptr;
        const size_t old_rows = Kept(Cached(b)), all = old_rows + NewRows(b);
        const size_t dropped = all - Kept(Cached(b) + NewRows(b));
        float* rows = values + cache.Offset(b, head) + (Cached(b) - old_rows - FirstKey(b)) * size_;
        if (!coder) std::copy_n(reinterpret_cast<const float*>(from), old_rows * size_, rows);
        for (size_t row = 0; coder && row < old_rows; ++row) {
          coder->Decode(from + row * bytes, head, rows + row * size_);
        }
        if (to && to != from + dropped * bytes && dropped < old_rows) {
          std::memmove(to, from + dropped * bytes, (old_rows - dropped) * bytes);
        }
        for (size_t row = old_rows; row < all; ++row) {
          float* value = rows + row * size_;
          if (coder) coder->Round(value, head);
          if (!to || row < dropped) continue;
          std::byte* stored = to + (row - dropped) * bytes;
          if (coder) coder->Encode(value, head, stored);
          if (!coder) std::memcpy(stored, value, bytes);
        }
      }
    });
    if (into && !IsInPlace(parts)) ClearRest(present, bytes, into);
  }

  bool IsInPlace(const CacheParts& parts) const {
    return context_.HasOutput(parts.present) && context_.HasInput(parts.past) &&
           context_.Input(parts.past).raw() == context_.Output(parts.present).raw();
  }

  // Clears the unwritten part of matrices of `rows`, so that no old memory is exposed.
  void ClearRest(size_t rows, size_t row_bytes, std::byte* into) const {
    for (size_t b = 0; b < batch_; ++b) {
      const size_t used = Kept(Cached(b) + NewRows(b));
      for (size_t h = 0; h < kv_heads_; ++h) {
        std::byte* matrix = into + (b * kv_heads_ + h) * rows * row_bytes;
        std::fill(matrix + used * row_bytes, matrix + rows * row_bytes, std::byte{0});
      }
    }
  }

  const GroupQueryAttrs& attrs_;
  size_t total_ = 0, capacity_ = 0;  // keys; rows of the past's buffer
};

Status RunGroupQuery(const GroupQueryAttrs& attrs, KernelContext& context) {
  return GroupQueryRun(attrs, context).Run();
}

constexpr OpRow kRows[] = {
    Op<InferGroupQuery, RunGroupQuery>("GroupQueryAttention",
                                       {.domain = "com.microsoft",
                                        .types = kFloat32Only,
                                        .narrow_inputs = 1 << kPastKey | 1 << kPastValue,
                                        .narrow_outputs = 1 << kPresentKey | 1 << kPresentValue}),
};

}  // namespace

TENON_OP_FAMILY(GroupQueryAttention, kRows);

}  // namespace tenon
