#include "ops/generation/cross_scores.h"

#include <algorithm>

#include "ops/framework/element_conversion.h"

namespace tenon {

Status CrossScores::FindPairs(std::span<const Value> layers) {
  for (size_t layer = 0; !heads_ && layer < layers.size(); ++layer) {
    const auto count = static_cast<size_t>(layers[layer].tensor().shape()[1]);
    for (size_t head = 0; head < count; ++head) pairs_.push_back({layer, head});
  }
  if (!heads_) return OkStatus();
  for (int64_t i = 0; i < heads_->shape()[0]; ++i) {
    const int64_t layer = heads_->data<int32_t>()[2 * i];
    const int64_t head = heads_->data<int32_t>()[2 * i + 1];
    if (layer < 0 || layer >= static_cast<int64_t>(layers.size())) {
      return InvalidArgument("cross_qk_layer_head: expected layers in [0, {}), got {}",
                             layers.size(), layer);
    }
    const int64_t count = layers[static_cast<size_t>(layer)].tensor().shape()[1];
    if (head < 0 || head >= count) {
      return InvalidArgument("cross_qk_layer_head: expected heads in [0, {}), got {}", count, head);
    }
    pairs_.push_back({static_cast<size_t>(layer), static_cast<size_t>(head)});
  }
  return OkStatus();
}

Status CrossScores::Add(std::span<const Value> layers, size_t rows) {
  for (const Value& layer : layers) {
    const Tensor& x = layer.tensor();
    const bool is_float = x.type() == DataType::kFloat || x.type() == DataType::kFloat16;
    if (!is_float || x.rank() != 4 || x.shape()[0] != static_cast<int64_t>(rows) ||
        x.shape()[2] < 1) {
      return InvalidArgument(
          "attribute 'decoder': expected scores of cross attention [{}, heads, length, frames] of "
          "float or float16, got {} {}",
          rows, DataTypeName(x.type()), x.shape());
    }
  }
  if (scores_.empty()) {
    TENON_RETURN_IF_ERROR(FindPairs(layers));
    frames_ = static_cast<size_t>(layers[0].tensor().shape()[3]);
  }
  std::vector<float>& kept = scores_.emplace_back(rows * pairs_.size() * frames_);
  std::vector<double> values(frames_);
  auto into = kept.begin();
  for (size_t row = 0; row < rows; ++row) {
    for (const Pair& pair : pairs_) {
      const Tensor& x = layers[pair.layer].tensor();
      const auto heads = static_cast<size_t>(x.shape()[1]);
      const auto length = static_cast<size_t>(x.shape()[2]);
      if (x.shape()[3] != static_cast<int64_t>(frames_) || pair.head >= heads) {
        return InvalidArgument(
            "attribute 'decoder': expected scores of {} frames of cross attention and as many "
            "heads "
            "as before, got {}",
            frames_, x.shape());
      }
      LoadElements(x, ((row * heads + pair.head + 1) * length - 1) * frames_, frames_,
                   values.data());
      into = std::transform(values.begin(), values.end(), into,
                            [](double value) { return static_cast<float>(value); });
    }
  }
  return OkStatus();
}

void CrossScores::Move(std::span<const int32_t> sources) {
  sources_.emplace_back(sources.begin(), sources.end());
}

void CrossScores::Write(size_t row, size_t tokens, float* into) const {
  // The first run of the decoder takes the first token, whose follower the last run chose.
  for (size_t token = tokens; token > 0; --token) {
    const size_t run = token - 1;
    for (size_t pair = 0; run < runs() && pair < pairs(); ++pair) {
      std::copy_n(scores_[run].data() + (row * pairs() + pair) * frames_, frames_,
                  into + (pair * runs() + run) * frames_);
    }
    row = static_cast<size_t>(sources_[run][row]);
  }
}

}  // namespace tenon
