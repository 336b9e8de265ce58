// ai.onnx.ml operators on single features: Normalizer, Scaler, Imputer, Binarizer,
// ArrayFeatureExtractor.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/elementwise/elementwise.h"
#include "ops/framework/element.h"
#include "ops/framework/indices.h"
#include "ops/framework/op_row.h"
#include "ops/ml/ml_scores.h"

namespace tenon {
namespace {

constexpr TypeSet kFeatureTypes = {DataType::kFloat, DataType::kDouble, DataType::kInt64,
                                   DataType::kInt32};

Status InferSameShape(ShapeContext& context, DataType type) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape input, context.Input(0));
  return context.SetOutput(0, std::move(input), type);
}

// Normalizer-1: rows divided by their largest element (signed, as ONNX Runtime does), sum of
// magnitudes, or length. Rows whose divisor is 0 stay.
struct NormalizerAttrs {
  std::string norm;
  static constexpr auto Fields() { return std::tuple(Field("norm", &NormalizerAttrs::norm)); }
};

Status InferNormalizer(const NormalizerAttrs& attrs, ShapeContext& context) {
  if (attrs.norm != "MAX" && attrs.norm != "L1" && attrs.norm != "L2") {
    return InvalidArgument("attribute 'norm': expected MAX, L1 or L2, got '{}'", attrs.norm);
  }
  TENON_ASSIGN_OR_RETURN(const SymbolicShape input, context.Input(0));
  TENON_RETURN_IF_ERROR(MatrixRows(input));
  return context.SetOutput(0, input, DataType::kFloat);
}

// Folds take(x) of all elements by join(a, b), four strands side by side, which start at `first`.
template <class T, class A, class Take, class Join>
A Folded(std::span<const T> row, A first, Take&& take, Join&& join) {
  constexpr size_t kStrands = 4;
  A strands[kStrands] = {first, first, first, first};
  size_t i = 0;
  for (; i + kStrands <= row.size(); i += kStrands) {
    for (size_t j = 0; j < kStrands; ++j) {
      strands[j] = join(strands[j], take(static_cast<A>(Widen(row[i + j]))));
    }
  }
  for (; i < row.size(); ++i) strands[0] = join(strands[0], take(static_cast<A>(Widen(row[i]))));
  return join(join(strands[0], strands[1]), join(strands[2], strands[3]));
}

template <class T>
float DivisorOf(std::span<const T> row, std::string_view norm) {
  const auto add = [](double a, double b) { return a + b; };
  if (norm == "MAX") {
    return Folded(
        row, -std::numeric_limits<float>::infinity(), [](float x) { return x; },
        [](float a, float b) { return std::max(a, b); });
  }
  if (norm == "L1") {
    return static_cast<float>(Folded(
        row, 0.0, [](double x) { return std::abs(x); }, add));
  }
  return static_cast<float>(std::sqrt(Folded(
      row, 0.0, [](double x) { return x * x; }, add)));
}

// y = x / divisor.
template <class T>
void Divide(std::span<const T> x, float divisor, float* y) {
  constexpr size_t kWorthACall = 8;
  if (std::is_same_v<T, float> && x.size() >= kWorthACall) {
    const kernels::BinaryFunction divide =
        kernels::FindBinary(kernels::BinaryOp::kDiv, kernels::ElementType::kFloat).vector_scalar;
    return divide(x.data(), &divisor, y, x.size());
  }
  for (size_t i = 0; i < x.size(); ++i) y[i] = static_cast<float>(Widen(x[i])) / divisor;
}

