// NGramHashMapping and VarlenNGramHashMapping of com.microsoft: the rows of an embedding table for
// n-grams of tokens.
#include <algorithm>
#include <limits>

#include "base/arithmetic.h"
#include "ops/framework/element.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

struct HashAttrs {
  int64_t longest = 2;  // n-grams have 2 to so many tokens
  int64_t heads = 1;    // for each length
  int64_t pad = 0;
  bool resets = false;
  int64_t captured = 0;  // room for states in `state_update`
  static constexpr auto Fields() {
    using A = HashAttrs;
    return std::tuple(Field("max_ngram_size", &A::longest), Field("n_head_per_ngram", &A::heads),
                      Field("pad_id", &A::pad), Field("reset_on_eos", &A::resets),
                      Field("state_update_capacity", &A::captured));
  }
};

// The positions of the inputs in both operators; kNone if an operator lacks one.
constexpr size_t kNone = SIZE_MAX;
struct HashInputs {
  size_t past, offsets, eos, segments;
  size_t ends, past_segments, captures;
};
constexpr HashInputs kPadded = {3, 4, 5, 6, kNone, kNone, kNone};
constexpr HashInputs kPacked = {4, 5, 6, 7, 3, 8, 9};
constexpr size_t kIds = 0, kMultipliers = 1, kVocabularies = 2;                 // inputs
constexpr size_t kHashes = 0, kPresent = 1, kPresentSegments = 2, kStates = 3;  // outputs

// No table has more columns than int64_t can count.
constexpr int64_t kMaxColumns = int64_t{1} << 31;

Status CheckAttrs(const HashAttrs& attrs) {
  if (attrs.longest < 2) {
    return InvalidArgument("expected max_ngram_size >= 2, got {}", attrs.longest);
  }
  if (attrs.heads < 1) {
    return InvalidArgument("expected n_head_per_ngram >= 1, got {}", attrs.heads);
  }
  const auto columns = CheckedMul(attrs.longest - 1, attrs.heads);
  if (!columns || *columns > kMaxColumns) {
    return InvalidArgument("max_ngram_size {} and n_head_per_ngram {} are too large", attrs.longest,
                           attrs.heads);
  }
  if (attrs.captured < 0 || attrs.captured > 8) {
    return InvalidArgument("expected state_update_capacity in [0, 8], got {}", attrs.captured);
  }
  return OkStatus();
}

template <const HashInputs& inputs>
[[gnu::cold]] Status InferHash(const HashAttrs& attrs, ShapeContext& context) {
  constexpr bool kIsPacked = inputs.ends != kNone;
  TENON_RETURN_IF_ERROR(CheckAttrs(attrs));
  TENON_ASSIGN_OR_RETURN(SymbolicShape ids, context.InputOfRank(kIds, kIsPacked ? 1 : 2));
  const Dim history(attrs.longest - 1), columns = history * Dim(attrs.heads);
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kVocabularies, {columns}));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, inputs.offsets, {columns}));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, inputs.eos, {}));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, inputs.segments, ids));
  Dim batch = ids[0];
  if constexpr (kIsPacked) {
    if (context.HasInput(inputs.captures) != (attrs.captured > 0)) {
      return InvalidArgument("input {} and a positive state_update_capacity go together",
                             inputs.captures);
    }
    if (context.HasOutput(kPresentSegments) && !context.HasInput(inputs.segments)) {
      return InvalidArgument("output {} needs input {}, which is left out", kPresentSegments,
                             inputs.segments);
    }
    TENON_ASSIGN_OR_RETURN(const SymbolicShape ends, context.InputOfRank(inputs.ends, 1));
    if (ends[0].is_number() && ends[0].value() < 1) {
      return InvalidArgument("input {}: expected at least one element, got {}", inputs.ends, ends);
    }
    batch = ends[0] - Dim(1);
    TENON_RETURN_IF_ERROR(CheckInputShape(context, inputs.past_segments, {batch, history}));
    TENON_RETURN_IF_ERROR(CheckInputShape(context, inputs.captures, {batch}));
    TENON_RETURN_IF_ERROR(context.SetOutput(kPresentSegments, {batch, history}));
    TENON_RETURN_IF_ERROR(context.SetOutput(kStates, {batch, Dim(attrs.captured), history}));
  }
  TENON_RETURN_IF_ERROR(CheckInputShape(context, inputs.past, {batch, history}));
  TENON_RETURN_IF_ERROR(context.SetOutput(kPresent, {batch, history}));
  ids.Append(columns);
  TENON_RETURN_IF_ERROR(context.SetOutput(kHashes, std::move(ids)));
  const Result<SymbolicShape> multipliers = context.InputOfRank(kMultipliers, 1);
  if (!multipliers) {
    return IsUnknownShape(multipliers.error()) ? OkStatus() : multipliers.error();
  }
  if ((*multipliers)[0].is_number() && (*multipliers)[0].value() < attrs.longest) {
    return InvalidArgument("input {}: expected at least {} elements, got {}", kMultipliers,
                           attrs.longest, *multipliers);
  }
  return OkStatus();
}

