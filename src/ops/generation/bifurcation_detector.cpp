// BifurcationDetector of com.microsoft: finds how many guessed tokens speculative decoding keeps,
// and where the source continues.
#include <algorithm>

#include "ops/framework/op_row.h"

namespace tenon {
namespace {

enum Input : size_t { kSource, kCurrent, kMatch, kPredicted };

struct DetectorAttrs {
  int64_t longest = 3, shortest = 1;  // suffixes that are searched
  static constexpr auto Fields() {
    return std::tuple(Field("max_ngram_size", &DetectorAttrs::longest),
                      Field("min_ngram_size", &DetectorAttrs::shortest));
  }
};

Status InferDetector(const DetectorAttrs& attrs, ShapeContext& context) {
  if (attrs.shortest < 1 || attrs.longest < attrs.shortest) {
    return InvalidArgument("expected 0 < min_ngram_size <= max_ngram_size, got {} and {}",
                           attrs.shortest, attrs.longest);
  }
  for (const size_t i : {kSource, kCurrent, kPredicted}) {
    if (!context.HasInput(i)) continue;
    const Result<SymbolicShape> tokens = context.InputOfRank(i, 1);
    if (!tokens && !IsUnknownShape(tokens.error())) return tokens.error();
  }
  TENON_RETURN_IF_ERROR(context.SetOutput(0, {Dim::Unknown()}));
  return context.SetOutput(1, {});
}

using Tokens = std::span<const int64_t>;

// How many of the predicted tokens are kept: those that equal the source from `match` on, and the
// first that differs.
Result<size_t> KeptOf(Tokens source, int64_t match, Tokens predicted) {
  const auto length = static_cast<int64_t>(source.size());
  if (match < 0 || match > length) {
    return InvalidArgument("input 2: expected a position in [0, {}], got {}", length, match);
  }
  const Tokens rest = source.subspan(static_cast<size_t>(match));
  if (predicted.size() != rest.size() + 1) {
    return InvalidArgument("input 3: expected {} tokens, got {}", rest.size() + 1,
                           predicted.size());
  }
  const auto differs = std::mismatch(rest.begin(), rest.end(), predicted.begin()).first;
  return static_cast<size_t>(differs - rest.begin()) + 1;
}

// The position after the only occurrence in the source of a suffix of the tokens, the shortest one
// that occurs once; -1 if there is none.
int64_t FindSuffix(const DetectorAttrs& attrs, Tokens source, Tokens tokens) {
  const auto longest = std::min(attrs.longest, static_cast<int64_t>(tokens.size()));
  for (int64_t n = attrs.shortest; n <= longest; ++n) {
    const Tokens suffix = tokens.last(static_cast<size_t>(n));
    const auto found = std::search(source.begin(), source.end(), suffix.begin(), suffix.end());
    // A longer suffix does not occur either.
    if (found == source.end()) return -1;
    const auto again = std::search(found + 1, source.end(), suffix.begin(), suffix.end());
    if (again == source.end()) return (found - source.begin()) + n;
  }
  return -1;
}

Status RunDetector(const DetectorAttrs& attrs, KernelContext& context) {
  const Tokens source = context.Input(kSource).values<int64_t>();
  const Tokens current = context.Input(kCurrent).values<int64_t>();
  if (context.Input(kMatch).size() != 1) {
    return InvalidArgument("input 2: expected one position, got {}", context.Input(kMatch).shape());
  }
  Tokens kept;
  if (context.HasInput(kPredicted)) {
    const Tokens predicted = context.Input(kPredicted).values<int64_t>();
    TENON_ASSIGN_OR_RETURN(const size_t count,
                           KeptOf(source, context.Input(kMatch).data<int64_t>()[0], predicted));
    kept = predicted.first(count);
  }
  const auto size = static_cast<int64_t>(current.size() + kept.size());
  TENON_ASSIGN_OR_RETURN(Tensor* const tokens, context.AllocateOutput(0, DataType::kInt64, {size}));
  std::copy(kept.begin(), kept.end(),
            std::copy(current.begin(), current.end(), tokens->data<int64_t>()));
  TENON_ASSIGN_OR_RETURN(Tensor* const match, context.AllocateOutput(1, DataType::kInt64, {}));
  *match->data<int64_t>() = FindSuffix(attrs, source, tokens->values<int64_t>());
  return OkStatus();
}

constexpr OpRow kRows[] = {
    Op<InferDetector, RunDetector>("BifurcationDetector", {.domain = "com.microsoft",
                                                           .types = {DataType::kInt64},
                                                           .traits = {.allocates_outputs = true}}),
};

}  // namespace

TENON_OP_FAMILY(BifurcationDetector, kRows);

}  // namespace tenon
