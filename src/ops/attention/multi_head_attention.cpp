// MultiHeadAttention and DecoderMaskedMultiHeadAttention of com.microsoft: attention between
// projected heads, with biases, padding and caches.
#include <cmath>

#include "base/arithmetic.h"
#include "ops/attention/head_rows.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// MultiHeadAttention-1 and DecoderMaskedMultiHeadAttention-1, whose inputs are in different orders.
struct InputOrder {
  size_t bias, padding, score_bias, past_key, past_value, past_length, beam_width, indirection;
};
constexpr size_t kQuery = 0, kKey = 1, kValue = 2, kNone = SIZE_MAX;
constexpr InputOrder kMultiHeadOrder = {3, 4, 5, 6, 7, 8, kNone, 9};
constexpr InputOrder kDecoderOrder = {10, 3, 4, 5, 6, 7, 8, 9};
enum Output : size_t { kY, kPresentKey, kPresentValue, kScores };

struct MultiHeadAttrs {
  int64_t heads = 1;
  std::optional<float> scale;
  float filter = -10000;
  bool is_causal = false;
  bool shares_buffer = false;
  static constexpr auto Fields() {
    using A = MultiHeadAttrs;
    return std::tuple(Field("num_heads", &A::heads), Field("scale", &A::scale),
                      Field("mask_filter_value", &A::filter),
                      Field("unidirectional", &A::is_causal),
                      Field("past_present_share_buffer", &A::shares_buffer));
  }
};

// The layout of queries, keys and values in the inputs.
enum class Form {
  kSeparate,   // [batch, length, heads * size] each
  kPacked,     // query [batch, length, heads, 3, size]
  kJoined,     // query [batch, length, 3 * heads * size]
  kPackedKv,   // key [batch, length, heads, 2, size]
  kHeadsFirst  // key and value [batch, heads, length, size]
};

struct Sizes {
  Form form = Form::kSeparate;
  Dim batch, queries, keys, size, value_size;  // of the inputs; keys without the past
};

Result<Dim> SizeOfHead(const Dim& hidden, int64_t heads, size_t input) {
  if (hidden.is_number() && hidden.value() % heads != 0) {
    return InvalidArgument("input {}: expected {} heads of one size, got {}", input, heads, hidden);
  }
  return FloorDiv(hidden, Dim(heads));
}

Result<Sizes> PackedSizes(const SymbolicShape& q, const MultiHeadAttrs& attrs, bool has_keys) {
  if (has_keys) return InvalidArgument("input 0 {} holds keys and values: none expected", q);
  if (q.rank() == 5) {
    if (!MayEqual(q[2], Dim(attrs.heads)) || !MayEqual(q[3], Dim(3))) {
      return InvalidArgument("input 0: expected [batch, length, {}, 3, size], got {}", attrs.heads,
                             q);
    }
    return Sizes{Form::kPacked, q[0], q[1], q[1], q[4], q[4]};
  }
  TENON_ASSIGN_OR_RETURN(const Dim size,
                         SizeOfHead(q[2], CheckedMul<int64_t>(attrs.heads, 3).value_or(1), 0));
  return Sizes{Form::kJoined, q[0], q[1], q[1], size, size};
}

