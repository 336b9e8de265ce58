// ai.onnx.ml: SVMClassifier and SVMRegressor.
#include <algorithm>
#include <cmath>

#include "base/arithmetic.h"
#include "ops/framework/element.h"
#include "ops/framework/stateful_kernel.h"
#include "ops/ml/ml_scores.h"

namespace tenon {
namespace {

constexpr std::string_view kMl = "ai.onnx.ml";
constexpr TypeSet kFeatureTypes = {DataType::kFloat, DataType::kDouble, DataType::kInt64,
                                   DataType::kInt32};

enum class KernelForm : uint8_t { kLinear, kPolynomial, kRadial, kSigmoid };

Result<KernelForm> FormFromName(std::string_view name) {
  if (name == "LINEAR") return KernelForm::kLinear;
  if (name == "POLY") return KernelForm::kPolynomial;
  if (name == "RBF") return KernelForm::kRadial;
  if (name == "SIGMOID") return KernelForm::kSigmoid;
  return InvalidArgument("attribute 'kernel_type': expected LINEAR, POLY, RBF or SIGMOID, got '{}'",
                         name);
}

// The kernel function of two vectors in a support vector machine. Sums over the support vectors are
// doubles, because large coefficients cancel in them.
struct SvmKernel {
  KernelForm form = KernelForm::kLinear;
  float gamma = 0, coef0 = 0, degree = 0;

  // `params` is empty or gamma, coef0, degree.
  static Result<SvmKernel> Of(std::string_view name, const std::vector<float>& params) {
    SvmKernel kernel;
    TENON_ASSIGN_OR_RETURN(kernel.form, FormFromName(name));
    if (params.empty()) return kernel;
    if (params.size() != 3) {
      return InvalidArgument("attribute 'kernel_params': expected 3 entries, got {}",
                             params.size());
    }
    kernel.gamma = params[0];
    kernel.coef0 = params[1];
    kernel.degree = params[2];
    return kernel;
  }

  float operator()(const float* a, const float* b, size_t n) const {
    if (form == KernelForm::kRadial) return std::exp(-gamma * SumOf(a, b, n, SquaredDifference));
    const float dot = SumOf(a, b, n, Product);
    switch (form) {
      case KernelForm::kPolynomial:
        return std::pow(gamma * dot + coef0, degree);
      case KernelForm::kSigmoid:
        return std::tanh(gamma * dot + coef0);
      default:
        return dot;
    }
  }

 private:
  static float Product(float a, float b) { return a * b; }
  static float SquaredDifference(float a, float b) { return (a - b) * (a - b); }

