// PagedAttention of com.microsoft: tokens of several sequences in a row, with keys and values in
// blocks of one cache.
#include <algorithm>
#include <cstring>
#include <functional>

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
  kKeyCache,
  kValueCache,
  kTokenEnds,  // [batch + 1]: sequence b has tokens [ends[b], ends[b + 1])
  kPast,       // of each sequence: keys in the cache already
  kBlockTable,
  kCos,
  kSin,
  kSlots,  // of each token: the place of its key and value; -1: none
  kSinks,
  kQueryNorm,
  kKeyNorm,
  kKeyScale,
  kValueScale,
};
enum Output : size_t { kY, kKeyCacheOut, kValueCacheOut };

struct PagedAttrs : WindowedAttrs {
  bool is_causal = true;
  int64_t rotary_offset = 0;
  int64_t value_size = 0;  // 0: the same as the keys
  std::string layout = "SEPARATE";
  std::string key_type, value_type, key_quantization = "NONE", value_quantization = "NONE";
  static constexpr auto Fields() {
    using A = PagedAttrs;
    return std::tuple_cat(
        WindowedAttrs::Fields(),
        std::tuple(Field("is_causal", &A::is_causal), Field("rotary_offset", &A::rotary_offset),
                   Field("v_head_size", &A::value_size), Field("kv_cache_layout", &A::layout),
                   Field("k_cache_dtype", &A::key_type), Field("v_cache_dtype", &A::value_type),
                   Field("k_quant_type", &A::key_quantization),
                   Field("v_quant_type", &A::value_quantization)));
  }
  bool is_latent() const { return layout == "LATENT"; }
};

Status CheckAttrs(const PagedAttrs& attrs, const ShapeContext& context) {
  TENON_RETURN_IF_ERROR(CheckGroups(attrs));
  if (attrs.layout != "SEPARATE" && !attrs.is_latent()) {
    return InvalidArgument("attribute 'kv_cache_layout': expected SEPARATE or LATENT, got '{}'",
                           attrs.layout);
  }
  if (attrs.is_latent() != !context.HasInput(kValueCache) ||
      (attrs.is_latent() && attrs.kv_heads != 1)) {
    return InvalidArgument("expected value_cache, or layout LATENT with kv_num_heads = 1");
  }
  if (attrs.rotary_offset < 0) {
    return InvalidArgument("expected rotary_offset >= 0, got {}", attrs.rotary_offset);
  }
  if (context.HasInput(kQueryNorm) != context.HasInput(kKeyNorm)) {
    return InvalidArgument("q_norm_weight and k_norm_weight are given together or not at all");
  }
  return OkStatus();
}

// The sizes from the shapes of the inputs.
struct PagedShapes {
  SymbolicShape key_cache, value_cache;  // [blocks, block size, heads, stored elements of a head]
  Dim size;                              // of a head
};