Result<Sizes> SizesOf(const MultiHeadAttrs& attrs, const ShapeContext& context) {
  if (attrs.heads < 1) return InvalidArgument("expected num_heads >= 1, got {}", attrs.heads);
  TENON_ASSIGN_OR_RETURN(const SymbolicShape q, context.Input(kQuery));
  if (q.rank() != 3 && q.rank() != 5) {
    return InvalidArgument("input 0: expected rank 3 or 5, got {}", q);
  }
  const bool has_keys = context.HasInput(kKey);
  if (q.rank() == 5 || !has_keys) return PackedSizes(q, attrs, has_keys);
  TENON_ASSIGN_OR_RETURN(const SymbolicShape k, context.Input(kKey));
  Sizes sizes = {Form::kSeparate, q[0], q[1], {}, {}, {}};
  TENON_ASSIGN_OR_RETURN(sizes.size, SizeOfHead(q[2], attrs.heads, 0));
  const auto mismatch = [&](size_t i, const SymbolicShape& shape) {
    return InvalidArgument("input {}: {} does not fit to {} heads of input 0 {}", i, shape,
                           attrs.heads, q);
  };
  if (k.rank() < 3 || k.rank() > 5 || !MayEqual(k[0], q[0])) return mismatch(kKey, k);
  if (k.rank() == 5) {
    if (context.HasInput(kValue) || !MayEqual(k[2], Dim(attrs.heads)) || !MayEqual(k[3], Dim(2)) ||
        !MayEqual(k[4], sizes.size)) {
      return mismatch(kKey, k);
    }
    sizes.form = Form::kPackedKv;
    sizes.keys = k[1];
    sizes.value_size = sizes.size;
    return sizes;
  }
  TENON_ASSIGN_OR_RETURN(const SymbolicShape v, context.InputOfRank(kValue, k.rank()));
  if (!MayEqual(v[0], q[0])) return mismatch(kValue, v);
  if (k.rank() == 4) {
    if (!MayEqual(k[1], Dim(attrs.heads)) || !MayEqual(k[3], sizes.size)) return mismatch(kKey, k);
    if (!MayEqual(v[1], Dim(attrs.heads)) || !MayEqual(v[2], k[2])) return mismatch(kValue, v);
    sizes.form = Form::kHeadsFirst;
    sizes.keys = k[2];
    sizes.value_size = v[3];
    return sizes;
  }
  if (!MayEqual(k[2], q[2])) return mismatch(kKey, k);
  if (!MayEqual(v[1], k[1])) return mismatch(kValue, v);
  sizes.keys = k[1];
  TENON_ASSIGN_OR_RETURN(sizes.value_size, SizeOfHead(v[2], attrs.heads, kValue));
  return sizes;
}

Status CheckBias(const ShapeContext& context, size_t i, const Dim& size) {
  if (!context.HasInput(i)) return OkStatus();
  const Result<SymbolicShape> bias = context.InputOfRank(i, 1);
  if (!bias) return IsUnknownShape(bias.error()) ? OkStatus() : bias.error();
  if (MayEqual((*bias)[0], size)) return OkStatus();
  return InvalidArgument("input {}: expected [{}], got {}", i, size, *bias);
}

// The element of input `i`, which must be in [0, most]; the shape function has checked that there
// is one.
Result<int64_t> LengthInput(const Tensor& lengths, size_t i, int64_t most) {
  if (lengths.size() < 1) return InvalidArgument("input {}: expected an element, got none", i);
  const int64_t length = lengths.data<int32_t>()[0];
  if (length >= 0 && length <= most) return length;
  return InvalidArgument("input {}: expected a length in [0, {}], got {}", i, most, length);
}

template <const InputOrder& order>
Status InferMultiHead(const MultiHeadAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const Sizes sizes, SizesOf(attrs, context));
  const Dim heads(attrs.heads);
  TENON_RETURN_IF_ERROR(
      CheckBias(context, order.bias, heads * (sizes.size + sizes.size + sizes.value_size)));
  const bool has_past = context.HasInput(order.past_key);
  if (has_past != context.HasInput(order.past_value)) {
    return InvalidArgument("past_key and past_value are used together or not at all");
  }
  Dim past(0), past_values(0);
  TENON_RETURN_IF_ERROR(CheckCache(context, order.past_key, sizes.batch, heads, sizes.size, &past));
  TENON_RETURN_IF_ERROR(
      CheckCache(context, order.past_value, sizes.batch, heads, sizes.value_size, &past_values));
  if (!MayEqual(past, past_values)) {
    return InvalidArgument("past_key has {} rows and past_value {}", past, past_values);
  }
  // A shared cache has room for more rows than it holds.
  const bool is_shared = has_past && context.HasInput(order.past_length);
  Dim keys = past + sizes.keys, present = keys;
  if (is_shared) {
    present = past;
    keys = Dim::Unknown();
    if (const Tensor* lengths = context.InputData(order.past_length); lengths && past.is_number()) {
      TENON_ASSIGN_OR_RETURN(const int64_t length,
                             LengthInput(*lengths, order.past_length, past.value()));
      keys = Dim(length) + sizes.keys;
      if (keys.is_number() && keys.value() > past.value()) {
        return InvalidArgument("{} keys do not fit into a cache of {}", keys, past);
      }
    }
  }
  TENON_RETURN_IF_ERROR(
      CheckPaddingMask(context, order.padding, sizes.batch, sizes.queries, keys, false));
  TENON_RETURN_IF_ERROR(
      CheckScoreBias(context, order.score_bias, sizes.batch, heads, sizes.queries, keys));
  if (context.HasInput(order.indirection)) {
    const Result<SymbolicShape> shape = context.InputOfRank(order.indirection, 3);
    if (!shape && !IsUnknownShape(shape.error())) return shape.error();
  }
  TENON_RETURN_IF_ERROR(context.SetOutput(kPresentKey, {sizes.batch, heads, present, sizes.size}));
  TENON_RETURN_IF_ERROR(
      context.SetOutput(kPresentValue, {sizes.batch, heads, present, sizes.value_size}));
  TENON_RETURN_IF_ERROR(context.SetOutput(kScores, {sizes.batch, heads, sizes.queries, keys},
                                          context.ElementType(kQuery)));
  return context.SetOutput(kY, {sizes.batch, sizes.queries, heads * sizes.value_size});
}

