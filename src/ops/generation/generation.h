// Shared by the generation operators of com.microsoft, besides models and rules: attributes, inputs
// of one number, logits.
#pragma once

#include <tuple>
#include <vector>

#include "ops/framework/attributes.h"
#include "ops/generation/token_rules.h"
#include "runtime/kernel_context.h"

namespace tenon {

struct GenerationAttrs {
  int64_t decoder_start_token = -1, eos_token = 0, pad_token = 0;
  int64_t model_type = 0;  // 0: a decoder alone, 1: T5, 2: Whisper
  int64_t ngram_size = 0, vocabulary = -1;
  template <class Attrs>
  static constexpr auto FieldsOf() {
    return std::tuple(
        Field("decoder_start_token_id", &Attrs::decoder_start_token),
        Field("eos_token_id", &Attrs::eos_token), Field("pad_token_id", &Attrs::pad_token),
        Field("model_type", &Attrs::model_type), Field("no_repeat_ngram_size", &Attrs::ngram_size),
        Field("vocab_size", &Attrs::vocabulary));
  }
  // Error: kInvalidArgument for invalid tokens.
  Status Check() const;
};

// Longer sequences than ONNX Runtime supports are refused: their memory is reserved at once.
inline constexpr int64_t kMostTokens = 4096;

// The number in input `i`, of any number type, or `fallback` if it is absent. Error:
// kInvalidArgument unless it is one number in [least, most].
Result<int64_t> IntegerInput(KernelContext& context, size_t i, int64_t fallback, int64_t least,
                             int64_t most);
Result<float> FloatInput(KernelContext& context, size_t i, float fallback);

// The first tokens of a decoder with an encoder, [batch, 1]. Error: kInvalidArgument for an invalid
// token.
Result<Tensor> StartTokens(int64_t batch, int64_t token);

// Sets the masks of the rules from the inputs, which may be absent: [vocabulary] and [batch,
// vocabulary].
Status SetMasks(KernelContext& context, size_t allowed, size_t allowed_next, size_t batch,
                size_t vocabulary, TokenRules& rules);

// The scores of the last token of each row of `logits`, [rows, length, n] with n >= vocabulary,
// each `copies` times: [rows * copies][vocabulary].
Status LastLogits(const Tensor& logits, size_t copies, size_t vocabulary,
                  std::vector<float>& scores);

}  // namespace tenon
