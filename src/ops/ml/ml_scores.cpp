#include "ops/ml/ml_scores.h"

#include <algorithm>
#include <cmath>

#include "base/arithmetic.h"
#include "ops/framework/element_conversion.h"

namespace tenon {
namespace {

// 1 / (1 + exp(-x)), to the last places of small results too.
template <class T>
T Logistic(T x) {
  const T e = std::exp(-std::abs(x));
  return (x < 0 ? e : 1) / (1 + e);
}

// sqrt(2) erfinv(2p - 1) with Winitzki's approximation of erfinv.
template <class T>
T Probit(T p) {
  constexpr T kA = T(0.147);
  constexpr T kTwoOverPiA = 2 / (T(3.141592653589793) * kA);
  const T x = 2 * p - 1;
  const T log = std::log((1 - x) * (1 + x));
  const T v = kTwoOverPiA + T(0.5) * log;
  const T inverse = std::sqrt(-v + std::sqrt(v * v - log / kA));
  return std::sqrt(T(2)) * (x < 0 ? -inverse : inverse);
}

// Scores of zero stay zero if `keep_zeros`.
template <class T>
void Softmax(T* scores, size_t n, bool keep_zeros) {
  constexpr T kZero = T(1e-7);
  const T largest = *std::max_element(scores, scores + n);
  T sum = 0;
  for (size_t i = 0; i < n; ++i) {
    if (keep_zeros && std::abs(scores[i]) <= kZero) {
      scores[i] = 0;
    } else {
      scores[i] = std::exp(scores[i] - largest);
      sum += scores[i];
    }
  }
  if (sum == 0) return;
  for (size_t i = 0; i < n; ++i) scores[i] /= sum;
}

}  // namespace

Result<PostTransform> PostTransformFromName(std::string_view name) {
  if (name.empty() || name == "NONE") return PostTransform::kNone;
  if (name == "SOFTMAX") return PostTransform::kSoftmax;
  if (name == "LOGISTIC") return PostTransform::kLogistic;
  if (name == "SOFTMAX_ZERO") return PostTransform::kSoftmaxZero;
  if (name == "PROBIT") return PostTransform::kProbit;
  return InvalidArgument(
      "attribute 'post_transform': expected NONE, SOFTMAX, LOGISTIC, SOFTMAX_ZERO or PROBIT, got "
      "'{}'",
      name);
}

template <class T>
void ApplyPostTransform(PostTransform transform, T* scores, size_t n) {
  if (transform == PostTransform::kProbit) {
    for (size_t i = 0; i < n; ++i) scores[i] = Probit(scores[i]);
  } else if (n > 1 && transform == PostTransform::kLogistic) {
    for (size_t i = 0; i < n; ++i) scores[i] = Logistic(scores[i]);
  } else if (n > 1 && transform != PostTransform::kNone) {
    Softmax(scores, n, transform == PostTransform::kSoftmaxZero);
  }
}

template void ApplyPostTransform(PostTransform, float*, size_t);
template void ApplyPostTransform(PostTransform, double*, size_t);

void ApplyToBinaryScore(PostTransform transform, bool symmetric, float* scores) {
  const float s = scores[0];
  switch (transform) {
    case PostTransform::kLogistic:
      scores[0] = Logistic(-s);
      scores[1] = Logistic(s);
      return;
    case PostTransform::kProbit:
      scores[0] = Probit(s);
      scores[1] = 0;
      return;
    default:
      scores[0] = symmetric ? -s : 1 - s;
      scores[1] = s;
  }
}

void ClassLabels::Write(size_t class_index, size_t i, Tensor& labels) const {
  if (strings.empty()) {
    labels.data<int64_t>()[i] = integers[class_index];
  } else {
    labels.data<std::string>()[i] = strings[class_index];
  }
}

Result<MatrixSizes> MatrixSizesOf(const Shape& shape) {
  if (shape.rank() == 1) return MatrixSizes{1, static_cast<size_t>(shape[0])};
  if (shape.rank() == 2) {
    return MatrixSizes{static_cast<size_t>(shape[0]), static_cast<size_t>(shape[1])};
  }
  return InvalidArgument("input 0: expected rank 1 or 2, got shape {}", shape);
}

Result<Dim> MatrixRows(const SymbolicShape& shape) {
  if (shape.rank() == 1) return Dim(1);
  if (shape.rank() == 2) return shape[0];
  return InvalidArgument("input 0: expected rank 1 or 2, got shape {}", shape);
}

template <class T>
Result<const T*> InputAs(KernelContext& context, size_t reserved, void** scratch) {
  const Tensor& input = context.Input(0);
  const bool converts = input.type() != DataTypeOf<T>();
  constexpr size_t kAlignment = 64;
  const size_t offset = RoundUp(reserved, kAlignment);
  const size_t bytes = offset + (converts ? static_cast<size_t>(input.size()) * sizeof(T) : 0);
  *scratch = bytes > 0 ? context.Scratch(bytes) : nullptr;
  if (bytes > 0 && *scratch == nullptr) return RuntimeException("out of memory: {} bytes", bytes);
  if (!converts) return input.data<T>();
  Tensor copy = Tensor::View(DataTypeOf<T>(), input.shape(), static_cast<char*>(*scratch) + offset);
  TENON_RETURN_IF_ERROR(ConvertElements(input, copy, {}, context.threads()));
  return copy.data<T>();
}

template Result<const float*> InputAs<float>(KernelContext&, size_t, void**);
template Result<const double*> InputAs<double>(KernelContext&, size_t, void**);

}  // namespace tenon
