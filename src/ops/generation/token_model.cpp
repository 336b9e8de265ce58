#include "ops/generation/token_model.h"

#include <algorithm>
#include <cstring>

#include "ir/graph.h"
#include "ops/control/subgraphs.h"

namespace tenon {
namespace {

Result<Tensor> Ints(const Shape& shape) { return Tensor::Allocate(DataType::kInt32, shape); }

class GptModel final : public TokenModel {
 public:
  explicit GptModel(const GptGraphs& graphs) : graphs_(graphs) {}

  Status Start(const Tensor& ids, const Tensor* mask, size_t beams, int32_t pad_token) {
    const auto batch = static_cast<size_t>(ids.shape()[0]);
    const auto length = static_cast<size_t>(ids.shape()[1]);
    TENON_ASSIGN_OR_RETURN(Tensor positions, Ints(ids.shape()));
    TENON_ASSIGN_OR_RETURN(Tensor used, Ints(ids.shape()));
    for (size_t row = 0; row < batch; ++row) {
      int32_t position = 0;
      for (size_t i = row * length; i < (row + 1) * length; ++i) {
        // Padding has no position, even if a given mask says otherwise.
        const bool is_padding = ids.data<int32_t>()[i] == pad_token;
        used.data<int32_t>()[i] = mask ? mask->data<int32_t>()[i] : (is_padding ? 0 : 1);
        positions.data<int32_t>()[i] = is_padding ? 0 : position++;
      }
      next_positions_.insert(next_positions_.end(), beams, position);
    }
    feeds_.resize(graphs_.inputs.names.size());
    TENON_ASSIGN_OR_RETURN(feeds_[0], RepeatRows(ids, beams));
    TENON_ASSIGN_OR_RETURN(feeds_[1], RepeatRows(positions, beams));
    TENON_ASSIGN_OR_RETURN(feeds_[2], RepeatRows(used, beams));
    for (size_t i = 3; i < feeds_.size(); ++i) {
      const ValueType& type = graphs_.inputs.types[i];
      const auto& declared = *type.shape;
      const Shape past(
          {2, static_cast<int64_t>(batch * beams), declared[2].value(), 0, declared[4].value()});
      TENON_ASSIGN_OR_RETURN(feeds_[i], Tensor::Allocate(type.element_type, past));
    }
    return OkStatus();
  }

  Result<Tensor> Run(KernelContext& context) override {
    const size_t graph = is_first_ ? graphs_.first.value_or(graphs_.decoder) : graphs_.decoder;
    is_first_ = false;
    mask_ = feeds_[2].tensor();
    TENON_RETURN_IF_ERROR(context.Subgraph(graph).Run(feeds_, outputs_));
    if (outputs_.size() + 2 != feeds_.size()) {
      return InvalidArgument("attribute 'decoder': expected {} outputs, got {}", feeds_.size() - 2,
                             outputs_.size());
    }
    for (const Value& output : outputs_) {
      if (!output.is_tensor()) return InvalidArgument("attribute 'decoder': expected tensors");
    }
    return outputs_[0].tensor();
  }

  Status Advance(std::span<const int32_t> sources, const TokenSequences& sequences) override {
    TENON_ASSIGN_OR_RETURN(feeds_[0], TokensOf(sequences, false));
    TENON_ASSIGN_OR_RETURN(Tensor positions, Ints({static_cast<int64_t>(sequences.rows()), 1}));
    std::copy(next_positions_.begin(), next_positions_.end(), positions.data<int32_t>());
    for (int32_t& position : next_positions_) ++position;
    feeds_[1] = std::move(positions);
    TENON_ASSIGN_OR_RETURN(feeds_[2], LongerMask());
    for (size_t i = 3; i < feeds_.size(); ++i) {
      const Tensor& present = outputs_[i - 2].tensor();
      if (present.rank() != 5) {
        return InvalidArgument("attribute 'decoder': expected presents of rank 5, got shape {}",
                               present.shape());
      }
      if (sources.empty()) {
        feeds_[i] = present;
      } else {
        TENON_ASSIGN_OR_RETURN(feeds_[i], PickRows(present, 1, sources));
      }
    }
    return OkStatus();
  }

 private:
  // The mask of the last run, and 1.
  Result<Tensor> LongerMask() const {
    const int64_t rows = mask_.shape()[0], length = mask_.shape()[1];
    TENON_ASSIGN_OR_RETURN(Tensor mask, Ints({rows, length + 1}));
    for (int64_t row = 0; row < rows; ++row) {
      int32_t* into = mask.data<int32_t>() + row * (length + 1);
      std::copy_n(mask_.data<int32_t>() + row * length, length, into);
      into[length] = 1;
    }
    return mask;
  }

