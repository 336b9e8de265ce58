// BeamSearch and WhisperBeamSearch of com.microsoft: find the sequences of tokens with the greatest
// sums of log probabilities by a model.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "ops/framework/element_conversion.h"
#include "ops/framework/stateful_kernel.h"
#include "ops/generation/cross_scores.h"
#include "ops/generation/generation.h"
#include "ops/generation/token_model.h"

namespace tenon {
namespace {

struct BeamAttrs : GenerationAttrs {
  bool stops_early = false;
  // Of WhisperBeamSearch.
  int64_t first_timestamp = -1, no_timestamps = -1, start_of_lm = -1;
  int64_t translate = -1, transcribe = -1, no_speech = -1;
  bool gives_cross_scores = false;
  static constexpr auto Fields() {
    using A = BeamAttrs;
    return std::tuple_cat(FieldsOf<A>(),
                          std::tuple(Field("early_stopping", &A::stops_early),
                                     Field("beginning_timestamp_token_id", &A::first_timestamp),
                                     Field("no_timestamps_token_id", &A::no_timestamps),
                                     Field("start_of_lm_token_id", &A::start_of_lm),
                                     Field("translate_token_id", &A::translate),
                                     Field("transcribe_token_id", &A::transcribe),
                                     Field("no_speech_token_id", &A::no_speech),
                                     Field("decoder_output_cross_qk", &A::gives_cross_scores)));
  }
};

enum BeamOutput : size_t { kTokens, kTokenScores, kAllScores, kCrossScores, kNoSpeech };
enum BeamInput : size_t {
  kIds,
  kMaxLength,
  kMinLength,
  kBeams,
  kReturned,
  kLengthPenalty,
  kRepetitionPenalty,
  kVocabMask,
  kPrefixVocabMask,
  kAttentionMask,
  kDecoderIds,
  kLogitsProcessor,
  kCrossHeads,
  kExtraIds,
  kTemperature,
};

Status InferBeamSearch(const BeamAttrs&, ShapeContext& context) {
  for (const std::string_view graph : {"encoder", "init_decoder", "decoder"}) {
    if (context.node().FindAttribute(graph) == nullptr) continue;
    TENON_RETURN_IF_ERROR(context.InferSubgraph(graph, {}));
  }
  const Dim any = Dim::Unknown();
  TENON_RETURN_IF_ERROR(context.SetOutput(0, {any, any, any}, DataType::kInt32));
  DataType scores = DataType::kFloat;
  for (const size_t i : {kLengthPenalty, kRepetitionPenalty, kTemperature}) {
    if (context.HasInput(i) && context.ElementType(i) == DataType::kFloat16) {
      scores = DataType::kFloat16;
    }
  }
  if (context.output_count() > 1) {
    TENON_RETURN_IF_ERROR(context.SetOutput(1, {any, any}, scores));
  }
  if (context.output_count() > 2) {
    TENON_RETURN_IF_ERROR(context.SetOutput(2, {any, any, any, any}, scores));
  }
  if (context.output_count() > kCrossScores) {
    TENON_RETURN_IF_ERROR(
        context.SetOutput(kCrossScores, {any, any, any, any, any}, DataType::kFloat));
  }
  if (context.output_count() > kNoSpeech) {
    TENON_RETURN_IF_ERROR(context.SetOutput(kNoSpeech, {any}, scores));
  }
  return OkStatus();
}

// The best finished sequences of one batch, the best first.
class Hypotheses {
 public:
  struct Hypothesis {
    std::vector<int32_t> tokens;
    size_t row = 0;  // that it had when it was found
    float score = 0;
  };

  Hypotheses(size_t beams, float length_penalty) : beams_(beams), penalty_(length_penalty) {}

  bool is_full() const { return found_.size() == beams_; }
  const std::vector<Hypothesis>& found() const { return found_; }
  bool is_done = false;