// Checks the tokens against the cache.
Result<PagedShapes> CheckTokens(const PagedAttrs& attrs, const SymbolicShape& q,
                                const ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape cache, context.InputOfRank(kKeyCache, 4));
  const bool has_keys = context.HasInput(kKey);
  TENON_ASSIGN_OR_RETURN(const int64_t heads, HeadsInQuery(attrs, context));
  // Two elements may share a byte of the cache.
  const Dim size =
      context.ElementType(kKeyCache) == DataType::kUint8 ? FloorDiv(q[1], Dim(heads)) : cache[3];
  if (!MayEqual(q[1], Dim(heads) * size)) {
    return InvalidArgument("input 0: expected {} heads of {} elements, got {}", heads, size, q);
  }
  const bool wants_values = has_keys && !attrs.is_latent();
  if (context.HasInput(kValue) != wants_values || (attrs.is_latent() && !has_keys)) {
    return InvalidArgument("expected key and value, none of them, or key alone for LATENT");
  }
  for (const size_t i : {kKey, kValue}) {
    if (!context.HasInput(i)) continue;
    TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.InputOfRank(i, 2));
    if (MayEqual(x[0], q[0]) && MayEqual(x[1], Dim(attrs.kv_heads) * size)) continue;
    return InvalidArgument("input {}: expected [{}, {}], got {}", i, q[0],
                           Dim(attrs.kv_heads) * size, x);
  }
  if (!MayEqual(cache[2], Dim(attrs.kv_heads)) || cache[1] == Dim(0)) {
    return InvalidArgument("input 3: expected blocks of {} heads, got {}", attrs.kv_heads, cache);
  }
  const Dim channels = Dim(attrs.kv_heads) * size;
  TENON_ASSIGN_OR_RETURN(const CacheCoding key_coding,
                         CheckCacheCoding(context, kKeyCache, kKeyScale, attrs.key_quantization,
                                          attrs.key_type, channels));
  TENON_ASSIGN_OR_RETURN(const CacheCoding value_coding,
                         CheckCacheCoding(context, kValueCache, kValueScale,
                                          attrs.value_quantization, attrs.value_type, channels));
  const Dim key_size = CodedSize(key_coding, size), value_size = CodedSize(value_coding, size);
  const SymbolicShape keys = {cache[0], cache[1], cache[2], key_size};
  const SymbolicShape values = {cache[0], cache[1], cache[2], value_size};
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kKeyCache, keys));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kValueCache, values));
  return PagedShapes{keys, values, size};
}

Status InferPaged(const PagedAttrs& attrs, ShapeContext& context) {
  TENON_RETURN_IF_ERROR(CheckAttrs(attrs, context));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape q, context.InputOfRank(kQuery, 2));
  TENON_ASSIGN_OR_RETURN(const PagedShapes shapes, CheckTokens(attrs, q, context));
  const Dim& size = shapes.size;
  if (attrs.do_rotary) {
    const Dim most = size - Dim(attrs.rotary_offset);
    TENON_RETURN_IF_ERROR(CheckAngleTables(context, kCos, most));
    if (most.is_number() && most.value() < 0) {
      return InvalidArgument("expected rotary_offset of at most {}, got {}", size,
                             attrs.rotary_offset);
    }
  }
  TENON_ASSIGN_OR_RETURN(const SymbolicShape table, context.InputOfRank(kBlockTable, 2));
  TENON_RETURN_IF_ERROR(CheckElementCount(context, kTokenEnds, table[0] + Dim(1)));
  TENON_RETURN_IF_ERROR(CheckElementCount(context, kPast, table[0]));
  TENON_RETURN_IF_ERROR(CheckElementCount(context, kSlots, q[0]));
  TENON_RETURN_IF_ERROR(CheckElementCount(context, kSinks, Dim(attrs.heads)));
  TENON_RETURN_IF_ERROR(CheckElementCount(context, kQueryNorm, size));
  TENON_RETURN_IF_ERROR(CheckElementCount(context, kKeyNorm, size));
  const Dim value_size = attrs.is_latent() && attrs.value_size != 0 ? Dim(attrs.value_size) : size;
  if (attrs.value_size < 0 ||
      (!attrs.is_latent() && attrs.value_size != 0 && !MayEqual(size, Dim(attrs.value_size))) ||
      (value_size.is_number() && size.is_number() && value_size.value() > size.value())) {
    return InvalidArgument("expected v_head_size of at most {}, got {}", size, attrs.value_size);
  }
  TENON_RETURN_IF_ERROR(context.SetOutput(kKeyCacheOut, shapes.key_cache));
  TENON_RETURN_IF_ERROR(context.SetOutput(kValueCacheOut, shapes.value_cache));
  return context.SetOutput(kY, {q[0], Dim(attrs.heads) * value_size});
}

// A cache for a run's reads and writes.
struct Cache {
  std::byte* data = nullptr;
  size_t heads = 0, size = 0;
  size_t head_bytes = 0;
  std::optional<CacheCoder> coder;  // none: floats are not coded

