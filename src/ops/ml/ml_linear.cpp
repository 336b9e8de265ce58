// ai.onnx.ml: LinearClassifier and LinearRegressor.
#include <algorithm>

#include "base/arithmetic.h"
#include "ops/framework/element.h"
#include "ops/framework/stateful_kernel.h"
#include "ops/ml/ml_scores.h"

namespace tenon {
namespace {

constexpr TypeSet kFeatureTypes = {DataType::kFloat, DataType::kDouble, DataType::kInt64,
                                   DataType::kInt32};

// The dot product of two vectors, added up in lanes so that it is vectorized.
float Dot(const float* a, const float* b, size_t n) {
  constexpr size_t kLanes = 16;
  float sums[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  for (size_t lane = 0; i + lane < n; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  }
  return sums[0];
}

// Calls finish(row, x) for each row of the input as floats, from several threads; `functions` is
// the number of dot products for each row. Coefficients that no feature needs are ignored.
template <class Finish>
Status ForEachRow(KernelContext& context, size_t coefficients, size_t functions,
                  const Finish& finish) {
  TENON_ASSIGN_OR_RETURN(const MatrixSizes sizes, MatrixSizesOf(context.Input(0).shape()));
  const auto expected = CheckedMul(sizes.columns, functions);
  if (!expected || *expected > coefficients) {
    return InvalidArgument(
        "input 0: expected at most {} features for {} coefficients, got shape {}",
        coefficients / functions, coefficients, context.Input(0).shape());
  }
  void* scratch = nullptr;
  TENON_ASSIGN_OR_RETURN(const float* x, InputAs<float>(context, 0, &scratch));
  context.threads().ParallelFor(sizes.rows, CopyGrain(coefficients * sizeof(float)),
                                [&](size_t begin, size_t end) {
                                  for (size_t row = begin; row < end; ++row) {
                                    finish(row, x + row * sizes.columns, sizes.columns);
                                  }
                                });
  return OkStatus();
}

struct RegressorAttrs {
  std::vector<float> coefficients, intercepts;
  int64_t targets = 1;
  std::string post_transform;
  static constexpr auto Fields() {
    return std::tuple(Field("coefficients", &RegressorAttrs::coefficients),
                      Field("intercepts", &RegressorAttrs::intercepts),
                      Field("targets", &RegressorAttrs::targets),
                      Field("post_transform", &RegressorAttrs::post_transform));
  }
};

// LinearRegressor-1: y = coefficients x + intercepts. Intercepts that are not one for each target
// are ignored.
Status InferRegressor(const RegressorAttrs& attrs, ShapeContext& context) {
  if (attrs.targets < 1) {
    return InvalidArgument("attribute 'targets': expected at least 1, got {}", attrs.targets);
  }
  TENON_ASSIGN_OR_RETURN(const SymbolicShape input, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const Dim rows, MatrixRows(input));
  return context.SetOutput(0, {rows, Dim(attrs.targets)}, DataType::kFloat);
}

Status RunRegressor(const RegressorAttrs& attrs, KernelContext& context) {
  TENON_ASSIGN_OR_RETURN(const PostTransform transform,
                         PostTransformFromName(attrs.post_transform));
  const auto targets = static_cast<size_t>(attrs.targets);
  const bool has_intercepts = attrs.intercepts.size() == targets;
  float* output = context.Output(0).data<float>();
  return ForEachRow(context, attrs.coefficients.size(), targets,
                    [&](size_t row, const float* x, size_t columns) {
                      float* y = output + row * targets;
                      for (size_t i = 0; i < targets; ++i) {
                        y[i] = Dot(x, attrs.coefficients.data() + i * columns, columns);
                        if (has_intercepts) y[i] += attrs.intercepts[i];
                      }
                      ApplyPostTransform(transform, y, targets);
                    });
}

struct ClassifierAttrs {
  std::vector<float> coefficients, intercepts;
  std::vector<int64_t> labels_ints;
  std::vector<std::string> labels_strings;
  std::string post_transform;
  static constexpr auto Fields() {
    return std::tuple(Field("coefficients", &ClassifierAttrs::coefficients),
                      Field("intercepts", &ClassifierAttrs::intercepts),
                      Field("classlabels_ints", &ClassifierAttrs::labels_ints),
                      Field("classlabels_strings", &ClassifierAttrs::labels_strings),
                      Field("post_transform", &ClassifierAttrs::post_transform));
  }
};

// Without labels, those of one score are 0 and 1. onnxruntime then gives that score alone.
bool HasNoLabels(const ClassifierAttrs& attrs) {
  return attrs.labels_ints.empty() && attrs.labels_strings.empty() && attrs.intercepts.size() == 1;
}

// LinearClassifier-1. One score for two labels is that of the second label.
Status InferClassifier(const ClassifierAttrs& attrs, ShapeContext& context) {
  const bool has_strings = !attrs.labels_strings.empty();
  if (has_strings && !attrs.labels_ints.empty()) {
    return InvalidArgument("expected either 'classlabels_ints' or 'classlabels_strings'");
  }
  const size_t labels = has_strings ? attrs.labels_strings.size() : attrs.labels_ints.size();
  const size_t scores = attrs.intercepts.size();
  const bool is_bare = HasNoLabels(attrs);
  if (scores == 0 || (!is_bare && labels < std::max<size_t>(scores, scores == 1 ? 2 : 0))) {
    return InvalidArgument("expected a label for each of {} intercepts, or two for one, got {}",
                           scores, labels);
  }
  if (attrs.coefficients.size() % scores != 0) {
    return InvalidArgument(
        "attribute 'coefficients': expected as many for each of {} intercepts, got {}", scores,
        attrs.coefficients.size());
  }
  TENON_ASSIGN_OR_RETURN(const SymbolicShape input, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const Dim rows, MatrixRows(input));
  TENON_RETURN_IF_ERROR(
      context.SetOutput(0, {rows}, has_strings ? DataType::kString : DataType::kInt64));
  const Dim width(static_cast<int64_t>(scores == 1 && !is_bare ? 2 : scores));
  return context.SetOutput(1, {rows, width}, DataType::kFloat);
}

class ClassifierKernel final : public StatefulKernel<InferClassifier> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    const bool is_bare = HasNoLabels(attrs_);
    labels_ = {is_bare ? std::vector<int64_t>{0, 1} : attrs_.labels_ints, attrs_.labels_strings};
    has_both_scores_ = attrs_.intercepts.size() == 1 && !is_bare;
    TENON_ASSIGN_OR_RETURN(transform_, PostTransformFromName(attrs_.post_transform));
    return OkStatus();
  }