  void Add(std::span<const int32_t> tokens, size_t row, float sum) {
    const float score = Score(sum, tokens.size());
    if (is_full() && score <= found_.back().score) return;
    if (is_full()) found_.pop_back();
    const auto worse = std::find_if(found_.begin(), found_.end(),
                                    [&](const Hypothesis& known) { return score > known.score; });
    found_.insert(worse, {{tokens.begin(), tokens.end()}, row, score});
  }
  // Whether a sequence of this length and sum would be better than the last.
  bool CanImprove(float sum, size_t length) const {
    return Score(sum, length) > found_.back().score;
  }

 private:
  float Score(float sum, size_t length) const {
    return sum / std::pow(static_cast<float>(length), penalty_);
  }

  size_t beams_;
  float penalty_;
  std::vector<Hypothesis> found_;
};

void LogSoftmax(std::span<float> row) {
  const float most = *std::max_element(row.begin(), row.end());
  float sum = 0;
  for (const float x : row) sum += std::exp(x - most);
  const float log_sum = std::log(sum);
  for (float& x : row) x = x - most - log_sum;
}

// One search over all batches.
class Search {
 public:
  struct Sizes {
    size_t batch = 0, beams = 1, returned = 1, vocabulary = 0;
    size_t most_tokens = 0;
  };

  Search(const BeamAttrs& attrs, const Sizes& sizes, float length_penalty, TokenSequences sequences)
      : attrs_(attrs),
        sizes_(sizes),
        sequences_(std::move(sequences)),
        hypotheses_(sizes.batch, Hypotheses(sizes.beams, length_penalty)),
        beam_scores_(rows(), 0.0f),
        next_tokens_(rows()),
        next_sources_(rows()) {
    // The first step chooses among the followers of one beam.
    for (size_t row = 0; row < rows(); ++row) {
      if (row % sizes_.beams != 0) beam_scores_[row] = -1e9f;
    }
  }

  size_t rows() const { return sizes_.batch * sizes_.beams; }
  const TokenSequences& sequences() const { return sequences_; }
  std::span<const int32_t> sources() const { return next_sources_; }

  bool is_done() const {
    return std::all_of(hypotheses_.begin(), hypotheses_.end(),
                       [](const Hypotheses& found) { return found.is_done; });
  }

  // Takes the scores of all followers, [rows][vocabulary], to which it adds those of the beams, and
  // appends the best.
  void Step(std::span<float> scores) {
    for (size_t i = 0; i < scores.size(); ++i) {
      scores[i] += beam_scores_[i / sizes_.vocabulary];
      if (std::isnan(scores[i])) scores[i] = std::numeric_limits<float>::lowest();  // has no order
    }
    const size_t per_batch = sizes_.beams * sizes_.vocabulary;
    const size_t taken = std::min(2 * sizes_.beams, per_batch);
    best_scores_.resize(sizes_.batch * taken);
    best_.resize(sizes_.batch * taken);
    order_.resize(per_batch);
    for (size_t b = 0; b < sizes_.batch; ++b) {
      const float* batch_scores = scores.data() + b * per_batch;
      std::iota(order_.begin(), order_.end(), 0u);
      std::partial_sort(
          order_.begin(), order_.begin() + static_cast<ptrdiff_t>(taken), order_.end(),
          [&](uint32_t i, uint32_t j) {
            return batch_scores[i] != batch_scores[j] ? batch_scores[i] > batch_scores[j] : i < j;
          });
      for (size_t i = 0; i < taken; ++i) {
        best_[b * taken + i] = order_[i];
        best_scores_[b * taken + i] = batch_scores[order_[i]];
      }
    }
    for (size_t b = 0; b < sizes_.batch; ++b) StepBatch(b, taken);
    sequences_.Append(next_sources_, next_tokens_);
  }

  // The results for a batch, the best first; after Finish.
  std::span<const Hypotheses::Hypothesis> found(size_t batch) const {
    return hypotheses_[batch].found();
  }