// --- Running ---

struct Sources {
  HeadSource q, k, v;
};

// [batch, length, heads, parts, size], of which `part` is wanted.
HeadSource PartOf(const Tensor& x, size_t part) {
  const Shape& s = x.shape();
  const auto dim = [&](size_t axis) { return static_cast<size_t>(s[axis]); };
  const size_t head = dim(3) * dim(4), row = dim(2) * head;
  return {{dim(0), dim(2), dim(1), dim(4), dim(1) * row, head, row},
          x.data<float>() + part * dim(4)};
}

HeadSource LastAxisOf(const Tensor& x, size_t heads) {
  const auto dim = [&](size_t axis) { return static_cast<size_t>(x.shape()[axis]); };
  return {HeadsLast(dim(0), dim(1), heads, dim(2) / heads), x.data<float>()};
}

HeadSource FirstAxesOf(const Tensor& x) {
  const auto dim = [&](size_t axis) { return static_cast<size_t>(x.shape()[axis]); };
  return {HeadsFirst(dim(0), dim(1), dim(2), dim(3)), x.data<float>()};
}

// [batch, length, 3 * heads * size], of which third `part` is wanted.
HeadSource ThirdOf(const Tensor& x, size_t heads, size_t part) {
  const auto dim = [&](size_t axis) { return static_cast<size_t>(x.shape()[axis]); };
  const size_t size = dim(2) / 3 / heads;
  HeadSource source = {HeadsLast(dim(0), dim(1), heads, size),
                       x.data<float>() + part * heads * size};
  source.matrices.row_stride = dim(2);
  source.matrices.batch_stride = dim(1) * dim(2);
  return source;
}

Sources SourcesOf(const KernelContext& context, size_t heads) {
  const Tensor& q = context.Input(kQuery);
  if (q.rank() == 5) return {PartOf(q, 0), PartOf(q, 1), PartOf(q, 2)};
  if (!context.HasInput(kKey)) {
    return {ThirdOf(q, heads, 0), ThirdOf(q, heads, 1), ThirdOf(q, heads, 2)};
  }
  const Tensor& k = context.Input(kKey);
  if (k.rank() == 5) return {LastAxisOf(q, heads), PartOf(k, 0), PartOf(k, 1)};
  const Tensor& v = context.Input(kValue);
  if (k.rank() == 4) return {LastAxisOf(q, heads), FirstAxesOf(k), FirstAxesOf(v)};
  return {LastAxisOf(q, heads), LastAxisOf(k, heads), LastAxisOf(v, heads)};
}

template <const InputOrder& order>
class MultiHeadRun {
 public:
  MultiHeadRun(const MultiHeadAttrs& attrs, KernelContext& context)
      : attrs_(attrs),
        context_(context),
        heads_(static_cast<size_t>(attrs.heads)),
        in_(SourcesOf(context, heads_)) {
    const bool is_heads_first = context.HasInput(kKey) && context.Input(kKey).rank() == 4;
    if (context.HasInput(order.bias)) {
      const float* bias = context.Input(order.bias).template data<float>();
      const size_t hidden = heads_ * in_.q.matrices.size;
      in_.q.bias = bias;
      if (!is_heads_first) {
        in_.k.bias = bias + hidden;
        in_.v.bias = bias + 2 * hidden;
      }
    }
    if (context.HasInput(order.past_key)) {
      past_ = static_cast<size_t>(context.Input(order.past_key).shape()[2]);
      if (context.HasInput(order.past_length)) {
        past_ = static_cast<size_t>(context.Input(order.past_length).template data<int32_t>()[0]);
      }
    }
    keys_ = past_ + in_.k.matrices.length;
  }

