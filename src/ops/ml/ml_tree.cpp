// ai.onnx.ml: TreeEnsembleClassifier and TreeEnsembleRegressor.
#include <algorithm>
#include <span>
#include <variant>

#include "ops/framework/element_conversion.h"
#include "ops/framework/stateful_kernel.h"
#include "ops/ml/ml_scores.h"
#include "ops/ml/tree_ensemble.h"

namespace tenon {
namespace {

constexpr TypeSet kFeatureTypes = {DataType::kFloat, DataType::kDouble, DataType::kInt64,
                                   DataType::kInt32};

using Ints = std::span<const int64_t>;
using Floats = std::span<const float>;

// The attributes that both operators share; version 3 adds the forms as tensors.
struct NodeAttrs {
  Ints tree_ids, node_ids, feature_ids, true_ids, false_ids, missing_tracks_true;
  std::span<const std::string> modes;
  Floats values, base_values;
  std::optional<Tensor> values_as_tensor, base_values_as_tensor;
  std::string post_transform;
};

template <class Attrs>
constexpr auto NodeFields() {
  return std::tuple(
      Field("nodes_treeids", &Attrs::tree_ids), Field("nodes_nodeids", &Attrs::node_ids),
      Field("nodes_featureids", &Attrs::feature_ids), Field("nodes_truenodeids", &Attrs::true_ids),
      Field("nodes_falsenodeids", &Attrs::false_ids),
      Field("nodes_missing_value_tracks_true", &Attrs::missing_tracks_true),
      Field("nodes_modes", &Attrs::modes), Field("nodes_values", &Attrs::values),
      Field("nodes_values_as_tensor", &Attrs::values_as_tensor),
      Field("base_values", &Attrs::base_values),
      Field("base_values_as_tensor", &Attrs::base_values_as_tensor),
      Field("post_transform", &Attrs::post_transform));
}

// Numbers from the list or, if that is empty, from the tensor.
template <class T>
Result<std::vector<T>> NumbersOf(Floats list, const std::optional<Tensor>& tensor) {
  if (!tensor) return std::vector<T>(list.begin(), list.end());
  if (!list.empty()) return InvalidArgument("an attribute is given as a list and as a tensor");
  if (tensor->type() == DataType::kFloat) {
    return std::vector<T>(tensor->values<float>().begin(), tensor->values<float>().end());
  }
  if (tensor->type() == DataType::kDouble) {
    return std::vector<T>(tensor->values<double>().begin(), tensor->values<double>().end());
  }
  return InvalidArgument("expected a tensor of float or double, got {}",
                         DataTypeName(tensor->type()));
}

bool IsDouble(const std::optional<Tensor>& tensor) {
  return tensor && tensor->type() == DataType::kDouble;
}

// An ensemble in the type of its computation, with the addends of its scores.
template <class T>
struct Model {
  TreeEnsemble<T> trees;
  std::vector<T> base_values;
};

struct WeightLists {
  Ints tree_ids, node_ids, score_ids;
  Floats list;
  const std::optional<Tensor>& tensor;
};

template <class T>
Result<Model<T>> MakeModel(const NodeAttrs& attrs, const WeightLists& weights, size_t score_count,
                           TreeAggregate aggregate) {
  std::vector<TreeMode> modes;
  modes.reserve(attrs.modes.size());
  for (const std::string& name : attrs.modes) {
    TENON_ASSIGN_OR_RETURN(modes.emplace_back(), TreeModeFromName(name));
  }
  TENON_ASSIGN_OR_RETURN(const std::vector<T> values,
                         NumbersOf<T>(attrs.values, attrs.values_as_tensor));
  TENON_ASSIGN_OR_RETURN(const std::vector<T> leaf_weights,
                         NumbersOf<T>(weights.list, weights.tensor));
  const TreeLists<T> lists = {.tree_ids = attrs.tree_ids,
                              .node_ids = attrs.node_ids,
                              .feature_ids = attrs.feature_ids,
                              .true_ids = attrs.true_ids,
                              .false_ids = attrs.false_ids,
                              .missing_tracks_true = attrs.missing_tracks_true,
                              .modes = modes,
                              .values = values,
                              .weight_tree_ids = weights.tree_ids,
                              .weight_node_ids = weights.node_ids,
                              .score_ids = weights.score_ids,
                              .weights = leaf_weights};
  TENON_ASSIGN_OR_RETURN(TreeEnsemble<T> trees,
                         TreeEnsemble<T>::Make(lists, score_count, aggregate));
  TENON_ASSIGN_OR_RETURN(std::vector<T> base_values,
                         NumbersOf<T>(attrs.base_values, attrs.base_values_as_tensor));
  return Model<T>{std::move(trees), std::move(base_values)};
}

using AnyModel = std::variant<Model<float>, Model<double>>;

Result<AnyModel> MakeAnyModel(const NodeAttrs& attrs, const WeightLists& weights,
                              size_t score_count, TreeAggregate aggregate, DataType input) {
  if (input == DataType::kDouble || IsDouble(attrs.values_as_tensor) || IsDouble(weights.tensor)) {
    return MakeModel<double>(attrs, weights, score_count, aggregate);
  }
  return MakeModel<float>(attrs, weights, score_count, aggregate);
}

// One base value is that of all scores, as in ONNX's reference.
Status FitBaseValues(size_t scores, AnyModel& model) {
  return std::visit(
      [&](auto& m) -> Status {
        auto& base = m.base_values;
        if (base.size() == 1) base = std::decay_t<decltype(base)>(scores, base[0]);
        if (base.empty() || base.size() == scores) return OkStatus();
        return InvalidArgument("expected one base value or {}, got {}", scores, base.size());
      },
      model);
}

// Scores every row and calls finish(row, scores of T) for each, from several threads.
template <class T, class Finish>
Status ScoreRows(const Model<T>& model, KernelContext& context, const Finish& finish) {
  TENON_ASSIGN_OR_RETURN(const MatrixSizes sizes, MatrixSizesOf(context.Input(0).shape()));
  if (sizes.columns < model.trees.feature_count()) {
    return InvalidArgument("input 0: expected at least {} features, got shape {}",
                           model.trees.feature_count(), context.Input(0).shape());
  }
  const size_t n = model.trees.score_count();
  void* scratch = nullptr;
  TENON_ASSIGN_OR_RETURN(const T* x, InputAs<T>(context, sizes.rows * n * sizeof(T), &scratch));
  T* scores = static_cast<T*>(scratch);
  context.threads().ParallelFor(sizes.rows, model.trees.RowGrain(), [&](size_t begin, size_t end) {
    model.trees.Score(x + begin * sizes.columns, end - begin, sizes.columns, scores + begin * n);
    for (size_t row = begin; row < end; ++row) finish(row, scores + row * n);
  });
  return OkStatus();
}

struct TargetAttrs {
  int64_t n_targets = 1;
  static constexpr auto Fields() { return std::tuple(Field("n_targets", &TargetAttrs::n_targets)); }
};

// The lists are read when the trees are made, and not kept.
struct RegressorAttrs : NodeAttrs {
  Ints target_tree_ids, target_node_ids, target_ids;
  Floats target_weights;
  std::optional<Tensor> target_weights_as_tensor;
  std::string aggregate_function;
  static constexpr auto Fields() {
    return std::tuple_cat(
        NodeFields<RegressorAttrs>(),
        std::tuple(Field("target_treeids", &RegressorAttrs::target_tree_ids),
                   Field("target_nodeids", &RegressorAttrs::target_node_ids),
                   Field("target_ids", &RegressorAttrs::target_ids),
                   Field("target_weights", &RegressorAttrs::target_weights),
                   Field("target_weights_as_tensor", &RegressorAttrs::target_weights_as_tensor),
                   Field("aggregate_function", &RegressorAttrs::aggregate_function)));
  }
};

Result<TreeAggregate> AggregateFromName(std::string_view name) {
  if (name.empty() || name == "SUM") return TreeAggregate::kSum;
  if (name == "AVERAGE") return TreeAggregate::kAverage;
  if (name == "MIN") return TreeAggregate::kMin;
  if (name == "MAX") return TreeAggregate::kMax;
  return InvalidArgument(
      "attribute 'aggregate_function': expected SUM, AVERAGE, MIN or MAX, got '{}'", name);
}

Status InferRegressor(const TargetAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape input, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const Dim rows, MatrixRows(input));
  return context.SetOutput(0, {rows, Dim(attrs.n_targets)}, DataType::kFloat);
}

// TreeEnsembleRegressor-3.
class RegressorKernel final : public StatefulKernel<InferRegressor> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    TENON_ASSIGN_OR_RETURN(const auto lists, BindAttributes<RegressorAttrs>(info.node()));
    TENON_ASSIGN_OR_RETURN(transform_, PostTransformFromName(lists.post_transform));
    TENON_ASSIGN_OR_RETURN(const TreeAggregate aggregate,
                           AggregateFromName(lists.aggregate_function));
    if (attrs_.n_targets < 1 || attrs_.n_targets > INT32_MAX) {
      return InvalidArgument("attribute 'n_targets': expected at least 1, got {}",
                             attrs_.n_targets);
    }
    const auto targets = static_cast<size_t>(attrs_.n_targets);
    const WeightLists weights = {lists.target_tree_ids, lists.target_node_ids, lists.target_ids,
                                 lists.target_weights, lists.target_weights_as_tensor};
    TENON_ASSIGN_OR_RETURN(model_,
                           MakeAnyModel(lists, weights, targets, aggregate, info.ElementType(0)));
    info.ReleaseAttributes();
    return FitBaseValues(targets, model_);
  }

  Status Run(KernelContext& context) const override {
    float* output = context.Output(0).data<float>();
    return std::visit(
        [&](const auto& model) {
          const size_t n = model.trees.score_count();
          return ScoreRows(model, context, [&](size_t row, const auto* scores) {
            float* y = output + row * n;
            for (size_t i = 0; i < n; ++i) {
              y[i] = static_cast<float>(
                  model.base_values.empty() ? scores[i] : scores[i] + model.base_values[i]);
            }
            ApplyPostTransform(transform_, y, n);
          });
        },
        model_);
  }

 private:
  AnyModel model_;
  PostTransform transform_ = PostTransform::kNone;
};