  void Finish(int32_t* tokens, std::vector<float>& scores) {
    std::fill_n(tokens, sizes_.batch * sizes_.returned * sizes_.most_tokens,
                static_cast<int32_t>(attrs_.pad_token));
    scores.assign(sizes_.batch * sizes_.returned, 0.0f);
    for (size_t b = 0; b < sizes_.batch; ++b) {
      Hypotheses& found = hypotheses_[b];
      for (size_t beam = 0; beam < sizes_.beams && !found.is_done; ++beam) {
        const size_t row = b * sizes_.beams + beam;
        found.Add(sequences_.Row(row), row, beam_scores_[row]);
      }
      for (size_t i = 0; i < std::min(sizes_.returned, found.found().size()); ++i) {
        const auto& hypothesis = found.found()[i];
        const size_t at = b * sizes_.returned + i;
        std::copy(hypothesis.tokens.begin(), hypothesis.tokens.end(),
                  tokens + at * sizes_.most_tokens);
        scores[at] = hypothesis.score;
      }
    }
  }

 private:
  void StepBatch(size_t b, size_t taken) {
    Hypotheses& found = hypotheses_[b];
    const size_t first_row = b * sizes_.beams;
    size_t beam = 0;
    for (size_t i = 0; i < taken && beam < sizes_.beams && !found.is_done; ++i) {
      const uint32_t best = best_[b * taken + i];
      const auto token = static_cast<int32_t>(best % sizes_.vocabulary);
      const size_t source = first_row + best / sizes_.vocabulary;
      const float score = best_scores_[b * taken + i];
      if (token == attrs_.eos_token) {
        if (i < sizes_.beams) found.Add(sequences_.Row(source), source, score);
        continue;
      }
      SetNext(first_row + beam++, source, token, score);
    }
    // A finished batch continues with padding, and with an arbitrary state: that of row 0. So does
    // a batch with few tokens.
    while (beam < sizes_.beams) {
      SetNext(first_row + beam++, 0, static_cast<int32_t>(attrs_.pad_token), 0);
    }
    if (found.is_done || !found.is_full()) return;
    // ONNX Runtime looks at these scores of the list of all batches.
    const size_t first = b * sizes_.beams;
    const float most = *std::max_element(
        best_scores_.begin() + static_cast<ptrdiff_t>(first),
        best_scores_.begin() + static_cast<ptrdiff_t>(std::min(first + taken, best_.size())));
    found.is_done = attrs_.stops_early || !found.CanImprove(most, sequences_.length());
  }

  void SetNext(size_t row, size_t source, int32_t token, float score) {
    next_sources_[row] = static_cast<int32_t>(source);
    next_tokens_[row] = token;
    beam_scores_[row] = score;
  }

  const BeamAttrs& attrs_;
  const Sizes sizes_;
  TokenSequences sequences_;
  std::vector<Hypotheses> hypotheses_;
  std::vector<float> beam_scores_;
  std::vector<int32_t> next_tokens_, next_sources_;
  std::vector<uint32_t> best_, order_;
  std::vector<float> best_scores_;
};

class BeamSearchKernel final : public StatefulKernel<InferBeamSearch> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    TENON_RETURN_IF_ERROR(attrs_.Check());
    if (info.output_count() > kCrossScores && info.HasOutput(kCrossScores) &&
        !attrs_.gives_cross_scores) {
      return InvalidArgument("output {} needs attribute 'decoder_output_cross_qk'",
                             size_t{kCrossScores});
    }
    for (const size_t i : {kTokenScores, kAllScores, kNoSpeech}) {
      if (i < info.output_count() && info.HasOutput(i)) score_type_ = info.OutputElementType(i);
    }
    if (attrs_.model_type == 0) {
      TENON_ASSIGN_OR_RETURN(gpt_, GptGraphs::Find(info.node()));
    } else {
      TENON_ASSIGN_OR_RETURN(pair_,
                             EncoderDecoderGraphs::Find(info.node(), attrs_.gives_cross_scores));
    }
    return OkStatus();
  }

