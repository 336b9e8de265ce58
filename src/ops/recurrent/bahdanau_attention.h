// The attention of AttnLSTM: after each step a memory of vectors is averaged, weighted by their
// match with the state, and the mean is an input of the next step.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "ops/recurrent/recurrent.h"
#include "runtime/kernel_context.h"

namespace tenon {

// T is float or double. The state of a row of the batch, in one direction, has `elements()`
// elements. It begins with the part that is fed back, `fed_back()` elements.
template <class T>
class BahdanauAttention {
 public:
  // Errors: kInvalidArgument naming an input that is missing, lengths out of range.
  Status Prepare(const KernelContext& context) {
    context_ = &context;
    const Shape& keys = context.Input(kInputMemoryWeight).shape();
    const Shape& memory = context.Input(kInputMemory).shape();
    most_ = static_cast<size_t>(memory[1]);
    depth_ = static_cast<size_t>(memory[2]);
    width_ = static_cast<size_t>(keys[2]);
    hidden_ = static_cast<size_t>(context.Input(kInputR).shape()[2]);
    fed_back_ = depth_;
    if (context.HasInput(kInputAttentionWeight)) {
      fed_back_ = static_cast<size_t>(context.Input(kInputAttentionWeight).shape()[2]);
    }
    if (!context.HasInput(kInputMemoryLens)) return OkStatus();
    const Tensor& lens = context.Input(kInputMemoryLens);
    lens_ = lens.data<int32_t>();
    for (int64_t b = 0; b < lens.size(); ++b) {
      if (lens_[b] >= 0 && static_cast<size_t>(lens_[b]) <= most_) continue;
      return InvalidArgument("input {}: expected lengths in [0, {}], got {}",
                             size_t{kInputMemoryLens}, most_, lens_[b]);
    }
    return OkStatus();
  }

  size_t fed_back() const { return fed_back_; }
  size_t elements() const { return fed_back_ + width_ + most_ + depth_ + most_ * width_; }

  // Feeds back zeros, and multiplies the memory by its weights.
  void Begin(size_t direction, size_t batch, T* own) const {
    const Parts parts = PartsOf(own);
    std::fill_n(parts.fed_back, fed_back_, T(0));
    const T* weights = Of(kInputMemoryWeight, direction * depth_ * width_);
    for (size_t i = 0; i < Length(batch); ++i) {
      T* key = parts.keys + i * width_;
      std::fill_n(key, width_, T(0));
      AddProduct({Memory(batch, i), depth_}, weights, {key, width_});
    }
  }

  // `h`: the state, `hidden` elements.
  void Step(size_t direction, size_t batch, const T* h, T* own) const {
    const Parts parts = PartsOf(own);
    const size_t length = Length(batch);
    std::fill_n(parts.query, width_, T(0));
    AddProduct({h, hidden_}, Of(kInputQueryWeight, direction * hidden_ * width_),
               {parts.query, width_});
    const T* weights = Of(kInputScoreWeight, direction * width_);
    for (size_t i = 0; i < length; ++i) {
      const T* key = parts.keys + i * width_;
      T score = 0;
      for (size_t j = 0; j < width_; ++j) score += weights[j] * std::tanh(key[j] + parts.query[j]);
      parts.scores[i] = score;
    }
    Softmax({parts.scores, length});
    std::fill_n(parts.mean, depth_, T(0));
    AddProduct({parts.scores, length}, Memory(batch, 0), {parts.mean, depth_});
    if (!context_->HasInput(kInputAttentionWeight)) {
      std::copy_n(parts.mean, depth_, parts.fed_back);
      return;
    }
    const size_t rows = depth_ + hidden_;
    const T* layer = Of(kInputAttentionWeight, direction * rows * fed_back_);
    std::fill_n(parts.fed_back, fed_back_, T(0));
    AddProduct({h, hidden_}, layer, {parts.fed_back, fed_back_});
    AddProduct({parts.mean, depth_}, layer + hidden_ * fed_back_, {parts.fed_back, fed_back_});
  }

 private:
  struct Parts {
    T *fed_back, *query, *scores, *mean, *keys;
  };
  Parts PartsOf(T* own) const {
    T* query = own + fed_back_;
    T* scores = query + width_;
    T* mean = scores + most_;
    return {own, query, scores, mean, mean + depth_};
  }

  const T* Of(size_t input, size_t offset) const {
    return context_->Input(input).template data<T>() + offset;
  }
  const T* Memory(size_t batch, size_t i) const {
    return Of(kInputMemory, (batch * most_ + i) * depth_);
  }
  size_t Length(size_t batch) const { return lens_ ? static_cast<size_t>(lens_[batch]) : most_; }

  // y += x W, W being [x.size(), y.size()].
  static void AddProduct(std::span<const T> x, const T* w, std::span<T> y) {
    for (size_t i = 0; i < x.size(); ++i) {
      for (size_t j = 0; j < y.size(); ++j) y[j] += x[i] * w[i * y.size() + j];
    }
  }

  static void Softmax(std::span<T> x) {
    if (x.empty()) return;
    const T most = *std::max_element(x.begin(), x.end());
    T sum = 0;
    for (T& value : x) sum += value = std::exp(value - most);
    for (T& value : x) value /= sum;
  }

  const KernelContext* context_ = nullptr;
  size_t most_ = 0, depth_ = 0, width_ = 0, hidden_ = 0, fed_back_ = 0;
  const int32_t* lens_ = nullptr;
};

}  // namespace tenon