struct LabelAttrs {
  std::vector<int64_t> labels_ints;
  std::vector<std::string> labels_strings;
  static constexpr auto Fields() {
    return std::tuple(Field("classlabels_int64s", &LabelAttrs::labels_ints),
                      Field("classlabels_strings", &LabelAttrs::labels_strings));
  }
  ClassLabels labels() const { return {labels_ints, labels_strings}; }
};

// The lists are read when the trees are made, and not kept.
struct ClassifierAttrs : NodeAttrs {
  Ints class_tree_ids, class_node_ids, class_ids;
  Floats class_weights;
  std::optional<Tensor> class_weights_as_tensor;
  static constexpr auto Fields() {
    return std::tuple_cat(
        NodeFields<ClassifierAttrs>(),
        std::tuple(Field("class_treeids", &ClassifierAttrs::class_tree_ids),
                   Field("class_nodeids", &ClassifierAttrs::class_node_ids),
                   Field("class_ids", &ClassifierAttrs::class_ids),
                   Field("class_weights", &ClassifierAttrs::class_weights),
                   Field("class_weights_as_tensor", &ClassifierAttrs::class_weights_as_tensor)));
  }
};

Status InferClassifier(const LabelAttrs& attrs, ShapeContext& context) {
  const bool has_strings = !attrs.labels_strings.empty();
  const size_t labels = has_strings ? attrs.labels_strings.size() : attrs.labels_ints.size();
  TENON_ASSIGN_OR_RETURN(const SymbolicShape input, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const Dim rows, MatrixRows(input));
  TENON_RETURN_IF_ERROR(
      context.SetOutput(0, {rows}, has_strings ? DataType::kString : DataType::kInt64));
  return context.SetOutput(1, {rows, Dim(static_cast<int64_t>(labels))}, DataType::kFloat);
}