// One sequence of tokens after `history` earlier ones; null parts are unknown. Positions are
// counted from the first token on, so earlier ones are negative.
template <class T>
struct Sequence {
  const T* ids;
  int64_t length, history;
  const T* past;                 // [history]
  const int32_t* segments;       // [length]
  const int32_t* past_segments;  // [history]
  T fill;                        // the tokens before all known ones

  T At(int64_t position) const {
    if (position >= 0) return ids[position];
    return past && position >= -history ? past[history + position] : fill;
  }
  // Unknown earlier tokens belong to the first segment.
  int32_t SegmentAt(int64_t position) const {
    if (position >= 0) return segments[position];
    return past_segments && position >= -history ? past_segments[history + position] : segments[0];
  }
  // Whether a segment ends right before `position`.
  bool BeginsSegment(int64_t position) const {
    return segments && SegmentAt(position) != SegmentAt(position - 1);
  }
};

template <class T>
struct Hash {
  const T* multipliers;
  const T* vocabularies;
  const T* offsets;  // may be null
  const T* eos;      // null: no resets
  int64_t longest, heads;

  // The columns of the token at `position`.
  void Run(const Sequence<T>& sequence, int64_t position, T* columns) const {
    using U = std::make_unsigned_t<T>;  // products and sums wrap around
    U mix = static_cast<U>(sequence.At(position)) * static_cast<U>(multipliers[0]);
    bool is_cut = false;
    for (int64_t back = 1; back < longest; ++back) {
      T id = sequence.At(position - back);
      is_cut = is_cut || sequence.BeginsSegment(position - back + 1) || (eos && id == *eos);
      if (is_cut) id = sequence.fill;
      mix ^= static_cast<U>(id) * static_cast<U>(multipliers[back]);
      for (int64_t head = 0; head < heads; ++head) {
        const int64_t column = (back - 1) * heads + head;
        T row = static_cast<T>(mix) % vocabularies[column];
        if (row < 0) row += vocabularies[column];
        if (offsets) row = static_cast<T>(static_cast<U>(row) + static_cast<U>(offsets[column]));
        columns[column] = row;
      }
    }
  }
};

// The begin and the end of sequence b in a packed batch.
Status CheckEnds(const Tensor& ends, int64_t tokens) {
  const auto values = ends.values<int32_t>();
  bool fits = values.front() == 0 && values.back() == tokens;
  for (size_t i = 1; fits && i < values.size(); ++i) fits = values[i] > values[i - 1];
  if (fits) return OkStatus();
  return InvalidArgument("input 3: expected values that rise from 0 to {}, one a sequence", tokens);
}