  std::byte* Row(size_t slot) const { return data + slot * heads * head_bytes; }
  // `values`: the `size` floats of one head.
  void Store(const float* values, size_t slot, size_t head) const {
    std::byte* into = Row(slot) + head * head_bytes;
    coder ? coder->Encode(values, head, into)
          : static_cast<void>(std::memcpy(into, values, head_bytes));
  }
  void Load(size_t slot, float* values) const {
    for (size_t h = 0; h < heads; ++h) {
      const std::byte* from = Row(slot) + h * head_bytes;
      float* head = values + h * size;
      coder ? coder->Decode(from, h, head) : static_cast<void>(std::memcpy(head, from, head_bytes));
    }
  }
};

class PagedRun : GroupedRun {
 public:
  PagedRun(const PagedAttrs& attrs, KernelContext& context)
      : GroupedRun(attrs, context, kCos), attrs_(attrs) {
    const Shape& cache = context.Input(kKeyCache).shape();
    blocks_ = static_cast<size_t>(cache[0]);
    block_size_ = static_cast<size_t>(cache[1]);
    value_size_ =
        attrs.is_latent() && attrs.value_size != 0 ? static_cast<size_t>(attrs.value_size) : size_;
    sequences_ = static_cast<size_t>(context.Input(kBlockTable).shape()[0]);
    table_columns_ = static_cast<size_t>(context.Input(kBlockTable).shape()[1]);
  }

  Status Run() {
    TENON_RETURN_IF_ERROR(CheckSequences());
    size_t most_keys = 0;
    for (size_t b = 0; b < sequences_; ++b) most_keys = std::max(most_keys, Past(b) + Length(b));
    FloatPieces pieces;
    const size_t q_piece = pieces.Add(queries_ * heads_ * size_);
    const size_t new_k_piece = pieces.Add(queries_ * kv_heads_ * size_);
    const bool has_values = !attrs_.is_latent();
    const size_t k_cache_piece = CachePiece(kKeyCache, kKeyCacheOut, &pieces);
    const size_t v_cache_piece = has_values ? CachePiece(kValueCache, kValueCacheOut, &pieces) : 0;
    const size_t k_piece = pieces.Add(most_keys * kv_heads_ * size_);
    const size_t v_piece = has_values ? pieces.Add(most_keys * kv_heads_ * size_) : k_piece;
    size_t task_bytes = 0;
    for (size_t b = 0; b < sequences_; ++b) {
      const Attended sequence(*this, b);
      const DotProductAttention attention(sequence.operands);
      task_bytes = std::max(task_bytes, attention.task_bytes(context_));
    }
    const auto bytes = CheckedAdd(pieces.bytes(), task_bytes);
    auto* memory = static_cast<std::byte*>(context_.Scratch(bytes.value_or(SIZE_MAX)));
    if (memory == nullptr) return RuntimeException("out of memory for {} keys", most_keys);
    auto* floats = reinterpret_cast<float*>(memory);
    edited_q_ = floats + q_piece;
    new_k_ = floats + new_k_piece;
    TENON_ASSIGN_OR_RETURN(key_cache_, CacheOf(kKeyCache, kKeyCacheOut, floats + k_cache_piece));
    if (has_values) {
      TENON_ASSIGN_OR_RETURN(value_cache_,
                             CacheOf(kValueCache, kValueCacheOut, floats + v_cache_piece));
    }
    for (size_t b = 0; b < sequences_; ++b) StoreTokens(b);
    for (size_t b = 0; b < sequences_; ++b) {
      if (Length(b) == 0) continue;
      Gather(b, key_cache_, floats + k_piece);
      if (has_values) Gather(b, value_cache_, floats + v_piece);
      Attended sequence(*this, b);
      sequence.operands.q_data = edited_q_ + First(b) * heads_ * size_;
      sequence.operands.k_data = floats + k_piece;
      sequence.operands.v_data = floats + v_piece;
      const DotProductAttention attention(sequence.operands);
      attention.RunIn(context_, memory + pieces.bytes());
    }
    return OkStatus();
  }

 private:
  const int32_t* Ints(size_t input) const { return context_.Input(input).data<int32_t>(); }
  size_t First(size_t b) const { return static_cast<size_t>(Ints(kTokenEnds)[b]); }
  size_t Length(size_t b) const { return First(b + 1) - First(b); }
  size_t Past(size_t b) const { return static_cast<size_t>(Ints(kPast)[b]); }

