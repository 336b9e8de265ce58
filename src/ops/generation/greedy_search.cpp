// GreedySearch and Sampling of com.microsoft: append the token with the greatest score, or one
// drawn from the most probable.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/framework/stateful_kernel.h"
#include "ops/generation/generation.h"
#include "ops/generation/token_model.h"

namespace tenon {
namespace {

enum GreedyInput : size_t {
  kIds,
  kMaxLength,
  kMinLength,
  kRepetitionPenalty,
  kVocabMask,
  kPrefixVocabMask,
  kAttentionMask,
  kPresenceMask,
  kSeed,
};

struct GreedyAttrs : GenerationAttrs {
  static constexpr auto Fields() { return FieldsOf<GreedyAttrs>(); }
};

struct SamplingAttrs : GenerationAttrs {
  bool is_descending = false;
  float filter_value = -1e20f, temperature = 1, top_p = 0, presence_penalty = 0;
  int64_t kept = 0;  // tokens that no filter takes
  static constexpr auto Fields() {
    using A = SamplingAttrs;
    return std::tuple_cat(
        FieldsOf<A>(),
        std::tuple(Field("custom", &A::is_descending), Field("filter_value", &A::filter_value),
                   Field("temperature", &A::temperature), Field("top_p", &A::top_p),
                   Field("presence_penalty", &A::presence_penalty),
                   Field("min_tokens_to_keep", &A::kept)));
  }
};

Status InferTokens(ShapeContext& context) {
  for (const std::string_view graph : {"encoder", "init_decoder", "decoder"}) {
    if (context.node().FindAttribute(graph) == nullptr) continue;
    TENON_RETURN_IF_ERROR(context.InferSubgraph(graph, {}));
  }
  return context.SetOutput(0, {Dim::Unknown(), Dim::Unknown()}, DataType::kInt32);
}

Status InferGreedy(const GreedyAttrs&, ShapeContext& context) { return InferTokens(context); }

Status InferSampling(const SamplingAttrs&, ShapeContext& context) {
  TENON_RETURN_IF_ERROR(InferTokens(context));
  if (context.output_count() < 2) return OkStatus();
  return context.SetOutput(1, {Dim::Unknown(), Dim::Unknown()}, DataType::kFloat);
}

// The multiplicative generator of C++'s std::minstd_rand0, which ONNX Runtime uses.
class MinimalRandom {
 public:
  explicit MinimalRandom(uint64_t seed) : state_(seed % kModulus == 0 ? 1 : seed % kModulus) {}
  // In [0, 1), from two draws.
  double Uniform() {
    constexpr double kRange = static_cast<double>(kModulus - 1);
    const double low = Draw();
    return (low + Draw() * kRange) / (kRange * kRange);
  }

 private:
  static constexpr uint64_t kModulus = 2147483647;
  double Draw() {
    state_ = state_ * 16807 % kModulus;
    return static_cast<double>(state_ - 1);
  }
  uint64_t state_;
};

class GreedySettings {
 public:
  Status Prepare(const GenerationAttrs& attrs, const KernelInfo& info) {
    TENON_RETURN_IF_ERROR(attrs.Check());
    if (attrs.model_type == 0) {
      TENON_ASSIGN_OR_RETURN(gpt_, GptGraphs::Find(info.node()));
    } else if (attrs.model_type == 1) {
      TENON_ASSIGN_OR_RETURN(pair_, EncoderDecoderGraphs::Find(info.node(), false));
    } else {
      return InvalidArgument("attribute 'model_type': expected 0 or 1, got {}", attrs.model_type);
    }
    return OkStatus();
  }