Status RunNormalizer(const NormalizerAttrs& attrs, KernelContext& context) {
  const Tensor& input = context.Input(0);
  TENON_ASSIGN_OR_RETURN(const MatrixSizes sizes, MatrixSizesOf(input.shape()));
  const size_t n = sizes.columns;
  float* output = context.Output(0).data<float>();
  VisitNumber(input.type(), [&](auto number) {
    using T = decltype(number);
    context.threads().ParallelFor(sizes.rows, CopyGrain(n * sizeof(T)),
                                  [&](size_t begin, size_t end) {
                                    for (size_t row = begin; row < end; ++row) {
                                      const std::span<const T> x(input.data<T>() + row * n, n);
                                      const float divisor = DivisorOf(x, attrs.norm);
                                      Divide(x, divisor == 0 ? 1 : divisor, output + row * n);
                                    }
                                  });
  });
  return OkStatus();
}

// The last axis has the features; a list has one entry for each of them or one for all.
Result<size_t> FeaturesOf(const Tensor& input, size_t entries, std::string_view attribute) {
  const size_t features = input.rank() == 0 ? 1 : static_cast<size_t>(input.shape().back());
  if (entries != 1 && entries != features) {
    return InvalidArgument(
        "attribute '{}': expected one entry or one for each of {} features, got "
        "{}",
        attribute, features, entries);
  }
  return features;
}

// Scaler-1: (x - offset) * scale.
struct ScalerAttrs {
  std::vector<float> scale, offset;
  static constexpr auto Fields() {
    return std::tuple(Field("scale", &ScalerAttrs::scale), Field("offset", &ScalerAttrs::offset));
  }
};

Status InferScaler(const ScalerAttrs&, ShapeContext& context) {
  return InferSameShape(context, DataType::kFloat);
}

Status RunScaler(const ScalerAttrs& attrs, KernelContext& context) {
  const Tensor& input = context.Input(0);
  TENON_ASSIGN_OR_RETURN(const size_t features, FeaturesOf(input, attrs.scale.size(), "scale"));
  TENON_RETURN_IF_ERROR(FeaturesOf(input, attrs.offset.size(), "offset"));
  const size_t scale_step = attrs.scale.size() == 1 ? 0 : 1;
  const size_t offset_step = attrs.offset.size() == 1 ? 0 : 1;
  float* output = context.Output(0).data<float>();
  VisitNumber(input.type(), [&](auto number) {
    using T = decltype(number);
    const T* x = input.data<T>();
    context.threads().ParallelFor(
        static_cast<size_t>(input.size()), CopyGrain(sizeof(T)), [&](size_t begin, size_t end) {
          for (size_t i = begin; i < end; ++i) {
            const size_t feature = i % features;
            output[i] = (static_cast<float>(Widen(x[i])) - attrs.offset[feature * offset_step]) *
                        attrs.scale[feature * scale_step];
          }
        });
  });
  return OkStatus();
}

// Imputer-1: replaces one value, such as NaN.
struct ImputerAttrs {
  std::vector<float> imputed_floats;
  std::vector<int64_t> imputed_ints;
  float replaced_float = 0;
  int64_t replaced_int = 0;
  static constexpr auto Fields() {
    return std::tuple(Field("imputed_value_floats", &ImputerAttrs::imputed_floats),
                      Field("imputed_value_int64s", &ImputerAttrs::imputed_ints),
                      Field("replaced_value_float", &ImputerAttrs::replaced_float),
                      Field("replaced_value_int64", &ImputerAttrs::replaced_int));
  }
};

Status InferImputer(const ImputerAttrs&, ShapeContext& context) {
  return InferSameShape(context, context.ElementType(0));
}

template <class T, class A>
Status Impute(const std::vector<A>& imputed, A replaced, std::string_view attribute,
              KernelContext& context) {
  const Tensor& input = context.Input(0);
  TENON_ASSIGN_OR_RETURN(const size_t features, FeaturesOf(input, imputed.size(), attribute));
  const size_t step = imputed.size() == 1 ? 0 : 1;
  const T* x = input.data<T>();
  T* y = context.Output(0).data<T>();
  for (size_t i = 0; i < static_cast<size_t>(input.size()); ++i) {
    bool is_replaced = x[i] == static_cast<T>(replaced);
    if constexpr (std::is_floating_point_v<T>) {
      is_replaced = is_replaced || (std::isnan(replaced) && std::isnan(x[i]));
    }
    y[i] = is_replaced ? static_cast<T>(imputed[i % features * step]) : x[i];
  }
  return OkStatus();
}

