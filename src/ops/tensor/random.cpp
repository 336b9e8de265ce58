// RandomNormal, RandomUniform, their Like forms, Bernoulli and Multinomial. With a seed every run
// gives the same numbers; without one, each run gives others.
#include <algorithm>
#include <cmath>
#include <span>

#include "ops/framework/element.h"
#include "ops/framework/stateful_kernel.h"
#include "ops/tensor/random_numbers.h"

namespace tenon {
namespace {

Status CheckFloat(DataType type) {
  if (kFloats.Contains(type)) return OkStatus();
  return InvalidArgument("expected a floating-point type for the output, got {}",
                         DataTypeName(type));
}

// A row of numbers of type T, each a function of its position.
template <class T, class Make>
void FillRow(ThreadPool& threads, T* y, size_t n, const Make& make) {
  constexpr size_t kGrain = 4096;
  threads.ParallelFor(n, kGrain, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) y[i] = make(i);
  });
}

template <class T>
T FromDouble(double value) {
  if constexpr (std::is_same_v<T, double>) {
    return value;
  } else {
    return T(static_cast<float>(value));
  }
}

struct Normal {
  float mean = 0, scale = 1;
  static constexpr auto Fields() {
    return std::tuple(Field("mean", &Normal::mean), Field("scale", &Normal::scale));
  }
  double operator()(const RandomNumbers& numbers, size_t i) const {
    return mean + scale * numbers.Normal(i);
  }
};

struct Uniform {
  float low = 0, high = 1;
  static constexpr auto Fields() {
    return std::tuple(Field("low", &Uniform::low), Field("high", &Uniform::high));
  }
  double operator()(const RandomNumbers& numbers, size_t i) const {
    return low + (static_cast<double>(high) - low) * numbers.Uniform(i);
  }
};

// RandomNormal-1, RandomUniform-1, and their Like forms, which have the input's shape and, by
// default, its type.
template <class Distribution>
struct RandomAttrs : Distribution {
  std::optional<DataType> dtype;
  std::optional<float> seed;
  std::vector<int64_t> shape;
  static constexpr auto Fields() {
    return std::tuple_cat(Distribution::Fields(), std::tuple(Field("dtype", &RandomAttrs::dtype),
                                                             Field("seed", &RandomAttrs::seed),
                                                             Field("shape", &RandomAttrs::shape)));
  }
};

template <class Attrs>
Status InferRandom(const Attrs& attrs, ShapeContext& context) {
  const DataType type = attrs.dtype.value_or(DataType::kFloat);
  TENON_RETURN_IF_ERROR(CheckFloat(type));
  for (const int64_t dim : attrs.shape) {
    if (dim < 0) {
      return InvalidArgument("attribute 'shape': expected entries >= 0, got {}",
                             Shape(attrs.shape));
    }
  }
  return context.SetOutput(0, Shape(attrs.shape), type);
}

template <class Attrs>
Status InferRandomLike(const Attrs& attrs, ShapeContext& context) {
  const DataType type = attrs.dtype.value_or(context.ElementType(0));
  if (type != DataType::kUndefined) TENON_RETURN_IF_ERROR(CheckFloat(type));
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  return context.SetOutput(0, std::move(shape), type);
}

template <auto Infer>
class RandomKernel final : public StatefulKernel<Infer> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(this->Bind(info));
    source_.SetSeed(this->attrs_.seed);
    return OkStatus();
  }

  Status Run(KernelContext& context) const override {
    const RandomNumbers numbers = source_.ForRun();
    Tensor& y = context.Output(0);
    VisitNumber(y.type(), [&](auto number) {
      using T = decltype(number);
      FillRow(context.threads(), y.data<T>(), static_cast<size_t>(y.size()),
              [&](size_t i) { return FromDouble<T>(this->attrs_(numbers, i)); });
    });
    return OkStatus();
  }

 private:
  RandomSource source_;
};

// Bernoulli-15: 1 with the probability in the input, else 0.
struct BernoulliAttrs {
  std::optional<DataType> dtype;
  std::optional<float> seed;
  static constexpr auto Fields() {
    return std::tuple(Field("dtype", &BernoulliAttrs::dtype), Field("seed", &BernoulliAttrs::seed));
  }
};

Status InferBernoulli(const BernoulliAttrs& attrs, ShapeContext& context) {
  const DataType type = attrs.dtype.value_or(context.ElementType(0));
  constexpr TypeSet kResults = kNumbers | TypeSet{DataType::kBool};
  if (type != DataType::kUndefined && !kResults.Contains(type)) {
    return InvalidArgument("attribute 'dtype': expected a number or bool, got {}",
                           DataTypeName(type));
  }
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  return context.SetOutput(0, std::move(shape), type);
}

