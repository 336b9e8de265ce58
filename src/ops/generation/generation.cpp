#include "ops/generation/generation.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/framework/element_conversion.h"

namespace tenon {
namespace {

Result<double> OneNumber(KernelContext& context, size_t i) {
  const Tensor& tensor = context.Input(i);
  if (tensor.size() != 1) return InvalidArgument("input {}: expected one number", i);
  double value = 0;
  LoadElements(tensor, 0, 1, &value);
  return value;
}

Result<std::span<const int32_t>> Mask(KernelContext& context, size_t i, size_t expected) {
  const Tensor& mask = context.Input(i);
  if (mask.type() != DataType::kInt32 || static_cast<size_t>(mask.size()) != expected) {
    return InvalidArgument("input {}: expected {} numbers, got shape {}", i, expected,
                           mask.shape());
  }
  return std::span<const int32_t>(mask.data<int32_t>(), expected);
}

}  // namespace

Status GenerationAttrs::Check() const {
  if (eos_token < 0 || eos_token > INT32_MAX || pad_token < 0 || pad_token > INT32_MAX) {
    return InvalidArgument("expected tokens for end and padding, got {} and {}", eos_token,
                           pad_token);
  }
  if (ngram_size < 0) {
    return InvalidArgument("attribute 'no_repeat_ngram_size': expected at least 0, got {}",
                           ngram_size);
  }
  return OkStatus();
}

Result<int64_t> IntegerInput(KernelContext& context, size_t i, int64_t fallback, int64_t least,
                             int64_t most) {
  if (!context.HasInput(i)) return fallback;
  TENON_ASSIGN_OR_RETURN(const double value, OneNumber(context, i));
  if (!(value >= static_cast<double>(least) && value <= static_cast<double>(most))) {
    return InvalidArgument("input {}: expected a number in [{}, {}], got {}", i, least, most,
                           value);
  }
  return static_cast<int64_t>(value);
}

Result<float> FloatInput(KernelContext& context, size_t i, float fallback) {
  if (!context.HasInput(i)) return fallback;
  TENON_ASSIGN_OR_RETURN(const double value, OneNumber(context, i));
  return static_cast<float>(value);
}

Result<Tensor> StartTokens(int64_t batch, int64_t token) {
  if (token < 0 || token > INT32_MAX) {
    return InvalidArgument("attribute 'decoder_start_token_id': expected a token, got {}", token);
  }
  TENON_ASSIGN_OR_RETURN(Tensor start, Tensor::Allocate(DataType::kInt32, {batch, 1}));
  std::fill_n(start.data<int32_t>(), start.size(), static_cast<int32_t>(token));
  return start;
}

Status SetMasks(KernelContext& context, size_t allowed, size_t allowed_next, size_t batch,
                size_t vocabulary, TokenRules& rules) {
  if (context.HasInput(allowed)) {
    TENON_ASSIGN_OR_RETURN(rules.allowed, Mask(context, allowed, vocabulary));
  }
  if (context.HasInput(allowed_next)) {
    TENON_ASSIGN_OR_RETURN(rules.allowed_next, Mask(context, allowed_next, batch * vocabulary));
  }
  return OkStatus();
}

Status LastLogits(const Tensor& logits, size_t copies, size_t vocabulary,
                  std::vector<float>& scores) {
  const bool is_float = logits.type() == DataType::kFloat || logits.type() == DataType::kFloat16;
  if (!is_float || logits.rank() != 3 || logits.shape()[1] < 1 ||
      static_cast<size_t>(logits.shape()[2]) < vocabulary) {
    return InvalidArgument("expected logits [rows, length, {}] of float or float16, got {} {}",
                           vocabulary, DataTypeName(logits.type()), logits.shape());
  }
  const auto rows = static_cast<size_t>(logits.shape()[0]);
  const auto length = static_cast<size_t>(logits.shape()[1]);
  const auto stride = static_cast<size_t>(logits.shape()[2]);
  scores.resize(rows * copies * vocabulary);
  std::vector<double> row_values(logits.type() == DataType::kFloat ? 0 : vocabulary);
  float* into = scores.data();
  for (size_t row = 0; row < rows; ++row) {
    const size_t first = ((row + 1) * length - 1) * stride;
    if (logits.type() == DataType::kFloat) {
      std::copy_n(logits.data<float>() + first, vocabulary, into);
    } else {
      LoadElements(logits, first, vocabulary, row_values.data());
      std::copy(row_values.begin(), row_values.end(), into);
    }
    for (size_t copy = 1; copy < copies; ++copy) {
      std::copy_n(into, vocabulary, into + copy * vocabulary);
    }
    into += copies * vocabulary;
  }
  return OkStatus();
}

}  // namespace tenon
