// The encoders and decoders of T5 and Whisper for the generation operators.
#include <algorithm>
#include <cstring>

#include "ops/control/subgraphs.h"
#include "ops/generation/token_model.h"

namespace tenon {
namespace {

// If a decoder's pasts and presents share buffers, these inputs follow the pasts, in this order.
enum SharedInput : size_t { kPastLength, kBeamWidth, kIndirection, kSharedInputs };

bool IsPast(std::string_view name) {
  return name.starts_with("past_") && !name.starts_with("past_seq");
}

Result<Tensor> OneInt(size_t value) {
  TENON_ASSIGN_OR_RETURN(Tensor one, Tensor::Allocate(DataType::kInt32, {1}));
  one.data<int32_t>()[0] = static_cast<int32_t>(value);
  return one;
}

// [rows, heads, length, size] in a buffer of `most` instead of `length`, filled up with zeros.
Result<Tensor> Lengthen(const Tensor& x, size_t most) {
  if (x.rank() != 4 || x.shape()[2] > static_cast<int64_t>(most) || IsSubByte(x.type()) ||
      x.type() == DataType::kString) {
    return InvalidArgument("expected states [rows, heads, at most {}, size], got {}", most,
                           x.shape());
  }
  Shape shape = x.shape();
  shape[2] = static_cast<int64_t>(most);
  TENON_ASSIGN_OR_RETURN(Tensor y, Tensor::Allocate(x.type(), shape));
  const auto matrices = static_cast<size_t>(shape[0] * shape[1]);
  if (matrices == 0 || y.bytes() == 0) return y;
  const size_t from_bytes = x.bytes() / matrices, bytes = y.bytes() / matrices;
  std::memset(y.raw(), 0, y.bytes());
  for (size_t i = 0; i < matrices && from_bytes > 0; ++i) {
    std::memcpy(static_cast<std::byte*>(y.raw()) + i * bytes,
                static_cast<const std::byte*>(x.raw()) + i * from_bytes, from_bytes);
  }
  return y;
}

class EncoderDecoder final : public TokenModel {
 public:
  EncoderDecoder(const EncoderDecoderGraphs& graphs, size_t beams, size_t most_tokens)
      : graphs_(graphs), beams_(beams), most_tokens_(most_tokens) {
    const auto& names = graphs_.decoder_inputs.names;
    pasts_ = static_cast<size_t>(std::count_if(names.begin(), names.end(), IsPast));
    first_past_ =
        static_cast<size_t>(std::find_if(names.begin(), names.end(), IsPast) - names.begin());
    const size_t next = first_past_ + pasts_;
    shares_buffers_ =
        next < names.size() && !IsPast(names[next]) && !names[next].starts_with("encoder_");
    const ValueType& ids = graphs_.decoder_inputs.types[0];
    takes_sequence_ = !ids.shape || ids.shape->rank() != 2 || !(*ids.shape)[1].is_number();
  }

  Status Start(const Tensor& input, const Tensor* mask, const Tensor& start, int32_t pad_token) {
    start_ = start;
    input_ = input;
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
    if (outputs_.empty() && feeds_.empty()) {
      TENON_RETURN_IF_ERROR(RunGraph(graphs_.encoder, graphs_.encoder_inputs.output_count,
                                     std::move(encoder_feeds_), context));
      if (graphs_.encoder_decodes) return outputs_[0].tensor();
      TENON_RETURN_IF_ERROR(AddNoStates());
      TENON_ASSIGN_OR_RETURN(Tensor tokens, RepeatRows(start_, beams_));
      TENON_RETURN_IF_ERROR(TakeOver(std::move(tokens), 0));
    }
    TENON_RETURN_IF_ERROR(
        RunGraph(graphs_.decoder, graphs_.decoder_inputs.output_count, feeds_, context));
    return outputs_[0].tensor();
  }

  std::span<const Value> CrossScores() const override {
    if (feeds_.empty()) return {};
    return std::span(outputs_).subspan(1 + graphs_.presents);
  }