  // Added up in lanes so that it is vectorized.
  template <class Term>
  static float SumOf(const float* a, const float* b, size_t n, const Term& term) {
    constexpr size_t kLanes = 16;
    float sums[kLanes] = {};
    size_t i = 0;
    for (; i + kLanes <= n; i += kLanes) {
      for (size_t lane = 0; lane < kLanes; ++lane) sums[lane] += term(a[i + lane], b[i + lane]);
    }
    for (size_t lane = 0; i + lane < n; ++lane) sums[lane] += term(a[i + lane], b[i + lane]);
    for (size_t half = kLanes / 2; half > 0; half /= 2) {
      for (size_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
    }
    return sums[0];
  }
};

// Calls body(row, x, scratch) for each row of the input as floats, from several threads. `scratch`
// has `scratch_floats` floats that no other row uses meanwhile; a row costs some `row_work` steps.
template <class Body>
Status ForEachRow(KernelContext& context, size_t columns, size_t scratch_floats, size_t row_work,
                  const Body& body) {
  TENON_ASSIGN_OR_RETURN(const MatrixSizes sizes, MatrixSizesOf(context.Input(0).shape()));
  if (sizes.columns != columns) {
    return InvalidArgument("input 0: expected {} features, got shape {}", columns,
                           context.Input(0).shape());
  }
  const size_t grain = CopyGrain(row_work * sizeof(float));
  const size_t tasks = CeilDiv(sizes.rows, grain);
  const size_t scratch_bytes = scratch_floats * sizeof(float);
  const size_t reserved = scratch_bytes == 0 ? 0 : context.TaskScratchBytes(tasks, scratch_bytes);
  void* memory = nullptr;
  TENON_ASSIGN_OR_RETURN(const float* x, InputAs<float>(context, reserved, &memory));
  context.ForEachTaskIn(static_cast<std::byte*>(memory), tasks, scratch_bytes,
                        [&](size_t task, std::byte* scratch) {
                          const size_t end = std::min(sizes.rows, (task + 1) * grain);
                          for (size_t row = task * grain; row < end; ++row) {
                            body(row, x + row * columns, reinterpret_cast<float*>(scratch));
                          }
                        });
  return OkStatus();
}

// SVMRegressor-1: a weighted sum of kernels with the support vectors, or a linear function if there
// are none. For one class: 1 where it is positive, else -1.
struct RegressorAttrs {
  std::vector<float> coefficients, kernel_params, rho, support_vectors;
  std::string kernel_type, post_transform;
  int64_t n_supports = 0;
  bool one_class = false;
  static constexpr auto Fields() {
    using A = RegressorAttrs;
    return std::tuple(
        Field("coefficients", &A::coefficients), Field("kernel_params", &A::kernel_params),
        Field("rho", &A::rho), Field("support_vectors", &A::support_vectors),
        Field("kernel_type", &A::kernel_type), Field("post_transform", &A::post_transform),
        Field("n_supports", &A::n_supports), Field("one_class", &A::one_class));
  }
};

Status InferRegressor(const RegressorAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape input, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const Dim rows, MatrixRows(input));
  return context.SetOutput(0, {rows, Dim(1)}, DataType::kFloat);
}

class RegressorKernel final : public StatefulKernel<InferRegressor> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    TENON_ASSIGN_OR_RETURN(kernel_, SvmKernel::Of(attrs_.kernel_type, attrs_.kernel_params));
    TENON_ASSIGN_OR_RETURN(transform_, PostTransformFromName(attrs_.post_transform));
    if (attrs_.rho.empty()) return InvalidArgument("attribute 'rho': expected at least one entry");
    if (attrs_.n_supports <= 0) {
      kernel_.form = KernelForm::kLinear;
      columns_ = attrs_.coefficients.size();
      return OkStatus();
    }
    supports_ = static_cast<size_t>(attrs_.n_supports);
    if (attrs_.coefficients.size() != supports_ || attrs_.support_vectors.size() % supports_ != 0) {
      return InvalidArgument(
          "expected {} coefficients and as many support vectors, got {} and {} numbers", supports_,
          attrs_.coefficients.size(), attrs_.support_vectors.size());
    }
    columns_ = attrs_.support_vectors.size() / supports_;
    return OkStatus();
  }

  Status Run(KernelContext& context) const override {
    float* output = context.Output(0).data<float>();
    const size_t work = std::max<size_t>(1, supports_) * columns_;
    return ForEachRow(context, columns_, 0, work, [&](size_t row, const float* x, float*) {
      const double sum = attrs_.rho[0] + Sum(x);
      output[row] = attrs_.one_class ? (sum > 0 ? 1.0f : -1.0f) : static_cast<float>(sum);
      ApplyPostTransform(transform_, output + row, 1);
    });
  }

 private:
  double Sum(const float* x) const {
    if (supports_ == 0) return kernel_(x, attrs_.coefficients.data(), columns_);
    double sum = 0;
    for (size_t i = 0; i < supports_; ++i) {
      sum += double{attrs_.coefficients[i]} *
             kernel_(x, attrs_.support_vectors.data() + i * columns_, columns_);
    }
    return sum;
  }

  SvmKernel kernel_;
  PostTransform transform_ = PostTransform::kNone;
  size_t supports_ = 0, columns_ = 0;
};