class BernoulliKernel final : public StatefulKernel<InferBernoulli> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    source_.SetSeed(attrs_.seed);
    return OkStatus();
  }

  Status Run(KernelContext& context) const override {
    const RandomNumbers numbers = source_.ForRun();
    const Tensor& x = context.Input(0);
    Tensor& y = context.Output(0);
    VisitNumber(x.type(), [&](auto probability) {
      using P = decltype(probability);
      VisitNumber(y.type(), [&](auto number) {
        using T = decltype(number);
        const T zero = T(0.0f), one = T(1.0f);
        FillRow(context.threads(), y.data<T>(), static_cast<size_t>(y.size()),
                [&](size_t i) { return numbers.Uniform(i) < Widen(x.data<P>()[i]) ? one : zero; });
      });
    });
    return OkStatus();
  }

 private:
  RandomSource source_;
};

// Multinomial-7: for each row of unnormalized logarithms of probabilities, `sample_size` classes.
struct MultinomialAttrs {
  std::optional<DataType> dtype;
  int64_t sample_size = 1;
  std::optional<float> seed;
  static constexpr auto Fields() {
    return std::tuple(Field("dtype", &MultinomialAttrs::dtype),
                      Field("sample_size", &MultinomialAttrs::sample_size),
                      Field("seed", &MultinomialAttrs::seed));
  }
};

Status InferMultinomial(const MultinomialAttrs& attrs, ShapeContext& context) {
  const DataType type = attrs.dtype.value_or(DataType::kInt32);
  if (!kIndices.Contains(type)) {
    return InvalidArgument("attribute 'dtype': expected int32 or int64, got {}",
                           DataTypeName(type));
  }
  if (attrs.sample_size < 1) {
    return InvalidArgument("attribute 'sample_size': expected at least 1, got {}",
                           attrs.sample_size);
  }
  TENON_ASSIGN_OR_RETURN(const SymbolicShape shape, context.InputOfRank(0, 2));
  return context.SetOutput(0, {shape[0], Dim(attrs.sample_size)}, type);
}

class MultinomialKernel final : public StatefulKernel<InferMultinomial> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    source_.SetSeed(attrs_.seed);
    return OkStatus();
  }

  Status Run(KernelContext& context) const override {
    const RandomNumbers numbers = source_.ForRun();
    const Tensor& x = context.Input(0);
    Tensor& y = context.Output(0);
    const auto rows = static_cast<size_t>(x.shape()[0]);
    const auto classes = static_cast<size_t>(x.shape()[1]);
    const auto samples = static_cast<size_t>(y.shape()[1]);
    auto* const memory = static_cast<double*>(context.Scratch(classes * sizeof(double)));
    if (memory == nullptr) return RuntimeException("out of memory for {} classes", classes);
    const std::span sums(memory, classes);
    for (size_t row = 0; row < rows; ++row) {
      TENON_RETURN_IF_ERROR(Accumulate(x, row, sums));
      for (size_t i = row * samples; i < (row + 1) * samples; ++i) {
        const double point = numbers.Uniform(i) * sums.back();
        const auto drawn = std::upper_bound(sums.begin(), sums.end() - 1, point) - sums.begin();
        if (y.type() == DataType::kInt32) {
          y.data<int32_t>()[i] = static_cast<int32_t>(drawn);
        } else {
          y.data<int64_t>()[i] = drawn;
        }
      }
    }
    return OkStatus();
  }

 private:
  // The sums of the probabilities of a row, up to each class.
  static Status Accumulate(const Tensor& x, size_t row, std::span<double> sums) {
    VisitNumber(x.type(), [&](auto number) {
      using T = decltype(number);
      const T* logits = x.data<T>() + row * sums.size();
      for (size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<double>(Widen(logits[i]));
    });
    const double most = sums.empty() ? -INFINITY : *std::max_element(sums.begin(), sums.end());
    if (!std::isfinite(most)) {
      return InvalidArgument("input 0: row {} has no class of finite probability", row);
    }
    double sum = 0;
    for (double& value : sums) value = sum += std::exp(value - most);
    if (std::isnan(sum)) return InvalidArgument("input 0: row {} has NaN in it", row);
    return OkStatus();
  }

  RandomSource source_;
};

constexpr KernelTraits kRandom = {.is_stateful = true};

template <class Distribution>
constexpr OpRow RandomRow(std::string_view name) {
  return OpClass<RandomKernel<&InferRandom<RandomAttrs<Distribution>>>>(
      name, {.since = 1, .traits = kRandom});
}
template <class Distribution>
constexpr OpRow LikeRow(std::string_view name) {
  return OpClass<RandomKernel<&InferRandomLike<RandomAttrs<Distribution>>>>(
      name, {.since = 1, .traits = kRandom});
}

constexpr OpRow kRows[] = {
    RandomRow<Normal>("RandomNormal"),
    RandomRow<Uniform>("RandomUniform"),
    LikeRow<Normal>("RandomNormalLike"),
    LikeRow<Uniform>("RandomUniformLike"),
    OpClass<BernoulliKernel>("Bernoulli", {.since = 15, .types = kFloats, .traits = kRandom}),
    OpClass<MultinomialKernel>("Multinomial", {.since = 7, .types = kFloats, .traits = kRandom}),
};

}  // namespace

TENON_OP_FAMILY(Random, kRows);

}  // namespace tenon
