// The encoders and decoders of T5 and Whisper for the generation operators.
#include <algorithm>

#include "ops/subgraphs.h"
#include "ops/token_model.h"

namespace tenon {
namespace {

bool IsPast(std::string_view name) { return name.starts_with("past_"); }

class EncoderDecoder final : public TokenModel {
 public:
  explicit EncoderDecoder(const EncoderDecoderGraphs& graphs, size_t beams)
      : graphs_(graphs), beams_(beams) {
    for (const std::string& name : graphs_.decoder_inputs.names) pasts_ += IsPast(name) ? 1 : 0;
    const ValueType& ids = graphs_.decoder_inputs.types[0];
    takes_sequence_ = !ids.shape || ids.shape->rank() != 2 || !(*ids.shape)[1].is_number();
  }

  Status Start(const Tensor& input, const Tensor* mask, const Tensor& start, int32_t pad_token) {
    for (const std::string& name : graphs_.encoder_inputs.names) {
      if (name == "decoder_input_ids") {
        encoder_feeds_.push_back(start);
      } else if (name == "encoder_attention_mask" || name == "attention_mask") {
        TENON_ASSIGN_OR_RETURN(mask_, mask ? *mask : LeadingMask(input, pad_token));
        encoder_feeds_.push_back(mask_);
      } else {
        encoder_feeds_.push_back(input);
      }
    }
    return OkStatus();
  }

  Result<Tensor> Run(KernelContext& context) override {
    const bool encodes = outputs_.empty() && feeds_.empty();
    SubgraphRunner& graph = context.Subgraph(encodes ? graphs_.encoder : graphs_.decoder);
    std::vector<Value> feeds = encodes ? std::move(encoder_feeds_) : feeds_;
    TENON_RETURN_IF_ERROR(graph.Run(feeds, outputs_));
    const size_t expected =
        encodes ? graphs_.encoder_inputs.output_count : graphs_.decoder_inputs.output_count;
    if (outputs_.size() != expected) return InvalidArgument("expected {} outputs", expected);
    for (const Value& output : outputs_) {
      if (!output.is_tensor()) return InvalidArgument("expected tensors from the subgraphs");
    }
    return outputs_[0].tensor();
  }

  Status Advance(std::span<const int32_t> sources, const TokenSequences& sequences) override {
    if (feeds_.empty()) return TakeOver(sequences);
    TENON_ASSIGN_OR_RETURN(feeds_[0], TokensOf(sequences, takes_sequence_));
    // Presents are those of the decoder itself; what it has of the encoder stays.
    const size_t first_past = FirstPast();
    for (size_t i = 1; i < outputs_.size(); ++i) {
      Value& past = feeds_[first_past + i - 1];
      if (sources.empty()) {
        past = outputs_[i];
      } else {
        TENON_ASSIGN_OR_RETURN(past, PickRows(outputs_[i].tensor(), 0, sources));
      }
    }
    return OkStatus();
  }

 private:
  // 0 for the padding that comes before all else.
  static Result<Tensor> LeadingMask(const Tensor& ids, int32_t pad_token) {
    if (ids.type() != DataType::kInt32 || ids.rank() != 2) {
      return InvalidArgument("input 0: expected tokens [batch, length], got {} {}",
                             DataTypeName(ids.type()), ids.shape());
    }
    TENON_ASSIGN_OR_RETURN(Tensor mask, Tensor::Allocate(DataType::kInt32, ids.shape()));
    const int64_t length = ids.shape()[1];
    for (int64_t row = 0; row < ids.shape()[0]; ++row) {
      bool has_begun = false;
      for (int64_t i = row * length; i < (row + 1) * length; ++i) {
        has_begun = has_begun || ids.data<int32_t>()[i] != pad_token;
        mask.data<int32_t>()[i] = has_begun ? 1 : 0;
      }
    }
    return mask;
  }

  size_t FirstPast() const {
    const auto& names = graphs_.decoder_inputs.names;
    return static_cast<size_t>(std::find_if(names.begin(), names.end(), IsPast) - names.begin());
  }

  // The decoder's first feeds, from what the encoder gave: logits, hidden states, presents.
  Status TakeOver(const TokenSequences& sequences) {
    std::vector<Value> encoded = std::move(outputs_);
    outputs_.clear();
    if (encoded.size() != 2 + pasts_) {
      return InvalidArgument("attribute 'encoder': expected {} outputs, got {}", 2 + pasts_,
                             encoded.size());
    }
    size_t past = 2;
    for (const std::string& name : graphs_.decoder_inputs.names) {
      Value& feed = feeds_.emplace_back();
      if (name == "input_ids") {
        TENON_ASSIGN_OR_RETURN(feed, TokensOf(sequences, takes_sequence_));
      } else if (name == "encoder_attention_mask") {
        if (!mask_.is_tensor()) return InvalidArgument("the encoder takes no attention mask");
        TENON_ASSIGN_OR_RETURN(feed, RepeatRows(mask_.tensor(), beams_));
      } else if (name == "encoder_hidden_states") {
        TENON_ASSIGN_OR_RETURN(feed, RepeatRows(encoded[1].tensor(), beams_));
      } else if (IsPast(name)) {
        TENON_ASSIGN_OR_RETURN(feed, RepeatRows(encoded[past++].tensor(), beams_));
      } else {
        return NotImplemented("attribute 'decoder': input '{}'", name);
      }
    }
    return OkStatus();
  }

  const EncoderDecoderGraphs& graphs_;
  size_t beams_;
  size_t pasts_ = 0;
  bool takes_sequence_ = false;
  Value mask_;
  std::vector<Value> encoder_feeds_, feeds_, outputs_;
};

}  // namespace

Result<EncoderDecoderGraphs> EncoderDecoderGraphs::Find(const Node& node) {
  EncoderDecoderGraphs graphs;
  TENON_ASSIGN_OR_RETURN(graphs.encoder, SubgraphIndex(node, "encoder"));
  TENON_ASSIGN_OR_RETURN(graphs.decoder, SubgraphIndex(node, "decoder"));
  TENON_ASSIGN_OR_RETURN(graphs.encoder_inputs, DecoderInputs::Of(node, graphs.encoder));
  TENON_ASSIGN_OR_RETURN(graphs.decoder_inputs, DecoderInputs::Of(node, graphs.decoder));
  const DecoderInputs& decoder = graphs.decoder_inputs;
  const auto pasts = std::count_if(decoder.names.begin(), decoder.names.end(), IsPast);
  if (decoder.names.empty() || decoder.names[0] != "input_ids" || decoder.output_count == 0 ||
      decoder.output_count - 1 > static_cast<size_t>(pasts)) {
    return InvalidArgument("attribute 'decoder': expected input_ids and a past for each present");
  }
  const auto& names = graphs.encoder_inputs.names;
  if (std::find(names.begin(), names.end(), "decoder_input_ids") == names.end()) {
    return NotImplemented("attribute 'encoder': a graph without input decoder_input_ids");
  }
  return graphs;
}

Result<std::unique_ptr<TokenModel>> StartEncoderDecoder(const EncoderDecoderGraphs& graphs,
                                                        const Tensor& input, const Tensor* mask,
                                                        const Tensor& start, size_t beams,
                                                        int32_t pad_token) {
  auto model = std::make_unique<EncoderDecoder>(graphs, beams);
  TENON_RETURN_IF_ERROR(model->Start(input, mask, start, pad_token));
  return std::unique_ptr<TokenModel>(std::move(model));
}

}  // namespace tenon