  // Appends the result of `choose(scores, row)` to each sequence, until all have ended or are full,
  // and writes output 0.
  template <class Prepare, class Choose>
  Status Run(const GenerationAttrs& attrs, KernelContext& context, const Prepare& prepare,
             const Choose& choose) const {
    const Tensor& ids = context.Input(kIds);
    if (ids.type() != DataType::kInt32 || ids.rank() != 2 || ids.shape()[1] < 1) {
      return InvalidArgument("input 0: expected tokens [batch, length], got shape {}", ids.shape());
    }
    const auto batch = static_cast<size_t>(ids.shape()[0]);
    Tensor start = ids;
    if (pair_) {
      TENON_ASSIGN_OR_RETURN(start, StartTokens(ids.shape()[0], attrs.decoder_start_token));
    }
    TENON_ASSIGN_OR_RETURN(const int64_t most, IntegerInput(context, kMaxLength, kMostTokens,
                                                            start.shape()[1] + 1, kMostTokens));
    const Tensor* mask = context.input_count() > kAttentionMask && context.HasInput(kAttentionMask)
                             ? &context.Input(kAttentionMask)
                             : nullptr;
    if (mask && (mask->type() != DataType::kInt32 || !(mask->shape() == ids.shape()))) {
      return InvalidArgument("input {}: expected shape {}, got {}", size_t{kAttentionMask},
                             ids.shape(), mask->shape());
    }
    const auto pad = static_cast<int32_t>(attrs.pad_token);
    const auto room = static_cast<size_t>(most);
    TENON_ASSIGN_OR_RETURN(const auto model,
                           pair_ ? StartEncoderDecoder(*pair_, ids, mask, start, 1, room, pad)
                                 : StartGpt(*gpt_, ids, mask, 1, pad));
    TokenSequences sequences({start.data<int32_t>(), static_cast<size_t>(start.size())}, batch, 1,
                             room);
    const size_t first = sequences.length();
    TokenRules rules;
    std::vector<float> scores;
    std::vector<int32_t> next(batch);
    std::vector<bool> has_ended(batch, false);
    size_t vocabulary = 0;
    for (size_t length = first; length < room; ++length) {
      if (length > first) TENON_RETURN_IF_ERROR(model->Advance({}, sequences));
      TENON_ASSIGN_OR_RETURN(const Tensor logits, model->Run(context));
      if (logits.rank() != 3 || static_cast<size_t>(logits.shape()[0]) != batch) {
        return InvalidArgument("expected logits of {} rows, got {}", batch, logits.shape());
      }
      if (length == first) {
        vocabulary =
            static_cast<size_t>(attrs.vocabulary > 0 ? attrs.vocabulary : logits.shape()[2]);
        if (vocabulary == 0) return InvalidArgument("expected a vocabulary, got none");
        TENON_RETURN_IF_ERROR(SetRules(attrs, batch, vocabulary, context, rules));
        TENON_RETURN_IF_ERROR(prepare(batch, vocabulary, rules));
      }
      TENON_RETURN_IF_ERROR(LastLogits(logits, 1, vocabulary, scores));
      rules.Apply(sequences, batch, length == first, vocabulary, scores.data());
      for (size_t row = 0; row < batch; ++row) {
        const std::span<float> row_scores(scores.data() + row * vocabulary, vocabulary);
        const int32_t token = choose(row_scores, row);
        has_ended[row] = has_ended[row] || token == attrs.eos_token;
        next[row] = has_ended[row] ? pad : token;
      }
      sequences.Append(next);
      if (std::find(has_ended.begin(), has_ended.end(), false) == has_ended.end()) break;
    }
    TENON_ASSIGN_OR_RETURN(Tensor * tokens,
                           context.AllocateOutput(0, DataType::kInt32, {ids.shape()[0], most}));
    std::fill_n(tokens->data<int32_t>(), tokens->size(), pad);
    for (size_t row = 0; row < batch; ++row) {
      const auto sequence = sequences.Row(row);
      std::copy(sequence.begin(), sequence.end(), tokens->data<int32_t>() + row * room);
    }
    return OkStatus();
  }

 private:
  static Status SetRules(const GenerationAttrs& attrs, size_t batch, size_t vocabulary,
                         KernelContext& context, TokenRules& rules) {
    TENON_ASSIGN_OR_RETURN(rules.repetition_penalty, FloatInput(context, kRepetitionPenalty, 1));
    if (!(rules.repetition_penalty > 0)) {
      return InvalidArgument("input {}: expected a penalty above 0", size_t{kRepetitionPenalty});
    }
    TENON_ASSIGN_OR_RETURN(const int64_t least,
                           IntegerInput(context, kMinLength, 0, INT32_MIN, INT32_MAX));
    rules.min_length = static_cast<size_t>(std::max<int64_t>(least, 0));
    rules.ngram_size = static_cast<size_t>(attrs.ngram_size);
    rules.eos_token = static_cast<int32_t>(attrs.eos_token);
    return SetMasks(context, kVocabMask, kPrefixVocabMask, batch, vocabulary, rules);
  }

  std::optional<GptGraphs> gpt_;
  std::optional<EncoderDecoderGraphs> pair_;
};

class GreedyKernel final : public StatefulKernel<InferGreedy> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    return settings_.Prepare(attrs_, info);
  }

  Status Run(KernelContext& context) const override {
    const auto prepare = [](size_t, size_t, TokenRules&) { return OkStatus(); };
    return settings_.Run(attrs_, context, prepare, [](std::span<float> scores, size_t) {
      return static_cast<int32_t>(std::max_element(scores.begin(), scores.end()) - scores.begin());
    });
  }

 private:
  GreedySettings settings_;
};