struct ClassifierAttrs {
  std::vector<float> coefficients, kernel_params, prob_a, prob_b, rho, support_vectors;
  std::vector<int64_t> labels_ints, vectors_per_class;
  std::vector<std::string> labels_strings;
  std::string kernel_type, post_transform;
  static constexpr auto Fields() {
    using A = ClassifierAttrs;
    return std::tuple(
        Field("coefficients", &A::coefficients), Field("kernel_params", &A::kernel_params),
        Field("prob_a", &A::prob_a), Field("prob_b", &A::prob_b), Field("rho", &A::rho),
        Field("support_vectors", &A::support_vectors), Field("classlabels_ints", &A::labels_ints),
        Field("vectors_per_class", &A::vectors_per_class),
        Field("classlabels_strings", &A::labels_strings), Field("kernel_type", &A::kernel_type),
        Field("post_transform", &A::post_transform));
  }

  ClassLabels labels() const { return {labels_ints, labels_strings}; }
  size_t classes() const {
    const size_t labels = labels_strings.empty() ? labels_ints.size() : labels_strings.size();
    return std::max<size_t>(labels, 1);
  }
  bool has_supports() const {
    return std::any_of(vectors_per_class.begin(), vectors_per_class.end(),
                       [](int64_t n) { return n > 0; });
  }
  bool has_probabilities() const { return has_supports() && !prob_a.empty(); }
  // Scores before a single one is extended to two.
  size_t scores() const {
    const size_t n = classes();
    return has_supports() && !has_probabilities() ? n * (n - 1) / 2 : n;
  }
  size_t width() const { return scores() == 1 && classes() == 2 ? 2 : scores(); }
};

Status InferClassifier(const ClassifierAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape input, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const Dim rows, MatrixRows(input));
  TENON_RETURN_IF_ERROR(context.SetOutput(
      0, {rows}, attrs.labels_strings.empty() ? DataType::kInt64 : DataType::kString));
  return context.SetOutput(1, {rows, Dim(static_cast<int64_t>(attrs.width()))}, DataType::kFloat);
}

// The probabilities of n classes from those of pairs: `pairs` is [n, n], element (i, j) the
// probability of i against j. Wu, Lin and Weng, "Probability estimates for multi-class
// classification by pairwise coupling", 2004, section 2.4. `work` has n * (n + 1) elements.
void CoupleProbabilities(size_t n, const float* pairs, float* p, float* work) {
  float* q = work;
  float* qp = work + n * n;
  for (size_t t = 0; t < n; ++t) {
    p[t] = 1 / static_cast<float>(n);
    q[t * n + t] = 0;
    for (size_t j = 0; j < n; ++j) {
      if (j == t) continue;
      q[t * n + t] += pairs[j * n + t] * pairs[j * n + t];
      q[t * n + j] = -pairs[j * n + t] * pairs[t * n + j];
    }
  }
  const size_t most_rounds = std::max<size_t>(100, n);
  const float tolerance = 0.005f / static_cast<float>(n);
  for (size_t round = 0; round < most_rounds; ++round) {
    float pqp = 0, largest_error = 0;
    for (size_t t = 0; t < n; ++t) {
      qp[t] = 0;
      for (size_t j = 0; j < n; ++j) qp[t] += q[t * n + j] * p[j];
      pqp += p[t] * qp[t];
    }
    for (size_t t = 0; t < n; ++t) largest_error = std::max(largest_error, std::abs(qp[t] - pqp));
    if (largest_error < tolerance) return;
    for (size_t t = 0; t < n; ++t) {
      const float change = (pqp - qp[t]) / q[t * n + t];
      p[t] += change;
      pqp = (pqp + change * (change * q[t * n + t] + 2 * qp[t])) / (1 + change) / (1 + change);
      for (size_t j = 0; j < n; ++j) {
        qp[j] = (qp[j] + change * q[t * n + j]) / (1 + change);
        p[j] /= 1 + change;
      }
    }
  }
}