template <const HashInputs& inputs, class T>
Status RunHashOf(const HashAttrs& attrs, KernelContext& context) {
  const auto data = [&]<class E>(size_t i, E) -> const E* {
    return i != kNone && context.HasInput(i) ? context.Input(i).data<E>() : nullptr;
  };
  const Tensor& ids = context.Input(kIds);
  const T* vocabularies = data(kVocabularies, T());
  const int64_t columns = (attrs.longest - 1) * attrs.heads;
  for (int64_t i = 0; i < columns; ++i) {
    if (vocabularies[i] > 0) continue;
    return InvalidArgument("input {}: expected positive sizes, got {}", size_t{kVocabularies},
                           vocabularies[i]);
  }
  const int32_t* ends = nullptr;
  int64_t batch = ids.shape()[0], length = ids.shape().back();
  if constexpr (inputs.ends != kNone) {
    TENON_RETURN_IF_ERROR(CheckEnds(context.Input(inputs.ends), ids.size()));
    ends = data(inputs.ends, int32_t());
    batch = context.Input(inputs.ends).size() - 1;
  }
  const T* eos = data(inputs.eos, T());
  const T fill = eos ? *eos : static_cast<T>(attrs.pad);
  const Hash<T> hash = {data(kMultipliers, T()),      vocabularies,  data(inputs.offsets, T()),
                        attrs.resets ? eos : nullptr, attrs.longest, attrs.heads};
  const int64_t history = attrs.longest - 1;
  const T* past = data(inputs.past, T());
  const int32_t* segments = data(inputs.segments, int32_t());
  const int32_t* past_segments = data(inputs.past_segments, int32_t());
  const int32_t* captures = data(inputs.captures, int32_t());
  context.threads().ParallelFor(static_cast<size_t>(batch), 1, [&](size_t begin, size_t end) {
    for (auto b = static_cast<int64_t>(begin); b < static_cast<int64_t>(end); ++b) {
      const int64_t first = ends ? ends[b] : b * length;
      const Sequence<T> sequence = {ids.data<T>() + first,
                                    ends ? ends[b + 1] - first : length,
                                    history,
                                    past ? past + b * history : nullptr,
                                    segments ? segments + first : nullptr,
                                    past_segments ? past_segments + b * history : nullptr,
                                    fill};
      for (int64_t i = 0; i < sequence.length; ++i) {
        hash.Run(sequence, i, context.Output(kHashes).data<T>() + (first + i) * columns);
      }
      for (int64_t i = 0; i < history; ++i) {
        const int64_t position = sequence.length - history + i;
        if (context.HasOutput(kPresent)) {
          context.Output(kPresent).data<T>()[b * history + i] = sequence.At(position);
        }
        if (context.HasOutput(kPresentSegments)) {
          context.Output(kPresentSegments).data<int32_t>()[b * history + i] =
              sequence.SegmentAt(position);
        }
      }
      if (!captures || !context.HasOutput(kStates)) continue;
      T* states = context.Output(kStates).data<T>() + b * attrs.captured * history;
      const int64_t count = std::min<int64_t>(captures[b], sequence.length);
      for (int64_t state = 0; state < attrs.captured; ++state) {
        for (int64_t i = 0; i < history; ++i) {
          *states++ =
              state < count ? sequence.At(state + 1 - history + i) : static_cast<T>(attrs.pad);
        }
      }
    }
  });
  return OkStatus();
}

template <const HashInputs& inputs>
Status RunHash(const HashAttrs& attrs, KernelContext& context) {
  const bool is_narrow = context.Input(kIds).type() == DataType::kInt32;
  if (is_narrow && attrs.pad != static_cast<int32_t>(attrs.pad)) {
    return InvalidArgument("expected pad_id of type int32, got {}", attrs.pad);
  }
  return is_narrow ? RunHashOf<inputs, int32_t>(attrs, context)
                   : RunHashOf<inputs, int64_t>(attrs, context);
}

constexpr OpRow kRows[] = {
    Op<InferHash<kPadded>, RunHash<kPadded>>("NGramHashMapping",
                                             {.domain = "com.microsoft", .types = kIndices}),
    Op<InferHash<kPacked>, RunHash<kPacked>>("VarlenNGramHashMapping",
                                             {.domain = "com.microsoft", .types = kIndices}),
};

}  // namespace

TENON_OP_FAMILY(NGramHash, kRows);

}  // namespace tenon