// TreeEnsembleClassifier-3. With two labels and weights for only one class, that class's score
// decides: above 0.5 if all weights are probabilities, i.e. none is negative, otherwise above 0.
// The other score is its complement.
class ClassifierKernel final : public StatefulKernel<InferClassifier> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    labels_ = attrs_.labels();
    const size_t classes = labels_.size();
    if (classes == 0) return InvalidArgument("expected class labels, got none");
    TENON_ASSIGN_OR_RETURN(const auto lists, BindAttributes<ClassifierAttrs>(info.node()));
    TENON_ASSIGN_OR_RETURN(transform_, PostTransformFromName(lists.post_transform));
    const WeightLists weights = {lists.class_tree_ids, lists.class_node_ids, lists.class_ids,
                                 lists.class_weights, lists.class_weights_as_tensor};
    TENON_ASSIGN_OR_RETURN(
        model_, MakeAnyModel(lists, weights, classes, TreeAggregate::kSum, info.ElementType(0)));
    const size_t base = std::visit([](const auto& m) { return m.base_values.size(); }, model_);
    decides_alone_ = classes <= 2 && !lists.class_ids.empty();
    for (const int64_t id : lists.class_ids) {
      decides_alone_ = decides_alone_ && id == lists.class_ids[0];
    }
    deciding_ = decides_alone_ ? static_cast<size_t>(lists.class_ids[0]) : 0;
    if (base != 1 || !decides_alone_) TENON_RETURN_IF_ERROR(FitBaseValues(classes, model_));
    complements_ = classes == 2 && decides_alone_ && deciding_ == 0 && base <= 1;
    TENON_ASSIGN_OR_RETURN(const std::vector<double> numbers,
                           NumbersOf<double>(lists.class_weights, lists.class_weights_as_tensor));
    has_negative_ = std::any_of(numbers.begin(), numbers.end(), [](double w) { return w < 0; });
    info.ReleaseAttributes();
    return OkStatus();
  }

  Status Run(KernelContext& context) const override {
    Tensor* labels = context.HasOutput(0) ? &context.Output(0) : nullptr;
    float* output = context.HasOutput(1) ? context.Output(1).data<float>() : nullptr;
    return std::visit(
        [&](const auto& model) {
          const size_t n = model.trees.score_count();
          return ScoreRows(model, context, [&](size_t row, auto* scores) {
            for (size_t i = 0; i < model.base_values.size(); ++i) {
              scores[i] += model.base_values[i];
            }
            if (labels) WriteLabel(scores, n, row, *labels);
            if (output) WriteScores(scores, n, output + row * n);
          });
        },
        model_);
  }

 private:
  template <class T>
  void WriteLabel(const T* scores, size_t n, size_t row, Tensor& labels) const {
    if (!decides_alone_) {
      labels_.Write(static_cast<size_t>(std::max_element(scores, scores + n) - scores), row,
                    labels);
      return;
    }
    const bool positive = scores[deciding_] > (has_negative_ ? T(0) : T(0.5));
    if (n == 2) {
      labels_.Write(positive ? 1 : 0, row, labels);
    } else if (labels.type() == DataType::kInt64) {
      // One label: ONNX Runtime returns whether the class is met.
      labels.data<int64_t>()[row] = positive ? 1 : 0;
    } else {
      labels_.Write(0, row, labels);
    }
  }

  template <class T>
  void WriteScores(const T* scores, size_t n, float* output) const {
    for (size_t i = 0; i < n; ++i) output[i] = static_cast<float>(scores[i]);
    if (complements_) {
      ApplyToBinaryScore(transform_, has_negative_, output);
    } else {
      ApplyPostTransform(transform_, output, n);
    }
  }

  AnyModel model_;
  ClassLabels labels_;
  PostTransform transform_ = PostTransform::kNone;
  bool decides_alone_ = false;  // all weights are for one class, `deciding_`, of at most two
  bool complements_ = false;    // its score gives that of the other class
  bool has_negative_ = false;
  size_t deciding_ = 0;
};

constexpr OpRow kRows[] = {
    OpClass<ClassifierKernel>("TreeEnsembleClassifier",
                              {.domain = "ai.onnx.ml", .since = 1, .types = kFeatureTypes}),
    OpClass<RegressorKernel>("TreeEnsembleRegressor",
                             {.domain = "ai.onnx.ml", .since = 1, .types = kFeatureTypes}),
};

}  // namespace

TENON_OP_FAMILY(MlTree, kRows);

}  // namespace tenon