class SamplingKernel final : public StatefulKernel<InferSampling> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    if (attrs_.kept < 0) {
      return InvalidArgument("attribute 'min_tokens_to_keep': expected at least 0, got {}",
                             attrs_.kept);
    }
    return settings_.Prepare(attrs_, info);
  }

  Status Run(KernelContext& context) const override {
    const int64_t fallback = 0;
    TENON_ASSIGN_OR_RETURN(const int64_t seed,
                           context.input_count() > kSeed
                               ? IntegerInput(context, kSeed, fallback, 0, INT32_MAX)
                               : Result<int64_t>(fallback));
    MinimalRandom random(static_cast<uint64_t>(seed));
    float* filtered = nullptr;
    std::vector<float> probabilities;
    std::vector<uint32_t> order;
    const auto prepare = [&](size_t batch, size_t vocabulary, TokenRules& rules) -> Status {
      if (attrs_.kept >= static_cast<int64_t>(vocabulary)) {
        return InvalidArgument("attribute 'min_tokens_to_keep': expected less than {}, got {}",
                               vocabulary, attrs_.kept);
      }
      rules.temperature = attrs_.temperature;
      if (context.input_count() > kPresenceMask && context.HasInput(kPresenceMask)) {
        const Tensor& mask = context.Input(kPresenceMask);
        if (mask.type() != DataType::kInt32 ||
            static_cast<size_t>(mask.size()) != batch * vocabulary) {
          return InvalidArgument("input {}: expected {} numbers, got shape {}",
                                 size_t{kPresenceMask}, batch * vocabulary, mask.shape());
        }
        rules.presence = {mask.data<int32_t>(), batch * vocabulary};
        rules.presence_penalty = attrs_.presence_penalty;
      }
      if (context.output_count() < 2 || !context.HasOutput(1)) return OkStatus();
      TENON_ASSIGN_OR_RETURN(
          Tensor * output,
          context.AllocateOutput(1, DataType::kFloat,
                                 {static_cast<int64_t>(batch), static_cast<int64_t>(vocabulary)}));
      filtered = output->data<float>();
      return OkStatus();
    };
    return settings_.Run(attrs_, context, prepare, [&](std::span<float> scores, size_t row) {
      Filter(scores, order, probabilities);
      if (filtered) std::copy(scores.begin(), scores.end(), filtered + row * scores.size());
      return Draw(scores, random);
    });
  }

 private:
  // Gives the least probable tokens, which together have less than 1 - top_p, the filter's value.
  void Filter(std::span<float> scores, std::vector<uint32_t>& order,
              std::vector<float>& sums) const {
    const size_t n = scores.size();
    for (float& x : scores) {
      if (std::isnan(x)) x = attrs_.filter_value;  // has no order
    }
    order.resize(n);
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](uint32_t i, uint32_t j) {
      if (scores[i] == scores[j]) return i < j;
      return attrs_.is_descending ? scores[i] > scores[j] : scores[i] < scores[j];
    });
    const float most = *std::max_element(scores.begin(), scores.end());
    sums.resize(n);
    float sum = 0;
    for (size_t i = 0; i < n; ++i) sum += sums[i] = std::exp(scores[order[i]] - most);
    float before = 0;
    for (float& x : sums) before = x = x / sum + before;
    const auto kept = static_cast<size_t>(attrs_.kept);
    if (attrs_.is_descending) {
      for (size_t i = 0; i + 1 < n; ++i) {
        if (sums[i] > attrs_.top_p) scores[order[i + 1]] = attrs_.filter_value;
      }
    } else {
      for (size_t i = 0; i + kept < n; ++i) {
        if (sums[i] <= 1 - attrs_.top_p) scores[order[i]] = attrs_.filter_value;
      }
    }
  }

  static int32_t Draw(std::span<const float> scores, MinimalRandom& random) {
    double most = std::numeric_limits<float>::lowest();
    for (const float x : scores) {
      if (std::isfinite(x)) most = std::max(most, static_cast<double>(x));
    }
    double total = 0;
    for (const float x : scores) {
      if (std::isfinite(x)) total += std::exp(static_cast<double>(x) - most);
    }
    const double wanted = random.Uniform() * total;
    double sum = 0;
    for (size_t i = 0; i < scores.size(); ++i) {
      if (std::isfinite(scores[i])) sum += std::exp(static_cast<double>(scores[i]) - most);
      if (sum > wanted) return static_cast<int32_t>(i);
    }
    return static_cast<int32_t>(scores.size()) - 1;
  }

  GreedySettings settings_;
};

constexpr OpRow kRows[] = {
    OpClass<GreedyKernel>("GreedySearch", {.domain = "com.microsoft",
                                           .types = {DataType::kInt32},
                                           .traits = {.allocates_outputs = true}}),
    OpClass<SamplingKernel>("Sampling", {.domain = "com.microsoft",
                                         .types = {DataType::kInt32},
                                         .traits = {.allocates_outputs = true}}),
};

}  // namespace

TENON_OP_FAMILY(GreedySearch, kRows);

}  // namespace tenon