  Status CheckSequences() const {
    const int32_t* ends = Ints(kTokenEnds);
    for (size_t b = 0; b <= sequences_; ++b) {
      const int64_t least = b == 0 ? 0 : ends[b - 1];
      const bool is_edge = b == 0 || b == sequences_;
      const int64_t edge = b == 0 ? 0 : static_cast<int64_t>(queries_);
      if (ends[b] >= least && ends[b] <= static_cast<int64_t>(queries_) &&
          (!is_edge || ends[b] == edge)) {
        continue;
      }
      return InvalidArgument("input 5: expected rising numbers from 0 to {}, got {}", queries_,
                             ends[b]);
    }
    const auto capacity = static_cast<int64_t>(table_columns_ * block_size_);
    for (size_t b = 0; b < sequences_; ++b) {
      const int64_t past = Ints(kPast)[b], length = static_cast<int64_t>(Length(b));
      if (past < 0 || past > capacity - length) {
        return InvalidArgument("input 6: expected lengths in [0, {}], got {}", capacity - length,
                               past);
      }
      if (attrs_.do_rotary && past + length > context_.Input(kCos).shape()[0]) {
        return InvalidArgument("cos_cache: expected angles of {} positions, got {}", past + length,
                               context_.Input(kCos).shape());
      }
      for (size_t i = 0; i < CeilDiv(static_cast<size_t>(past + length), block_size_); ++i) {
        const int32_t block = Ints(kBlockTable)[b * table_columns_ + i];
        if (block >= 0 && static_cast<size_t>(block) < blocks_) continue;
        return InvalidArgument("input 7: expected blocks in [0, {}), got {}", blocks_, block);
      }
    }
    for (size_t i = 0; context_.HasInput(kSlots) && i < queries_; ++i) {
      const int32_t slot = Ints(kSlots)[i];
      if (slot >= -1 && slot < static_cast<int64_t>(blocks_ * block_size_)) continue;
      return InvalidArgument("input 10: expected slots in [-1, {}), got {}", blocks_ * block_size_,
                             slot);
    }
    return OkStatus();
  }

  // The place of key `position` of a sequence in the cache.
  size_t SlotOf(size_t b, size_t position) const {
    const int32_t block = Ints(kBlockTable)[b * table_columns_ + position / block_size_];
    return static_cast<size_t>(block) * block_size_ + position % block_size_;
  }

  size_t CachePiece(Input input, Output output, FloatPieces* pieces) const {
    if (context_.HasOutput(output)) return 0;
    return pieces->Add(CeilDiv(context_.Input(input).bytes(), sizeof(float)));
  }

  // The destination of this run's writes: the input itself if the output shares its memory.
  Result<Cache> CacheOf(Input input, Output output, float* piece) {
    const Tensor& from = context_.Input(input);
    void* into = context_.HasOutput(output) ? context_.Output(output).raw() : piece;
    if (from.raw() != into && from.size() != 0) std::memcpy(into, from.raw(), from.bytes());
    Cache cache = {static_cast<std::byte*>(into), kv_heads_, size_, size_ * sizeof(float), {}};
    const bool is_key = input == kKeyCache;
    TENON_ASSIGN_OR_RETURN(
        const CacheCoding coding,
        CacheCodingOf(from.type(), is_key ? attrs_.key_quantization : attrs_.value_quantization,
                      is_key ? attrs_.key_type : attrs_.value_type));
    if (coding == CacheCoding::kNone) return cache;
    cache.coder.emplace(coding, from, &context_.Input(is_key ? kKeyScale : kValueScale), size_);
    cache.head_bytes = cache.coder->row_bytes();
    return cache;
  }

  void Edit(size_t norm, size_t position, float* row) const {
    Normalize(norm, attrs_.norm_epsilon, row);
    if (attrs_.do_rotary) Rotate(rotation_, position, row + attrs_.rotary_offset);
  }