  Status Run() {
    FloatPieces pieces;
    const HeadMatrices& q = in_.q.matrices;
    const size_t q_piece = in_.q.bias ? pieces.Add(q.batch * q.length * q.heads * q.size) : 0;
    const Side sides[] = {SideOf(kPresentKey, order.past_key, in_.k, &pieces),
                          SideOf(kPresentValue, order.past_value, in_.v, &pieces)};
    const float filter = attrs_.filter;
    ScoreAddends addends(OptionalInput(order.padding), OptionalInput(order.score_bias), filter,
                         {q.batch, heads_, q.length, keys_, past_});
    const size_t table = pieces.Add(addends.table_floats());

    const auto visible = [&](size_t, size_t query) {
      const size_t end = attrs_.is_causal ? std::min(keys_, past_ + query + 1) : keys_;
      return KeyRange{0, end};
    };
    const auto row = [&](size_t b, size_t h, size_t query, KeyRange of, float* buffer) {
      return addends.Row(b, h, query, of, buffer);
    };
    const Tensor& y = context_.Output(kY);
    AttentionOperands operands = {.q = q,
                                  .k = sides[0].read,
                                  .v = sides[1].read,
                                  .y = HeadsLast(q.batch, q.length, heads_, in_.v.matrices.size),
                                  .q_data = in_.q.data,
                                  .y_data = context_.Output(kY).template data<float>(),
                                  .visible = visible,
                                  .addends = row,
                                  .scores_mode = ScoresMode::kMasked};
    if (y.size() == 0 && !context_.HasOutput(kPresentKey)) return OkStatus();
    operands.k.length = operands.v.length = keys_;
    if (in_.q.bias) operands.q = HeadsLast(q.batch, q.length, heads_, q.size);
    operands.scale = attrs_.scale.value_or(1 / std::sqrt(static_cast<float>(q.size)));
    if (context_.HasOutput(kScores)) {
      operands.scores = context_.Output(kScores).template data<float>();
    }
    const DotProductAttention attention(operands);
    auto* memory =
        static_cast<std::byte*>(context_.Scratch(pieces.bytes() + attention.task_bytes(context_)));
    if (memory == nullptr) return RuntimeException("out of memory for {} keys", keys_);
    auto* floats = reinterpret_cast<float*>(memory);
    if (in_.q.bias) {
      CopyRows(context_.threads(), in_.q, operands.q, floats + q_piece, [](size_t) { return 0; });
      operands.q_data = floats + q_piece;
    }
    TENON_ASSIGN_OR_RETURN(operands.k_data, Fill(sides[0], in_.k, floats));
    TENON_ASSIGN_OR_RETURN(operands.v_data, Fill(sides[1], in_.v, floats));
    addends.Prepare(floats + table);
    attention.RunIn(context_, memory + pieces.bytes());
    return OkStatus();
  }

 private:
  // The position of all keys, or of all values.
  struct Side {
    HeadMatrices written, read;
    const Tensor* past = nullptr;
    float* present = nullptr;  // null: not wanted
    size_t piece = 0;          // where there is no present
    size_t redirected = 0;     // a piece for keys out of several beams
    bool is_copied = false;
  };

  const Tensor* OptionalInput(size_t i) const {
    return context_.HasInput(i) ? &context_.Input(i) : nullptr;
  }

  Side SideOf(Output present, size_t past, const HeadSource& source, FloatPieces* pieces) {
    Side side;
    side.past = OptionalInput(past);
    const HeadMatrices& m = source.matrices;
    const HeadMatrices joined = HeadsFirst(m.batch, m.heads, keys_, m.size);
    const bool is_redirected = context_.HasInput(order.indirection);
    if (context_.HasOutput(present)) {
      Tensor& y = context_.Output(present);
      side.present = y.data<float>();
      side.written = HeadsFirst(m.batch, m.heads, static_cast<size_t>(y.shape()[2]), m.size);
    } else if (side.past || source.bias || is_redirected) {
      side.piece = pieces->Add(joined.batch * joined.batch_stride);
      side.written = joined;
    }
    side.is_copied = side.present || side.past || source.bias || is_redirected;
    side.read = side.is_copied ? side.written : m;
    if (is_redirected) {
      side.redirected = pieces->Add(joined.batch * joined.batch_stride);
      side.read = joined;
    }
    return side;
  }