  const GptGraphs& graphs_;
  bool is_first_ = true;
  std::vector<int32_t> next_positions_;
  Tensor mask_;
  RunValues feeds_, outputs_;
};

}  // namespace

Result<DecoderInputs> DecoderInputs::Of(const Node& node, size_t subgraph) {
  const Graph& graph = *node.Subgraphs()[subgraph];
  DecoderInputs result;
  for (const ValueId id : graph.inputs) {
    result.names.push_back(graph.value(id).name);
    result.types.push_back(graph.value(id).type);
  }
  result.output_count = graph.outputs().size();
  return result;
}

Result<GptGraphs> GptGraphs::Find(const Node& node) {
  GptGraphs graphs;
  TENON_ASSIGN_OR_RETURN(graphs.decoder, SubgraphIndex(node, "decoder"));
  if (const Result<size_t> first = SubgraphIndex(node, "init_decoder")) graphs.first = *first;
  TENON_ASSIGN_OR_RETURN(graphs.inputs, DecoderInputs::Of(node, graphs.decoder));
  const DecoderInputs& inputs = graphs.inputs;
  if (inputs.names.size() < 4 || inputs.names.size() != inputs.output_count + 2) {
    return NotImplemented(
        "attribute 'decoder': expected an output for the logits and each past, "
        "got {} inputs and {} outputs",
        inputs.names.size(), inputs.output_count);
  }
  for (size_t i = 3; i < inputs.names.size(); ++i) {
    const auto& shape = inputs.types[i].shape;
    if (!shape || shape->rank() != 5 || !(*shape)[2].is_number() || !(*shape)[4].is_number()) {
      return InvalidArgument(
          "attribute 'decoder': input '{}': expected shape "
          "[2, batch, heads, length, size] with numbers of heads and size",
          inputs.names[i]);
    }
  }
  return graphs;
}

Result<std::unique_ptr<TokenModel>> StartGpt(const GptGraphs& graphs, const Tensor& ids,
                                             const Tensor* mask, size_t beams, int32_t pad_token) {
  auto model = std::make_unique<GptModel>(graphs);
  TENON_RETURN_IF_ERROR(model->Start(ids, mask, beams, pad_token));
  return std::unique_ptr<TokenModel>(std::move(model));
}

Result<Tensor> PickRows(const Tensor& x, size_t axis, std::span<const int32_t> rows) {
  if (x.rank() <= axis) return InvalidArgument("expected rows, got shape {}", x.shape());
  if (x.type() == DataType::kString || IsSubByte(x.type())) {
    return InvalidArgument("expected numbers of whole bytes in a model's state, got {}",
                           DataTypeName(x.type()));
  }
  Shape shape = x.shape();
  const int64_t outer = shape.Product(0, axis), old_rows = shape[axis];
  shape[axis] = static_cast<int64_t>(rows.size());
  TENON_ASSIGN_OR_RETURN(Tensor y, Tensor::Allocate(x.type(), shape));
  TENON_ASSIGN_OR_RETURN(const size_t bytes,
                         DataTypeBytes(x.type(), shape.Product(axis + 1, shape.rank())));
  const auto* from = static_cast<const std::byte*>(x.raw());
  auto* into = static_cast<std::byte*>(y.raw());
  for (int64_t o = 0; o < outer; ++o) {
    for (const int32_t row : rows) {
      if (row < 0 || row >= old_rows) return InvalidArgument("expected {} rows", rows.size());
      if (bytes > 0)
        std::memcpy(into, from + static_cast<size_t>(o * old_rows + row) * bytes, bytes);
      into += bytes;
    }
  }
  return y;
}

Result<Tensor> RepeatRows(const Tensor& x, size_t copies) {
  if (x.rank() == 0) return InvalidArgument("expected rows, got a scalar");
  std::vector<int32_t> rows;
  for (int32_t row = 0; row < x.shape()[0]; ++row) rows.insert(rows.end(), copies, row);
  return PickRows(x, 0, rows);
}

Result<Tensor> TokensOf(const TokenSequences& sequences, bool whole) {
  const size_t length = whole ? sequences.length() : 1;
  TENON_ASSIGN_OR_RETURN(
      Tensor tokens, Ints({static_cast<int64_t>(sequences.rows()), static_cast<int64_t>(length)}));
  for (size_t row = 0; row < sequences.rows(); ++row) {
    const auto from = sequences.Row(row).last(length);
    std::copy(from.begin(), from.end(), tokens.data<int32_t>() + row * length);
  }
  return tokens;
}

}  // namespace tenon