  Status Advance(std::span<const int32_t> sources, const TokenSequences& sequences) override {
    TENON_ASSIGN_OR_RETURN(Tensor tokens, TokensOf(sequences, takes_sequence_));
    if (feeds_.empty()) return TakeOver(std::move(tokens), sequences.length() - 1);
    feeds_[0] = std::move(tokens);
    // Presents are those of the decoder itself; those from the encoder do not change.
    for (size_t i = 1; i <= graphs_.presents; ++i) {
      Value& past = feeds_[first_past_ + i - 1];
      if (sources.empty()) {
        past = outputs_[i];
      } else {
        TENON_ASSIGN_OR_RETURN(past, PickRows(outputs_[i].tensor(), 0, sources));
      }
    }
    if (!shares_buffers_) return OkStatus();
    TENON_ASSIGN_OR_RETURN(feeds_[first_past_ + pasts_ + kPastLength],
                           OneInt(sequences.length() - 1));
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

  Status RunGraph(size_t graph, size_t expected, RunValues feeds, KernelContext& context) {
    TENON_RETURN_IF_ERROR(context.Subgraph(graph).Run(feeds, outputs_));
    if (outputs_.size() != expected) return InvalidArgument("expected {} outputs", expected);
    for (const Value& output : outputs_) {
      if (!output.is_tensor()) return InvalidArgument("expected tensors from the subgraphs");
    }
    return OkStatus();
  }

  // If the encoder does not run the decoder's first step, it only returns the decoder's inputs from
  // it. This adds the outputs that an encoder with the first step would have returned.
  Status AddNoStates() {
    if (outputs_.size() < graphs_.presents) {
      return InvalidArgument("attribute 'encoder': expected {} outputs, got {}", graphs_.presents,
                             outputs_.size());
    }
    RunValues all(2);
    for (size_t i = 0; i < graphs_.presents; ++i) {
      const Tensor& cross = outputs_[i].tensor();
      if (cross.rank() != 4) {
        return InvalidArgument(
            "attribute 'encoder': expected presents [batch, heads, length, size], got {}",
            cross.shape());
      }
      Shape shape = cross.shape();
      shape[2] = 0;
      TENON_ASSIGN_OR_RETURN(all.emplace_back(), Tensor::Allocate(cross.type(), shape));
    }
    all.insert(all.end(), outputs_.begin(), outputs_.end());
    outputs_ = std::move(all);
    return OkStatus();
  }

  // The decoder's first feeds, from the encoder's outputs: logits, hidden states, presents.
  Status TakeOver(Tensor tokens, size_t past_length) {
    const auto rows = static_cast<size_t>(tokens.shape()[0]);
    RunValues encoded = std::move(outputs_);
    outputs_.clear();
    if (encoded.size() != 2 + pasts_) {
      return InvalidArgument("attribute 'encoder': expected {} outputs, got {}", 2 + pasts_,
                             encoded.size());
    }
    size_t past = 2;
    for (const std::string& name : graphs_.decoder_inputs.names) {
      Value& feed = feeds_.emplace_back();
      if (name == "input_ids") {
        feed = std::move(tokens);
      } else if (name == "encoder_input_ids") {
        TENON_ASSIGN_OR_RETURN(feed, RepeatRows(input_, beams_));
      } else if (name == "encoder_attention_mask") {
        if (!mask_.is_tensor()) return InvalidArgument("the encoder takes no attention mask");
        TENON_ASSIGN_OR_RETURN(feed, RepeatRows(mask_.tensor(), beams_));
      } else if (name == "encoder_hidden_states") {
        if (!encoded[1].is_tensor()) return InvalidArgument("the encoder gives no hidden states");
        TENON_ASSIGN_OR_RETURN(feed, RepeatRows(encoded[1].tensor(), beams_));
      } else if (IsPast(name)) {
        const bool is_shared = shares_buffers_ && past < 2 + graphs_.presents;
        TENON_ASSIGN_OR_RETURN(Tensor state, RepeatRows(encoded[past++].tensor(), beams_));
        if (is_shared) {
          TENON_ASSIGN_OR_RETURN(state, Lengthen(state, most_tokens_));
        }
        feed = std::move(state);
      } else {
        const size_t place = feeds_.size() - 1 - first_past_;
        if (place < pasts_ || place - pasts_ >= kSharedInputs) {
          return InvalidArgument("attribute 'decoder': unexpected input '{}'", name);
        }
        TENON_ASSIGN_OR_RETURN(feed, SharedFeed(SharedInput(place - pasts_), rows, past_length));
      }
    }
    return OkStatus();
  }

  Result<Tensor> SharedFeed(SharedInput input, size_t rows, size_t past_length) const {
    if (input == kPastLength) return OneInt(past_length);
    if (input == kBeamWidth) return OneInt(beams_);
    // Rows that continue other rows take the states of these.
    const Shape shape({static_cast<int64_t>(rows / beams_), static_cast<int64_t>(beams_),
                       static_cast<int64_t>(most_tokens_)});
    TENON_ASSIGN_OR_RETURN(Tensor beams, Tensor::Allocate(DataType::kInt32, shape));
    for (size_t row = 0; row < rows; ++row) {
      std::fill_n(beams.data<int32_t>() + row * most_tokens_, most_tokens_,
                  static_cast<int32_t>(row % beams_));
    }
    return beams;
  }

  const EncoderDecoderGraphs& graphs_;
  size_t beams_, most_tokens_;
  size_t pasts_ = 0, first_past_ = 0;
  bool shares_buffers_ = false;
  bool takes_sequence_ = false;
  Tensor start_, input_;
  Value mask_;
  RunValues encoder_feeds_, feeds_, outputs_;
};

}  // namespace

Result<EncoderDecoderGraphs> EncoderDecoderGraphs::Find(const Node& node, bool gives_cross_scores) {
  EncoderDecoderGraphs graphs;
  TENON_ASSIGN_OR_RETURN(graphs.encoder, SubgraphIndex(node, "encoder"));
  TENON_ASSIGN_OR_RETURN(graphs.decoder, SubgraphIndex(node, "decoder"));
  TENON_ASSIGN_OR_RETURN(graphs.encoder_inputs, DecoderInputs::Of(node, graphs.encoder));
  TENON_ASSIGN_OR_RETURN(graphs.decoder_inputs, DecoderInputs::Of(node, graphs.decoder));
  const DecoderInputs& decoder = graphs.decoder_inputs;
  const auto pasts = std::count_if(decoder.names.begin(), decoder.names.end(), IsPast);
  const size_t states = std::max<size_t>(decoder.output_count, 1) - 1;
  graphs.presents = gives_cross_scores ? states / 3 * 2 : states;
  if (decoder.names.empty() || decoder.names[0] != "input_ids" || decoder.output_count == 0 ||
      graphs.presents > static_cast<size_t>(pasts)) {
    return InvalidArgument("attribute 'decoder': expected input_ids and a past for each present");
  }
  if (gives_cross_scores && (states == 0 || states % 3 != 0)) {
    return InvalidArgument(
        "attribute 'decoder': expected two presents and scores of cross attention for each layer, "
        "got {} outputs",
        decoder.output_count);
  }
  const auto& names = graphs.encoder_inputs.names;
  graphs.encoder_decodes =
      std::find(names.begin(), names.end(), "decoder_input_ids") != names.end();
  return graphs;
}

Result<std::unique_ptr<TokenModel>> StartEncoderDecoder(const EncoderDecoderGraphs& graphs,
                                                        const Tensor& input, const Tensor* mask,
                                                        const Tensor& start, size_t beams,
                                                        size_t most_tokens, int32_t pad_token) {
  auto model = std::make_unique<EncoderDecoder>(graphs, beams, most_tokens);
  TENON_RETURN_IF_ERROR(model->Start(input, mask, start, pad_token));
  return std::unique_ptr<TokenModel>(std::move(model));
}

}  // namespace tenon