  Status Run(KernelContext& context) const override {
    const Tensor& ids = context.Input(kIds);
    if (ids.rank() < 2) return InvalidArgument("input 0: expected a batch, got {}", ids.shape());
    Search::Sizes sizes;
    sizes.batch = static_cast<size_t>(ids.shape()[0]);
    TENON_ASSIGN_OR_RETURN(const int64_t beams, IntegerInput(context, kBeams, 1, 1, 128));
    TENON_ASSIGN_OR_RETURN(const int64_t returned, IntegerInput(context, kReturned, 1, 1, beams));
    sizes.beams = static_cast<size_t>(beams);
    sizes.returned = static_cast<size_t>(returned);
    TENON_ASSIGN_OR_RETURN(const Tensor start, FirstTokens(context));
    const int64_t first = start.shape()[1];
    TENON_ASSIGN_OR_RETURN(const int64_t most,
                           IntegerInput(context, kMaxLength, kMostTokens, first + 1, kMostTokens));
    sizes.most_tokens = static_cast<size_t>(most);
    TENON_ASSIGN_OR_RETURN(const std::unique_ptr<TokenModel> model,
                           StartModel(start, sizes, context));
    return RunSearch(sizes, start, *model, context);
  }

 private:
  // Tokens with which the sequences begin, [batch, length].
  Result<Tensor> FirstTokens(KernelContext& context) const {
    const Tensor& ids = context.Input(kIds);
    if (attrs_.model_type == 2 && context.HasInput(kDecoderIds)) {
      const Tensor& given = context.Input(kDecoderIds);
      if (given.type() == DataType::kInt32 && given.rank() == 2 &&
          given.shape()[0] == ids.shape()[0] && given.shape()[1] > 0) {
        return given;
      }
      return InvalidArgument("input {}: expected tokens of {} rows, got {}", size_t{kDecoderIds},
                             ids.shape()[0], given.shape());
    }
    if (attrs_.model_type == 0) {
      if (ids.type() == DataType::kInt32 && ids.rank() == 2 && ids.shape()[1] > 0) return ids;
      return InvalidArgument("input 0: expected tokens [batch, length], got {} {}",
                             DataTypeName(ids.type()), ids.shape());
    }
    return StartTokens(ids.shape()[0], attrs_.decoder_start_token);
  }

  Result<std::unique_ptr<TokenModel>> StartModel(const Tensor& start, const Search::Sizes& sizes,
                                                 KernelContext& context) const {
    const Tensor& ids = context.Input(kIds);
    const Tensor* mask =
        context.HasInput(kAttentionMask) ? &context.Input(kAttentionMask) : nullptr;
    if (mask && (mask->type() != DataType::kInt32 || !(mask->shape() == ids.shape()))) {
      return InvalidArgument("input {}: expected shape {}, got {}", size_t{kAttentionMask},
                             ids.shape(), mask->shape());
    }
    const auto pad = static_cast<int32_t>(attrs_.pad_token);
    if (attrs_.model_type == 0) return StartGpt(*gpt_, ids, mask, sizes.beams, pad);
    return StartEncoderDecoder(*pair_, ids, mask, start, sizes.beams, sizes.most_tokens, pad);
  }

  static constexpr int64_t kTimestampProcessor = 1;

  TimestampRules Timestamps() const {
    const auto token = [](int64_t id) {
      return static_cast<int32_t>(std::clamp<int64_t>(id, -1, INT32_MAX));
    };
    return {.first = token(attrs_.first_timestamp),
            .no_timestamps = token(attrs_.no_timestamps),
            .start_of_lm = token(attrs_.start_of_lm),
            .start = token(attrs_.decoder_start_token),
            .translate = token(attrs_.translate),
            .transcribe = token(attrs_.transcribe),
            .eos_token = token(attrs_.eos_token)};
  }