  Status Run(KernelContext& context) const override {
    const size_t scores = attrs_.intercepts.size();
    const size_t width = has_both_scores_ ? 2 : scores;
    if (!context.HasOutput(1)) return NotImplemented("LinearClassifier without scores");
    float* output = context.Output(1).data<float>();
    return ForEachRow(
        context, attrs_.coefficients.size(), scores,
        [&](size_t row, const float* x, size_t columns) {
          float* y = output + row * width;
          for (size_t i = 0; i < scores; ++i) {
            y[i] = Dot(x, attrs_.coefficients.data() + i * columns, columns) + attrs_.intercepts[i];
          }
          const size_t best = scores == 1
                                  ? static_cast<size_t>(y[0] > 0)
                                  : static_cast<size_t>(std::max_element(y, y + scores) - y);
          if (context.HasOutput(0)) labels_.Write(best, row, context.Output(0));
          if (has_both_scores_) {
            ApplyToBinaryScore(transform_, false, y);
          } else {
            ApplyPostTransform(transform_, y, width);
          }
        });
  }

 private:
  ClassLabels labels_;
  bool has_both_scores_ = false;  // one for each of two labels, from one function
  PostTransform transform_ = PostTransform::kNone;
};

constexpr OpRow kRows[] = {
    OpClass<ClassifierKernel>("LinearClassifier",
                              {.domain = "ai.onnx.ml", .since = 1, .types = kFeatureTypes}),
    Op<InferRegressor, RunRegressor>("LinearRegressor",
                                     {.domain = "ai.onnx.ml", .since = 1, .types = kFeatureTypes}),
};

}  // namespace

TENON_OP_FAMILY(MlLinear, kRows);

}  // namespace tenon
