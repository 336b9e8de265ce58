// The models in the attributes of com.microsoft's generation operators: their feeds, step by step,
// and their scores of the next token.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ops/generation/token_rules.h"
#include "runtime/kernel_context.h"

namespace tenon {

// One run of a model over the rows of a batch.
class TokenModel {
 public:
  virtual ~TokenModel() = default;
  // Scores of the next token, [rows, length, vocabulary] of float or float16, of which the last of
  // `length` counts. Rows may be batches that each stand for all their beams.
  virtual Result<Tensor> Run(KernelContext& context) = 0;
  // The cross attention of the last run, for each layer; empty if there is none.
  virtual std::span<const Value> CrossScores() const { return {}; }
  // Row i goes on as row sources[i], with the last token of row i of `sequences`.
  virtual Status Advance(std::span<const int32_t> sources, const TokenSequences& sequences) = 0;
};

// The names that a subgraph's inputs have, and what is declared of their types.
struct DecoderInputs {
  std::vector<std::string> names;
  std::vector<ValueType> types;
  size_t output_count = 0;
  static Result<DecoderInputs> Of(const Node& node, size_t subgraph);
};

// A decoder without an encoder: inputs input_ids, position_ids, attention_mask and past_0, ...,
// outputs logits and present_0, ....
struct GptGraphs {
  size_t decoder = 0;
  std::optional<size_t> first;  // for the first run, if there is a separate graph for it
  DecoderInputs inputs;
  static Result<GptGraphs> Find(const Node& node);
};
// `ids` and `mask` are [batch, length] of int32; `mask` may be null, and is then 0 at pad_token.
// Each row stands for `beams` neighbouring ones.
Result<std::unique_ptr<TokenModel>> StartGpt(const GptGraphs& graphs, const Tensor& ids,
                                             const Tensor* mask, size_t beams, int32_t pad_token);

// The encoder and the decoder of T5 and Whisper; the encoder may also run the decoder's first step.
// Values are passed between them by their order, and are recognized by their names.
struct EncoderDecoderGraphs {
  size_t encoder = 0;
  size_t decoder = 0;
  DecoderInputs encoder_inputs, decoder_inputs;
  bool encoder_decodes = false;  // the first step
  size_t presents = 0;           // in the decoder's outputs, after the logits; scores may follow
  // With `gives_cross_scores` the decoder has an output of cross attention's scores for each two
  // presents.
  static Result<EncoderDecoderGraphs> Find(const Node& node, bool gives_cross_scores);
};
// `input` is [batch, length] of tokens or [batch, ...] of features; `start` has the first tokens of
// the decoder, [batch, length]. Sequences have at most `most_tokens`.
Result<std::unique_ptr<TokenModel>> StartEncoderDecoder(const EncoderDecoderGraphs& graphs,
                                                        const Tensor& input, const Tensor* mask,
                                                        const Tensor& start, size_t beams,
                                                        size_t most_tokens, int32_t pad_token);

// Rows of `x` along axis `axis` (0 or 1), picked and repeated.
Result<Tensor> PickRows(const Tensor& x, size_t axis, std::span<const int32_t> rows);
// Each row of axis 0 `copies` times.
Result<Tensor> RepeatRows(const Tensor& x, size_t copies);
// The last token of each row, [rows, 1]; or with `whole` all tokens.
Result<Tensor> TokensOf(const TokenSequences& sequences, bool whole);

}  // namespace tenon