  Result<TokenRules> Rules(const Search::Sizes& sizes, KernelContext& context) const {
    TokenRules rules;
    TENON_ASSIGN_OR_RETURN(rules.repetition_penalty, FloatInput(context, kRepetitionPenalty, 1));
    if (!(rules.repetition_penalty > 0)) {
      return InvalidArgument("input {}: expected a penalty above 0", size_t{kRepetitionPenalty});
    }
    TENON_ASSIGN_OR_RETURN(const int64_t least,
                           IntegerInput(context, kMinLength, 0, INT32_MIN, INT32_MAX));
    rules.min_length = static_cast<size_t>(std::max<int64_t>(least, 0));
    rules.ngram_size = static_cast<size_t>(attrs_.ngram_size);
    rules.eos_token = static_cast<int32_t>(attrs_.eos_token);
    if (context.input_count() > kTemperature) {
      TENON_ASSIGN_OR_RETURN(rules.temperature, FloatInput(context, kTemperature, 1));
    }
    TENON_ASSIGN_OR_RETURN(const int64_t processor,
                           IntegerInput(context, kLogitsProcessor, 0, INT32_MIN, INT32_MAX));
    if (processor == kTimestampProcessor && context.node().op_type == "WhisperBeamSearch") {
      if (attrs_.first_timestamp < 0) {
        return InvalidArgument("input {}: timestamps need attribute 'beginning_timestamp_token_id'",
                               size_t{kLogitsProcessor});
      }
      rules.timestamps = Timestamps();
    }
    TENON_RETURN_IF_ERROR(
        SetMasks(context, kVocabMask, kPrefixVocabMask, sizes.batch, sizes.vocabulary, rules));
    return rules;
  }

  // Tokens that follow the first ones, [batch, count].
  static Result<ForcedTokens> Forced(const Search::Sizes& sizes, KernelContext& context) {
    if (context.input_count() <= kExtraIds || !context.HasInput(kExtraIds)) return ForcedTokens();
    const Tensor& ids = context.Input(kExtraIds);
    if (ids.rank() != 2 || ids.shape()[0] != static_cast<int64_t>(sizes.batch)) {
      return InvalidArgument("input {}: expected tokens of {} rows, got {}", size_t{kExtraIds},
                             sizes.batch, ids.shape());
    }
    const std::span tokens(ids.data<int32_t>(), static_cast<size_t>(ids.size()));
    for (const int32_t token : tokens) {
      if (token < static_cast<int64_t>(sizes.vocabulary)) continue;
      return InvalidArgument("input {}: expected tokens below {}, got {}", size_t{kExtraIds},
                             sizes.vocabulary, token);
    }
    return ForcedTokens{tokens, static_cast<size_t>(ids.shape()[1])};
  }

  // What collects cross attention's scores, if they are wanted.
  static Result<std::optional<CrossScores>> Crosses(KernelContext& context) {
    if (context.output_count() <= kCrossScores || !context.HasOutput(kCrossScores)) {
      return std::nullopt;
    }
    if (!context.HasInput(kCrossHeads)) return CrossScores(nullptr);
    const Tensor& heads = context.Input(kCrossHeads);
    if (heads.rank() != 2 || heads.shape()[1] != 2) {
      return InvalidArgument("input {}: expected pairs of layer and head, got {}",
                             size_t{kCrossHeads}, heads.shape());
    }
    return CrossScores(&heads);
  }

