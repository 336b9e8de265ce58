// SparseAttention of com.microsoft: causal attention with a cache, where a query sees only some
// blocks of keys.
#include <algorithm>
#include <limits>

#include "base/arithmetic.h"
#include "ops/attention/grouped_heads.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

enum Input : size_t {
  kQuery,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kBlockRows,  // compressed rows of the visible blocks, one matrix for each layout
  kBlockColumns,
  kTotalLength,  // the longest sequence, new tokens included
  kLengths,      // of each sequence
  kCos,
  kSin
};
enum Output : size_t { kY, kPresentKey, kPresentValue };

struct SparseAttrs : GroupedAttrs {
  int64_t block_size = 64;
  static constexpr auto Fields() {
    return std::tuple_cat(GroupedAttrs::Fields(),
                          std::tuple(Field("sparse_block_size", &SparseAttrs::block_size)));
  }
};

Status CheckBlocks(const SparseAttrs& attrs, const ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape rows, context.InputOfRank(kBlockRows, 2));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape columns, context.InputOfRank(kBlockColumns, 2));
  const bool divides =
      !rows[0].is_number() || (rows[0].value() > 0 && attrs.heads % rows[0].value() == 0);
  if (!divides || rows[1] == Dim(0)) {
    return InvalidArgument("input 5: expected block rows of layouts for {} heads, got {}",
                           attrs.heads, rows);
  }
  if (MayEqual(rows[0], columns[0])) return OkStatus();
  return InvalidArgument("input 6: expected {} layouts, got {}", rows[0], columns);
}

[[gnu::cold]] Status InferSparse(const SparseAttrs& attrs, ShapeContext& context) {
  TENON_RETURN_IF_ERROR(CheckGroups(attrs));
  if (attrs.block_size < 1) {
    return InvalidArgument("expected sparse_block_size >= 1, got {}", attrs.block_size);
  }
  TENON_ASSIGN_OR_RETURN(const SymbolicShape q, context.InputOfRank(kQuery, 3));
  TENON_ASSIGN_OR_RETURN(const Dim size, GroupedHeadSize(attrs, q, q[1], context));
  if (attrs.do_rotary) TENON_RETURN_IF_ERROR(CheckAngleTables(context, kCos, size));
  TENON_RETURN_IF_ERROR(CheckBlocks(attrs, context));
  const Dim kv_heads(attrs.kv_heads);
  Dim past, past_values;
  TENON_RETURN_IF_ERROR(CheckCache(context, kPastKey, q[0], kv_heads, size, &past));
  TENON_RETURN_IF_ERROR(CheckCache(context, kPastValue, q[0], kv_heads, size, &past_values));
  if (!MayEqual(past, past_values)) {
    return InvalidArgument("past_key has {} rows and past_value {}", past, past_values);
  }
  TENON_ASSIGN_OR_RETURN(const SymbolicShape lengths, context.InputOfRank(kLengths, 1));
  if (!MayEqual(lengths[0], q[0])) {
    return InvalidArgument("input 8: expected {} lengths, got {}", q[0], lengths);
  }
  TENON_RETURN_IF_ERROR(context.SetOutput(kPresentKey, {q[0], kv_heads, past, size}));
  TENON_RETURN_IF_ERROR(context.SetOutput(kPresentValue, {q[0], kv_heads, past, size}));
  return context.SetOutput(kY, {q[0], q[1], Dim(attrs.heads) * size});
}

class SparseRun : GroupedRun {
 public:
  SparseRun(const SparseAttrs& attrs, KernelContext& context)
      : GroupedRun(attrs, context, kCos),
        attrs_(attrs),
        block_size_(static_cast<size_t>(attrs.block_size)) {
    capacity_ = static_cast<size_t>(context.Input(kPastKey).shape()[2]);
    layouts_ = static_cast<size_t>(context.Input(kBlockRows).shape()[0]);
    block_rows_ = static_cast<size_t>(context.Input(kBlockRows).shape()[1]) - 1;
    most_blocks_ = static_cast<size_t>(context.Input(kBlockColumns).shape()[1]);
  }