  // Copies queries, keys and values of a sequence's tokens from the inputs. A task stores its heads
  // of all tokens in order: of two tokens in one slot, the later one remains.
  void StoreTokens(size_t b) {
    const size_t row = kv_heads_ * size_;
    context_.threads().ParallelFor(Length(b), 8, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        const size_t token = First(b) + i, position = Past(b) + i;
        float* q = edited_q_ + token * heads_ * size_;
        std::copy_n(q_.data + token * q_.matrices.row_stride, heads_ * size_, q);
        for (size_t h = 0; h < heads_; ++h) Edit(kQueryNorm, position, q + h * size_);
        float* k = new_k_ + token * row;
        std::copy_n(k_.data + token * k_.matrices.row_stride, row, k);
        for (size_t h = 0; h < kv_heads_; ++h) Edit(kKeyNorm, position, k + h * size_);
      }
    });
    const bool has_slots = context_.HasInput(kSlots);
    context_.threads().ParallelFor(kv_heads_, 1, [&](size_t head, size_t) {
      for (size_t i = 0; i < Length(b); ++i) {
        const size_t token = First(b) + i;
        if (has_slots && Ints(kSlots)[token] < 0) continue;
        const size_t slot =
            has_slots ? static_cast<size_t>(Ints(kSlots)[token]) : SlotOf(b, Past(b) + i);
        key_cache_.Store(new_k_ + token * row + head * size_, slot, head);
        if (v_.data == nullptr) continue;
        value_cache_.Store(v_.data + token * v_.matrices.row_stride + head * size_, slot, head);
      }
    });
  }

  // The keys or values of a sequence, one after the other.
  void Gather(size_t b, const Cache& cache, float* into) const {
    const size_t row = kv_heads_ * size_;
    context_.threads().ParallelFor(Past(b) + Length(b), 16, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        cache.Load(SlotOf(b, i), into + i * row);
      }
    });
  }

  // One sequence for attention, without its keys and values.
  struct Attended {
    Attended(const PagedRun& run, size_t b)
        : visible([&run, b](size_t, size_t query) { return run.VisibleKeys(b, query); }) {
      const size_t length = run.Length(b), keys = run.Past(b) + length;
      operands.q = HeadsLast(1, length, run.heads_, run.size_);
      operands.k = HeadsLast(1, keys, run.kv_heads_, run.size_);
      operands.v = operands.k;
      operands.v.size = run.value_size_;
      operands.y = HeadsLast(1, length, run.heads_, run.value_size_);
      operands.y_data =
          run.context_.Output(kY).data<float>() + run.First(b) * run.heads_ * run.value_size_;
      operands.softcap = run.attrs_.softcap;
      operands.scale = run.scale_;
      if (run.context_.HasInput(kSinks)) {
        operands.sinks = run.context_.Input(kSinks).data<float>();
      }
    }
    Attended(const Attended&) = delete;

    std::function<KeyRange(size_t, size_t)> visible;
    AttentionOperands operands = {.visible = visible, .addends = kNothing};
  };
  static const float* Nothing(size_t, size_t, size_t, KeyRange, float*) { return nullptr; }
  static constexpr auto kNothing = &Nothing;

  KeyRange VisibleKeys(size_t b, size_t query) const {
    const size_t position = Past(b) + query;
    const size_t end = attrs_.is_causal ? position + 1 : Past(b) + Length(b);
    return {attrs_.WindowBegin(position), end};
  }

  const PagedAttrs& attrs_;
  size_t sequences_ = 0;  // that queries_, the tokens of all, belong to
  size_t value_size_ = 0;
  size_t blocks_ = 0, block_size_ = 1, table_columns_ = 0;
  float *edited_q_ = nullptr, *new_k_ = nullptr;
  Cache key_cache_, value_cache_;
};

Status RunPaged(const PagedAttrs& attrs, KernelContext& context) {
  return PagedRun(attrs, context).Run();
}

constexpr OpRow kRows[] = {
    Op<InferPaged, RunPaged>("PagedAttention", {.domain = "com.microsoft", .types = kFloat32Only}),
};

}  // namespace

TENON_OP_FAMILY(PagedAttention, kRows);

}  // namespace tenon