  Status RunSearch(Search::Sizes sizes, const Tensor& start, TokenModel& model,
                   KernelContext& context) const {
    TENON_ASSIGN_OR_RETURN(const float penalty, FloatInput(context, kLengthPenalty, 1));
    TokenSequences sequences({start.data<int32_t>(), static_cast<size_t>(start.size())},
                             sizes.batch, sizes.beams, sizes.most_tokens);
    const size_t first = sequences.length();
    std::optional<Search> search;
    TENON_ASSIGN_OR_RETURN(std::optional<CrossScores> crosses, Crosses(context));
    TokenRules rules;
    ForcedTokens forced;
    std::vector<float> scores;
    Tensor* all_scores = nullptr;
    for (size_t step = 0; first + step < sizes.most_tokens; ++step) {
      if (step > 0) {
        const auto sources = sizes.beams == 1 ? std::span<const int32_t>() : search->sources();
        TENON_RETURN_IF_ERROR(model.Advance(sources, search->sequences()));
      }
      TENON_ASSIGN_OR_RETURN(const Tensor logits, model.Run(context));
      if (logits.rank() != 3) return InvalidArgument("expected logits of rank 3");
      if (!search) {
        sizes.vocabulary =
            static_cast<size_t>(attrs_.vocabulary > 0 ? attrs_.vocabulary : logits.shape()[2]);
        if (sizes.vocabulary == 0) return InvalidArgument("expected a vocabulary, got none");
        TENON_ASSIGN_OR_RETURN(rules, Rules(sizes, context));
        TENON_ASSIGN_OR_RETURN(forced, Forced(sizes, context));
        search.emplace(attrs_, sizes, penalty, std::move(sequences));
        TENON_ASSIGN_OR_RETURN(all_scores, AllScores(sizes, first, context));
      }
      const size_t copies =
          static_cast<size_t>(logits.shape()[0]) == search->rows() ? 1 : sizes.beams;
      TENON_RETURN_IF_ERROR(LastLogits(logits, copies, sizes.vocabulary, scores));
      if (scores.size() != search->rows() * sizes.vocabulary) {
        return InvalidArgument("expected logits of {} rows, got {}", search->rows(),
                               logits.shape());
      }
      for (size_t row = 0; row < search->rows(); ++row) {
        LogSoftmax({scores.data() + row * sizes.vocabulary, sizes.vocabulary});
      }
      if (step == 0) TENON_RETURN_IF_ERROR(WriteNoSpeech(sizes, scores, context));
      rules.Apply(search->sequences(), sizes.batch, step == 0, sizes.vocabulary, scores.data());
      forced.Apply(step, sizes.batch, sizes.vocabulary, scores);
      search->Step(scores);
      if (crosses && step > 0) {
        TENON_RETURN_IF_ERROR(crosses->Add(model.CrossScores(), search->rows()));
      }
      if (crosses) crosses->Move(search->sources());
      if (all_scores) StoreScores(scores, step * scores.size(), *all_scores);
      if (search->is_done()) break;
    }
    TENON_RETURN_IF_ERROR(WriteOutputs(sizes, *search, context));
    return crosses ? WriteCrosses(sizes, first, *search, *crosses, context) : OkStatus();
  }

  // [batch, returned, pairs, runs of the decoder, frames]; 0 after the end of a sequence.
  static Status WriteCrosses(const Search::Sizes& sizes, size_t first, const Search& search,
                             const CrossScores& crosses, KernelContext& context) {
    const Shape shape({static_cast<int64_t>(sizes.batch), static_cast<int64_t>(sizes.returned),
                       static_cast<int64_t>(crosses.pairs()), static_cast<int64_t>(crosses.runs()),
                       static_cast<int64_t>(crosses.frames())});
    TENON_ASSIGN_OR_RETURN(Tensor * output,
                           context.AllocateOutput(kCrossScores, DataType::kFloat, shape));
    std::fill_n(output->data<float>(), output->size(), 0.0f);
    const auto per_sequence = static_cast<size_t>(shape.Product(2, 5));
    for (size_t b = 0; b < sizes.batch; ++b) {
      const auto found = search.found(b);
      for (size_t i = 0; i < std::min(sizes.returned, found.size()); ++i) {
        crosses.Write(found[i].row, found[i].tokens.size() - first,
                      output->data<float>() + (b * sizes.returned + i) * per_sequence);
      }
    }
    return OkStatus();
  }