Status RunImputer(const ImputerAttrs& attrs, KernelContext& context) {
  return VisitNumber(context.Input(0).type(), [&](auto number) {
    using T = decltype(number);
    if constexpr (std::is_floating_point_v<T>) {
      return Impute<T>(attrs.imputed_floats, attrs.replaced_float, "imputed_value_floats", context);
    } else if constexpr (std::is_integral_v<T>) {
      return Impute<T>(attrs.imputed_ints, attrs.replaced_int, "imputed_value_int64s", context);
    } else {
      return Status(NotImplemented("half precision"));
    }
  });
}

// Binarizer-1: 1 above the threshold, else 0.
struct BinarizerAttrs {
  float threshold = 0;
  static constexpr auto Fields() {
    return std::tuple(Field("threshold", &BinarizerAttrs::threshold));
  }
};

Status InferBinarizer(const BinarizerAttrs&, ShapeContext& context) {
  return InferSameShape(context, context.ElementType(0));
}

Status RunBinarizer(const BinarizerAttrs& attrs, KernelContext& context) {
  const Tensor& input = context.Input(0);
  VisitNumber(input.type(), [&](auto number) {
    using T = decltype(number);
    const T* x = input.data<T>();
    T* y = context.Output(0).data<T>();
    for (int64_t i = 0; i < input.size(); ++i) {
      y[i] = T(static_cast<double>(Widen(x[i])) > attrs.threshold ? 1.0f : 0.0f);
    }
  });
  return OkStatus();
}

// ArrayFeatureExtractor-1: columns of the last axis; a vector counts as one row.
Status InferExtractor(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape input, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape indices, context.Input(1));
  if (input.rank() == 0) return InvalidArgument("input 0: expected rank >= 1, got a scalar");
  if (input.rank() == 1) input = SymbolicShape({Dim(1), input[0]});
  input[input.rank() - 1] = indices.NumElements();
  return context.SetOutput(0, std::move(input));
}

Status RunExtractor(const NoAttrs&, KernelContext& context) {
  const Tensor& input = context.Input(0);
  const Tensor& indices = context.Input(1);
  const int64_t columns = input.shape().back();
  TENON_RETURN_IF_ERROR(CheckIndices(indices, columns, input.rank() - 1));
  const auto n = static_cast<size_t>(indices.size());
  if (n == 0) return InvalidArgument("input 1: expected at least one index");
  VisitElement(input.type(), [&](auto element) {
    using T = decltype(element);
    T* y = context.Output(0).data<T>();
    for (size_t i = 0; i < static_cast<size_t>(context.Output(0).size()); ++i) {
      const size_t column = WrapIndex(indices.data<int64_t>()[i % n], static_cast<size_t>(columns));
      y[i] = input.data<T>()[i / n * static_cast<size_t>(columns) + column];
    }
  });
  return OkStatus();
}

constexpr std::string_view kMl = "ai.onnx.ml";

constexpr OpRow kRows[] = {
    Op<InferNormalizer, RunNormalizer>("Normalizer", {.domain = kMl, .types = kFeatureTypes}),
    Op<InferScaler, RunScaler>("Scaler", {.domain = kMl, .types = kFeatureTypes}),
    Op<InferImputer, RunImputer>("Imputer", {.domain = kMl, .types = kFeatureTypes}),
    Op<InferBinarizer, RunBinarizer>("Binarizer", {.domain = kMl, .types = kFeatureTypes}),
    Op<InferExtractor, RunExtractor>("ArrayFeatureExtractor",
                                     {.domain = kMl, .types = kWholeByteTypes}),
};

}  // namespace

TENON_OP_FAMILY(MlNormalizer, kRows);

}  // namespace tenon