  Status Run() {
    if (context_.Input(kTotalLength).size() != 1) {
      return InvalidArgument("input 7: expected one element, got {}",
                             context_.Input(kTotalLength).shape());
    }
    total_ = context_.Input(kTotalLength).data<int32_t>()[0];
    TENON_RETURN_IF_ERROR(CheckLengths());
    TENON_RETURN_IF_ERROR(CheckBlockIndices());
    const HeadMatrices cache = HeadsFirst(batch_, kv_heads_, capacity_, size_);
    FloatPieces pieces;
    const size_t q_piece = attrs_.do_rotary ? pieces.Add(batch_ * queries_ * heads_ * size_) : 0;
    const auto visible = [&](size_t b, size_t query) { return KeyRange{0, Past(b) + query + 1}; };
    const auto row = [&](size_t b, size_t h, size_t query, KeyRange of, float* buffer) {
      return Addends(h % layouts_, Past(b) + query, of, buffer);
    };
    AttentionOperands in = {.q = q_.matrices,
                            .k = cache,
                            .v = cache,
                            .y = HeadsLast(batch_, queries_, heads_, size_),
                            .q_data = q_.data,
                            .y_data = context_.Output(kY).data<float>(),
                            .scale = scale_,
                            .visible = visible,
                            .addends = row};
    if (attrs_.do_rotary) in.q = in.y;
    in.k.length = in.v.length = static_cast<size_t>(total_);
    const DotProductAttention attention(in);
    auto* memory =
        static_cast<std::byte*>(context_.Scratch(pieces.bytes() + attention.task_bytes(context_)));
    if (memory == nullptr) return RuntimeException("out of memory for {} keys", total_);
    auto* floats = reinterpret_cast<float*>(memory);
    const auto edit = [&](size_t b, size_t, size_t i, float* r) {
      Rotate(rotation_, Past(b) + i, r);
    };
    const RowEdit row_edit = edit;
    const RowEdit* rotate = attrs_.do_rotary ? &row_edit : nullptr;
    if (rotate) {
      const auto first = [](size_t) { return size_t{0}; };
      CopyRows(context_.threads(), q_, HeadsFromLast(), floats + q_piece, first, rotate);
      in.q_data = floats + q_piece;
    }
    in.k_data = FillCache(kPastKey, kPresentKey, k_, cache, rotate);
    in.v_data = FillCache(kPastValue, kPresentValue, v_, cache, nullptr);
    attention.RunIn(context_, memory + pieces.bytes());
    return OkStatus();
  }

 private:
  HeadMatrices HeadsFromLast() const { return HeadsLast(batch_, queries_, heads_, size_); }

  bool is_first() const { return static_cast<int64_t>(queries_) == total_; }
  // Keys of a sequence that are already in the cache.
  size_t Past(size_t b) const {
    if (is_first()) return 0;
    return static_cast<size_t>(context_.Input(kLengths).data<int32_t>()[b]) - queries_;
  }

  Status CheckLengths() const {
    const auto queries = static_cast<int64_t>(queries_);
    const int64_t most = static_cast<int64_t>(std::min(capacity_, block_rows_ * block_size_));
    if (total_ < queries || total_ > most) {
      return InvalidArgument("input 7: expected a total length in [{}, {}], got {}", queries, most,
                             total_);
    }
    // A first run may have fewer tokens in a sequence than the others: padding follows them.
    const int64_t least = is_first() ? 1 : queries;
    for (size_t b = 0; b < batch_; ++b) {
      const int64_t length = context_.Input(kLengths).data<int32_t>()[b];
      if (length >= least && length <= total_) continue;
      return InvalidArgument("input 8: expected lengths in [{}, {}], got {}", least, total_,
                             length);
    }
    if (attrs_.do_rotary &&
        std::min(context_.Input(kCos).shape()[0], context_.Input(kSin).shape()[0]) < total_) {
      return InvalidArgument("cos_cache: expected angles of {} positions, got {}", total_,
                             context_.Input(kCos).shape());
    }
    return OkStatus();
  }