// SVMClassifier-1. With support vectors, each pair of classes has a score, which votes for one of
// the two. If the coefficients for it are given, probabilities follow from it. Without support
// vectors, each class has a linear score.
class ClassifierKernel final : public StatefulKernel<InferClassifier> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    labels_ = attrs_.labels();
    if (labels_.size() == 0) return InvalidArgument("expected class labels, got none");
    TENON_ASSIGN_OR_RETURN(kernel_, SvmKernel::Of(attrs_.kernel_type, attrs_.kernel_params));
    TENON_ASSIGN_OR_RETURN(transform_, PostTransformFromName(attrs_.post_transform));
    if (attrs_.coefficients.empty() || attrs_.rho.empty()) {
      return InvalidArgument("expected coefficients and rho, got {} and {}",
                             attrs_.coefficients.size(), attrs_.rho.size());
    }
    all_positive_ = *std::min_element(attrs_.coefficients.begin(), attrs_.coefficients.end()) >= 0;
    return attrs_.has_supports() ? PrepareSupports() : PrepareLinear();
  }

  Status Run(KernelContext& context) const override {
    const size_t classes = attrs_.classes(), width = attrs_.width();
    const size_t pairs = classes * (classes - 1) / 2;
    // Of a row: kernels, scores of pairs, votes, probabilities of pairs and memory to couple them.
    const size_t scratch_floats =
        supports_ + pairs + classes + 2 * classes * classes + classes + width;
    const size_t work = std::max(supports_, classes) * columns_;
    return ForEachRow(
        context, columns_, scratch_floats, work, [&](size_t row, const float* x, float* scratch) {
          float* scores = scratch;
          float* rest = scratch + std::max(width, attrs_.scores());
          const size_t best =
              supports_ > 0 ? ScoreBySupports(x, scores, rest) : ScoreLinear(x, scores);
          Write(row, best, scores, context);
        });
  }

 private:
  Status PrepareSupports() {
    const size_t classes = attrs_.classes();
    if (attrs_.vectors_per_class.size() != classes) {
      return InvalidArgument("attribute 'vectors_per_class': expected {} entries, got {}", classes,
                             attrs_.vectors_per_class.size());
    }
    for (const int64_t count : attrs_.vectors_per_class) {
      if (count < 0 || count > INT32_MAX) {
        return InvalidArgument("attribute 'vectors_per_class': expected counts, got {}", count);
      }
      starts_.push_back(supports_);
      supports_ += static_cast<size_t>(count);
    }
    starts_.push_back(supports_);
    const size_t pairs = classes * (classes - 1) / 2;
    const bool has_room = attrs_.support_vectors.size() % supports_ == 0 &&
                          attrs_.coefficients.size() / supports_ >= classes - 1 &&
                          attrs_.rho.size() >= pairs;
    if (!has_room) {
      return InvalidArgument(
          "expected whole rows for {} support vectors, {} coefficients for each and {} rho, got "
          "{}, "
          "{} and {} numbers",
          supports_, classes - 1, pairs, attrs_.support_vectors.size(), attrs_.coefficients.size(),
          attrs_.rho.size());
    }
    if (attrs_.has_probabilities() &&
        (attrs_.prob_a.size() < pairs || attrs_.prob_b.size() < pairs)) {
      return InvalidArgument("expected {} entries of prob_a and prob_b, got {} and {}", pairs,
                             attrs_.prob_a.size(), attrs_.prob_b.size());
    }
    columns_ = attrs_.support_vectors.size() / supports_;
    return OkStatus();
  }

  Status PrepareLinear() {
    const size_t classes = attrs_.classes();
    if (attrs_.coefficients.size() % classes != 0) {
      return InvalidArgument("expected as many coefficients for each of {} classes, got {}",
                             classes, attrs_.coefficients.size());
    }
    kernel_.form = KernelForm::kLinear;
    columns_ = attrs_.coefficients.size() / classes;
    return OkStatus();
  }

  // Both give the class and its scores.
  size_t ScoreLinear(const float* x, float* scores) const {
    const size_t classes = attrs_.classes();
    for (size_t i = 0; i < classes; ++i) {
      scores[i] = attrs_.rho[0] + kernel_(x, attrs_.coefficients.data() + i * columns_, columns_);
    }
    return static_cast<size_t>(std::max_element(scores, scores + classes) - scores);
  }

  size_t ScoreBySupports(const float* x, float* scores, float* scratch) const {
    const size_t classes = attrs_.classes();
    const bool has_probabilities = attrs_.has_probabilities();
    float* kernels = scratch;
    float* votes = kernels + supports_;
    float* pair_scores = has_probabilities ? votes + classes : scores;
    for (size_t i = 0; i < supports_; ++i) {
      kernels[i] = kernel_(x, attrs_.support_vectors.data() + i * columns_, columns_);
    }
    std::fill_n(votes, classes, 0.0f);
    size_t pair = 0;
    for (size_t i = 0; i < classes; ++i) {
      for (size_t j = i + 1; j < classes; ++j, ++pair) {
        pair_scores[pair] = static_cast<float>(attrs_.rho[pair] + PartOf(i, j - 1, kernels) +
                                               PartOf(j, i, kernels));
        votes[pair_scores[pair] > 0 ? i : j] += 1;
      }
    }
    if (has_probabilities) Couple(pair_scores, scores, pair_scores + pair);
    return static_cast<size_t>(std::max_element(votes, votes + classes) - votes);
  }

  // The part of a sum from the support vectors of one class, with row `row` of the coefficients.
  double PartOf(size_t of_class, size_t row, const float* kernels) const {
    double sum = 0;
    for (size_t i = starts_[of_class]; i < starts_[of_class + 1]; ++i) {
      sum += double{attrs_.coefficients[row * supports_ + i]} * kernels[i];
    }
    return sum;
  }

  void Couple(const float* pair_scores, float* probabilities, float* work) const {
    const size_t n = attrs_.classes();
    float* pairs = work;
    size_t pair = 0;
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = i + 1; j < n; ++j, ++pair) {
        constexpr float kLeast = 1e-7f;
        const float z = pair_scores[pair] * attrs_.prob_a[pair] + attrs_.prob_b[pair];
        const float p = std::clamp(1 / (1 + std::exp(z)), kLeast, 1 - kLeast);
        pairs[i * n + j] = p;
        pairs[j * n + i] = 1 - p;
      }
    }
    CoupleProbabilities(n, pairs, probabilities, work + n * n);
  }

  void Write(size_t row, size_t best, float* scores, KernelContext& context) const {
    const size_t width = attrs_.width();
    if (context.HasOutput(0)) labels_.Write(LabelOf(best, scores), row, context.Output(0));
    if (attrs_.scores() == 1) {
      if (width == 2) {
        ApplyToBinaryScore(transform_, transform_ == PostTransform::kNone, scores);
      } else {
        ApplyPostTransform(transform_, scores, 1);
      }
    } else {
      ApplyPostTransform(transform_, scores, width);
    }
    if (context.HasOutput(1)) {
      std::copy_n(scores, width, context.Output(1).data<float>() + row * width);
    }
  }

  // Of two labels, the second is for linear coefficients that are all positive.
  size_t LabelOf(size_t best, const float* scores) const {
    const bool is_second = supports_ == 0 && attrs_.rho.size() == 1 && labels_.size() == 2 &&
                           all_positive_ && scores[best] >= 0.5f;
    return is_second ? 1 : best;
  }

  ClassLabels labels_;
  SvmKernel kernel_;
  PostTransform transform_ = PostTransform::kNone;
  bool all_positive_ = false;
  size_t supports_ = 0, columns_ = 0;
  std::vector<size_t> starts_;  // of each class's support vectors, and their number
};

constexpr OpRow kRows[] = {
    OpClass<RegressorKernel>("SVMRegressor", {.domain = kMl, .types = kFeatureTypes}),
    OpClass<ClassifierKernel>("SVMClassifier", {.domain = kMl, .types = kFeatureTypes}),
};

}  // namespace

TENON_OP_FAMILY(MlSvm, kRows);

}  // namespace tenon