  Result<const float*> Fill(const Side& side, const HeadSource& source, float* floats) {
    if (!side.is_copied) return source.data;
    float* into = side.present ? side.present : floats + side.piece;
    if (side.past) {
      const Shape& s = side.past->shape();
      const HeadMatrices& m = source.matrices;
      const HeadMatrices cache = HeadsFirst(m.batch, m.heads, static_cast<size_t>(s[2]), m.size);
      // The present also keeps the rows of a shared cache after the past.
      const size_t rows = side.present ? std::min(cache.length, side.written.length) : past_;
      CopyCache(context_.threads(), cache, side.past->template data<float>(), side.written, into,
                [&](size_t) { return rows; });
    }
    CopyRows(context_.threads(), source, side.written, into, [&](size_t) { return past_; });
    if (!context_.HasInput(order.indirection)) return into;
    return Redirect(side, source.matrices, into, floats + side.redirected);
  }

  // Takes each key of the past from the beam that it came from. Keys of the same beam, and the new
  // ones, are not moved.
  Result<const float*> Redirect(const Side& side, const HeadMatrices& m, const float* from,
                                float* into) {
    const Tensor& indirection = context_.Input(order.indirection);
    const Shape& s = indirection.shape();
    int64_t beams = s[1];
    if (context_.HasInput(order.beam_width)) {
      const Tensor& width = context_.Input(order.beam_width);
      if (width.size() > 0) beams = width.data<int32_t>()[0];
    }
    const auto beam_count = static_cast<size_t>(std::max<int64_t>(beams, 0));
    if (beams < 1 || beams != s[1] || static_cast<size_t>(s[0]) * beam_count != m.batch ||
        static_cast<size_t>(s[2]) < past_) {
      return InvalidArgument("cache_indirection {} does not fit to a batch of {} with {} beams", s,
                             m.batch, beams);
    }
    const auto length = static_cast<size_t>(s[2]);
    const int32_t* sources = indirection.data<int32_t>();
    for (size_t b = 0; b < m.batch; ++b) {
      for (size_t i = 0; i < past_; ++i) {
        const int32_t beam = sources[b * length + i];
        if (beam >= 0 && beam < beams) continue;
        return InvalidArgument("cache_indirection: expected beams in [0, {}), got {}", beams, beam);
      }
    }
    const HeadMatrices& all = side.written;
    for (size_t b = 0; b < m.batch; ++b) {
      const size_t first = b / beam_count * beam_count;
      for (size_t i = 0; i < keys_; ++i) {
        const size_t source = i < past_ ? first + static_cast<size_t>(sources[b * length + i]) : b;
        for (size_t h = 0; h < m.heads; ++h) {
          std::copy_n(from + all.Offset(source, h) + i * all.row_stride, m.size,
                      into + ((b * m.heads + h) * keys_ + i) * m.size);
        }
      }
    }
    return into;
  }

  const MultiHeadAttrs& attrs_;
  KernelContext& context_;
  const size_t heads_;
  Sources in_;
  size_t past_ = 0, keys_ = 0;
};

template <const InputOrder& order>
Status RunMultiHead(const MultiHeadAttrs& attrs, KernelContext& context) {
  return MultiHeadRun<order>(attrs, context).Run();
}

constexpr const char* kMicrosoft = "com.microsoft";

constexpr OpRow kRows[] = {
    Op<InferMultiHead<kMultiHeadOrder>, RunMultiHead<kMultiHeadOrder>>(
        "MultiHeadAttention", {.domain = kMicrosoft, .types = kFloat32Only}),
    Op<InferMultiHead<kDecoderOrder>, RunMultiHead<kDecoderOrder>>(
        "DecoderMaskedMultiHeadAttention", {.domain = kMicrosoft, .types = kFloat32Only}),
};

}  // namespace

TENON_OP_FAMILY(MultiHeadAttention, kRows);

}  // namespace tenon