  Status CheckBlockIndices() const {
    for (size_t layout = 0; layout < layouts_; ++layout) {
      const int32_t* rows = context_.Input(kBlockRows).data<int32_t>() + layout * (block_rows_ + 1);
      for (size_t i = 0; i <= block_rows_; ++i) {
        const int32_t least = i == 0 ? 0 : rows[i - 1];
        const int64_t most = i == 0 ? 0 : static_cast<int64_t>(most_blocks_);
        if (rows[i] >= least && rows[i] <= most) continue;
        return InvalidArgument("input 5: expected rising numbers from 0 to at most {}, got {}",
                               most_blocks_, rows[i]);
      }
      TENON_RETURN_IF_ERROR(CheckColumns(layout, static_cast<size_t>(rows[block_rows_])));
    }
    return OkStatus();
  }

  // What follows the `count` columns of a layout is padding.
  Status CheckColumns(size_t layout, size_t count) const {
    const int32_t* columns = context_.Input(kBlockColumns).data<int32_t>() + layout * most_blocks_;
    for (size_t i = 0; i < count; ++i) {
      if (columns[i] >= 0 && columns[i] < static_cast<int64_t>(block_rows_)) continue;
      return InvalidArgument("input 6: expected columns in [0, {}), got {} at {} of layout {}",
                             block_rows_, columns[i], i, layout);
    }
    return OkStatus();
  }

  // 0 for the keys in [0, position] that are visible to the query at `position`.
  const float* Addends(size_t layout, size_t position, KeyRange keys, float* buffer) const {
    std::fill_n(buffer, keys.size(), std::numeric_limits<float>::lowest());
    const int32_t* rows = context_.Input(kBlockRows).data<int32_t>() + layout * (block_rows_ + 1) +
                          position / block_size_;
    const int32_t* columns = context_.Input(kBlockColumns).data<int32_t>() + layout * most_blocks_;
    for (int32_t i = rows[0]; i < rows[1]; ++i) {
      const auto block = static_cast<size_t>(columns[i]);
      if (block > position / block_size_) continue;
      const size_t begin = std::max(block * block_size_, keys.begin);
      const size_t end = std::min((block + 1) * block_size_, keys.end);
      if (begin < end) std::fill(buffer + begin - keys.begin, buffer + end - keys.begin, 0.0f);
    }
    return buffer;
  }

  // Past and new rows; the past is not moved if both share one buffer.
  const float* FillCache(Input past, Output present, const HeadSource& source,
                         const HeadMatrices& cache, const RowEdit* rotate) {
    float* into = context_.Output(present).data<float>();
    const Tensor& old = context_.Input(past);
    if (old.raw() != into) std::copy_n(old.data<float>(), old.size(), into);
    CopyRows(
        context_.threads(), source, cache, into, [&](size_t b) { return Past(b); }, rotate);
    return into;
  }

  const SparseAttrs& attrs_;
  const size_t block_size_;
  size_t capacity_ = 0;  // rows of the past's buffer
  int64_t total_ = 0;    // keys
  size_t layouts_ = 0, block_rows_ = 0, most_blocks_ = 0;
};

Status RunSparse(const SparseAttrs& attrs, KernelContext& context) {
  return SparseRun(attrs, context).Run();
}

constexpr OpRow kRows[] = {
    Op<InferSparse, RunSparse>("SparseAttention",
                               {.domain = "com.microsoft", .types = kFloat32Only}),
};

}  // namespace

TENON_OP_FAMILY(SparseAttention, kRows);

}  // namespace tenon