  // The probability, after the first tokens, of the token for a sequence without speech.
  Status WriteNoSpeech(const Search::Sizes& sizes, std::span<const float> log_probabilities,
                       KernelContext& context) const {
    if (!context.HasOutput(kNoSpeech)) return OkStatus();
    const auto token = static_cast<size_t>(attrs_.no_speech);
    if (attrs_.no_speech < 0 || token >= sizes.vocabulary) {
      return InvalidArgument("attribute 'no_speech_token_id': expected a token below {}, got {}",
                             sizes.vocabulary, attrs_.no_speech);
    }
    TENON_ASSIGN_OR_RETURN(
        Tensor * output,
        context.AllocateOutput(kNoSpeech, score_type_, {static_cast<int64_t>(sizes.batch)}));
    for (size_t b = 0; b < sizes.batch; ++b) {
      const size_t row = b * sizes.beams;
      const float probability = std::exp(log_probabilities[row * sizes.vocabulary + token]);
      StoreScores({&probability, 1}, b, *output);
    }
    return OkStatus();
  }

  // Output 2, [generated, batch, beams, vocabulary] of zeros, if it is wanted.
  Result<Tensor*> AllScores(const Search::Sizes& sizes, size_t first,
                            KernelContext& context) const {
    if (context.output_count() < 3 || !context.HasOutput(2)) return nullptr;
    const Shape shape({static_cast<int64_t>(sizes.most_tokens - first),
                       static_cast<int64_t>(sizes.batch), static_cast<int64_t>(sizes.beams),
                       static_cast<int64_t>(sizes.vocabulary)});
    TENON_ASSIGN_OR_RETURN(Tensor * scores, context.AllocateOutput(2, score_type_, shape));
    if (scores->bytes() > 0) std::memset(scores->raw(), 0, scores->bytes());
    return scores;
  }

  // Sets elements from `first` on: halves where the penalties are.
  static void StoreScores(std::span<const float> scores, size_t first, Tensor& output) {
    const std::vector<double> wide(scores.begin(), scores.end());
    StoreElements(wide.data(), first, wide.size(), {}, output);
  }

  Status WriteOutputs(const Search::Sizes& sizes, Search& search, KernelContext& context) const {
    const auto batch = static_cast<int64_t>(sizes.batch);
    const auto returned = static_cast<int64_t>(sizes.returned);
    TENON_ASSIGN_OR_RETURN(
        Tensor * tokens,
        context.AllocateOutput(0, DataType::kInt32,
                               {batch, returned, static_cast<int64_t>(sizes.most_tokens)}));
    std::vector<float> scores;
    search.Finish(tokens->data<int32_t>(), scores);
    if (context.output_count() < 2 || !context.HasOutput(1)) return OkStatus();
    TENON_ASSIGN_OR_RETURN(Tensor * output,
                           context.AllocateOutput(1, score_type_, {batch, returned}));
    StoreScores(scores, 0, *output);
    return OkStatus();
  }

  std::optional<GptGraphs> gpt_;
  std::optional<EncoderDecoderGraphs> pair_;
  DataType score_type_ = DataType::kFloat;
};

constexpr OpOptions kOptions = {.domain = "com.microsoft",
                                .types = {DataType::kInt32, DataType::kFloat, DataType::kFloat16},
                                .traits = {.allocates_outputs = true}};

constexpr OpRow kRows[] = {
    OpClass<BeamSearchKernel>("BeamSearch", kOptions),
    OpClass<BeamSearchKernel>("WhisperBeamSearch", kOptions),
};

}  // namespace

TENON_OP_FAMILY(BeamSearch, kRows);

}  // namespace tenon
