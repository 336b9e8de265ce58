// ai.onnx.ml: TreeEnsemble, which lists branches and leaves separately and can test for membership.
#include <algorithm>
#include <limits>
#include <variant>

#include "ops/framework/element_conversion.h"
#include "ops/framework/stateful_kernel.h"
#include "ops/ml/ml_scores.h"
#include "ops/ml/tree_ensemble.h"

namespace tenon {
namespace {

struct EnsembleAttrs {
  int64_t aggregate_function = 1, post_transform = 0;
  std::vector<int64_t> feature_ids, true_ids, false_ids, true_leafs, false_leafs, roots;
  std::vector<int64_t> missing_tracks_true, leaf_targets;
  Tensor modes, splits, leaf_weights;
  std::optional<Tensor> members;
  std::optional<int64_t> n_targets;
  static constexpr auto Fields() {
    using A = EnsembleAttrs;
    return std::tuple(
        Field("aggregate_function", &A::aggregate_function),
        Field("post_transform", &A::post_transform), Field("nodes_featureids", &A::feature_ids),
        Field("nodes_truenodeids", &A::true_ids), Field("nodes_falsenodeids", &A::false_ids),
        Field("nodes_trueleafs", &A::true_leafs), Field("nodes_falseleafs", &A::false_leafs),
        Field("tree_roots", &A::roots),
        Field("nodes_missing_value_tracks_true", &A::missing_tracks_true),
        Field("leaf_targetids", &A::leaf_targets), Field("nodes_modes", &A::modes),
        Field("nodes_splits", &A::splits), Field("leaf_weights", &A::leaf_weights),
        Field("membership_values", &A::members), Field("n_targets", &A::n_targets));
  }

  int64_t targets() const {
    if (n_targets) return *n_targets;
    int64_t most = 0;
    for (const int64_t target : leaf_targets) most = std::max(most, target);
    return most < INT32_MAX ? most + 1 : most;
  }
};

Status InferEnsemble(const EnsembleAttrs& attrs, ShapeContext& context) {
  const int64_t targets = attrs.targets();
  if (targets < 1 || targets > INT32_MAX) {
    return InvalidArgument("attribute 'n_targets': expected at least 1, got {}", targets);
  }
  TENON_ASSIGN_OR_RETURN(const SymbolicShape input, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const Dim rows, MatrixRows(input));
  return context.SetOutput(0, {rows, Dim(targets)});
}

// Writes the branches and leaves as node lists in TreeEnsemble's form. A test for membership
// becomes a chain of tests for equality, which all lead to the same node.
template <class T>
class ListWriter {
 public:
  explicit ListWriter(const EnsembleAttrs& attrs) : attrs_(attrs) {}

  // The lists are in the writer.
  Result<TreeLists<T>> Write() {
    TENON_RETURN_IF_ERROR(CheckLengths());
    TENON_ASSIGN_OR_RETURN(splits_, NumbersOf(attrs_.splits));
    TENON_ASSIGN_OR_RETURN(weights_, NumbersOf(attrs_.leaf_weights));
    if (attrs_.members) {
      TENON_ASSIGN_OR_RETURN(members_, NumbersOf(*attrs_.members));
    }
    TENON_RETURN_IF_ERROR(FindMembers());
    reached_.assign(attrs_.feature_ids.size(), false);
    for (size_t tree = 0; tree < attrs_.roots.size(); ++tree) {
      TENON_RETURN_IF_ERROR(WriteTree(static_cast<int64_t>(tree), attrs_.roots[tree]));
    }
    return TreeLists<T>{.tree_ids = lists_.tree_ids,
                        .node_ids = lists_.node_ids,
                        .feature_ids = lists_.feature_ids,
                        .true_ids = lists_.true_ids,
                        .false_ids = lists_.false_ids,
                        .missing_tracks_true = lists_.missing_tracks_true,
                        .modes = lists_.modes,
                        .values = lists_.values,
                        .weight_tree_ids = lists_.weight_tree_ids,
                        .weight_node_ids = lists_.weight_node_ids,
                        .score_ids = lists_.score_ids,
                        .weights = lists_.weights};
  }

 private:
  enum Mode : uint8_t { kMember = 6 };

  static Result<std::vector<T>> NumbersOf(const Tensor& tensor) {
    TENON_ASSIGN_OR_RETURN(Tensor copy, Tensor::Allocate(DataTypeOf<T>(), tensor.shape()));
    ThreadPool caller_only({.threads = 1});
    TENON_RETURN_IF_ERROR(ConvertElements(tensor, copy, {}, caller_only));
    return std::vector<T>(copy.values<T>().begin(), copy.values<T>().end());
  }

  Status CheckLengths() const {
    const size_t n = attrs_.feature_ids.size();
    const auto same = [n](size_t size) { return size == n; };
    if (n == 0 || n > INT32_MAX || !same(attrs_.true_ids.size()) ||
        !same(attrs_.false_ids.size()) || !same(attrs_.true_leafs.size()) ||
        !same(attrs_.false_leafs.size()) || !same(static_cast<size_t>(attrs_.modes.size())) ||
        !same(static_cast<size_t>(attrs_.splits.size())) ||
        (!attrs_.missing_tracks_true.empty() && !same(attrs_.missing_tracks_true.size()))) {
      return InvalidArgument("expected the nodes_ attributes to have {} entries each", n);
    }
    if (attrs_.modes.type() != DataType::kUint8) {
      return InvalidArgument("attribute 'nodes_modes': expected uint8, got {}",
                             DataTypeName(attrs_.modes.type()));
    }
    if (static_cast<size_t>(attrs_.leaf_weights.size()) != attrs_.leaf_targets.size()) {
      return InvalidArgument("expected a target for each of {} leaf weights, got {}",
                             attrs_.leaf_weights.size(), attrs_.leaf_targets.size());
    }
    return OkStatus();
  }

  uint8_t ModeOf(size_t node) const { return attrs_.modes.data<uint8_t>()[node]; }

  // The members of each testing node: NaN ends a list, and lists are in the nodes' order.
  Status FindMembers() {
    first_member_.assign(attrs_.feature_ids.size(), 0);
    size_t next = 0;
    for (size_t node = 0; node < first_member_.size(); ++node) {
      if (ModeOf(node) != kMember) continue;
      first_member_[node] = next;
      while (next < members_.size() && members_[next] == members_[next]) ++next;
      if (next++ >= members_.size()) {
        return InvalidArgument("attribute 'membership_values': expected a list for node {}", node);
      }
    }
    return OkStatus();
  }

  // Appends a node of the list form, whose id is its position.
  int64_t Append(int64_t tree, TreeMode mode, int64_t feature, T value, bool missing) {
    lists_.tree_ids.push_back(tree);
    lists_.node_ids.push_back(static_cast<int64_t>(lists_.node_ids.size()));
    lists_.feature_ids.push_back(feature);
    lists_.modes.push_back(mode);
    lists_.values.push_back(value);
    lists_.missing_tracks_true.push_back(missing ? 1 : 0);
    lists_.true_ids.push_back(0);
    lists_.false_ids.push_back(0);
    return lists_.node_ids.back();
  }

  // A place in the lists whose node is not known yet.
  struct Pending {
    int64_t source;
    bool is_leaf;
    std::vector<int64_t> true_of, false_of;  // the nodes whose child it is
  };

  Status WriteTree(int64_t tree, int64_t root) {
    if (root < 0 || static_cast<uint64_t>(root) >= attrs_.feature_ids.size()) {
      return InvalidArgument("attribute 'tree_roots': node {} does not exist", root);
    }
    const auto r = static_cast<size_t>(root);
    const bool is_leaf = attrs_.true_leafs[r] != 0 && attrs_.false_leafs[r] != 0 &&
                         attrs_.true_ids[r] == attrs_.false_ids[r];
    std::vector<Pending> pending;
    pending.push_back({is_leaf ? attrs_.true_ids[r] : root, is_leaf, {}, {}});
    while (!pending.empty()) {
      const Pending next = std::move(pending.back());
      pending.pop_back();
      if (next.is_leaf) {
        TENON_ASSIGN_OR_RETURN(const int64_t leaf, AppendLeaf(tree, next.source));
        Refer(next, leaf);
      } else {
        TENON_RETURN_IF_ERROR(AppendBranch(tree, next, pending));
      }
    }
    return OkStatus();
  }

  void Refer(const Pending& place, int64_t node) {
    for (const int64_t parent : place.true_of) lists_.true_ids[static_cast<size_t>(parent)] = node;
    for (const int64_t parent : place.false_of) {
      lists_.false_ids[static_cast<size_t>(parent)] = node;
    }
  }

  Result<int64_t> AppendLeaf(int64_t tree, int64_t leaf) {
    if (leaf < 0 || static_cast<uint64_t>(leaf) >= weights_.size()) {
      return InvalidArgument("leaf {} does not exist", leaf);
    }
    const int64_t node = Append(tree, TreeMode::kLeaf, 0, T(0), false);
    lists_.weight_tree_ids.push_back(tree);
    lists_.weight_node_ids.push_back(node);
    lists_.score_ids.push_back(attrs_.leaf_targets[static_cast<size_t>(leaf)]);
    lists_.weights.push_back(weights_[static_cast<size_t>(leaf)]);
    return node;
  }

  Status AppendBranch(int64_t tree, const Pending& place, std::vector<Pending>& pending) {
    if (place.source < 0 || static_cast<uint64_t>(place.source) >= reached_.size()) {
      return InvalidArgument("node {} does not exist", place.source);
    }
    const auto source = static_cast<size_t>(place.source);
    if (reached_[source]) return InvalidArgument("node {} is reached twice", source);
    reached_[source] = true;
    const bool missing =
        !attrs_.missing_tracks_true.empty() && attrs_.missing_tracks_true[source] != 0;
    const int64_t feature = attrs_.feature_ids[source];
    Pending on_true = {attrs_.true_ids[source], attrs_.true_leafs[source] != 0, {}, {}};
    Pending on_false = {attrs_.false_ids[source], attrs_.false_leafs[source] != 0, {}, {}};
    if (ModeOf(source) == kMember) {
      AppendMembers(tree, source, missing, place, on_true, on_false);
    } else {
      if (ModeOf(source) > kMember) {
        return InvalidArgument("attribute 'nodes_modes': expected 0 to 6, got {}", ModeOf(source));
      }
      const auto mode = static_cast<TreeMode>(ModeOf(source));
      const int64_t node = Append(tree, mode, feature, splits_[source], missing);
      Refer(place, node);
      on_true.true_of = {node};
      on_false.false_of = {node};
    }
    pending.push_back(std::move(on_false));
    pending.push_back(std::move(on_true));
    return OkStatus();
  }

  void AppendMembers(int64_t tree, size_t source, bool missing, const Pending& place,
                     Pending& on_true, Pending& on_false) {
    const int64_t feature = attrs_.feature_ids[source];
    size_t member = first_member_[source];
    // NaN, which ends the list, equals nothing: it stands for an empty set.
    int64_t node = Append(tree, TreeMode::kEqual, feature, members_[member], missing);
    Refer(place, node);
    on_true.true_of.push_back(node);
    while (members_[member] == members_[member] && members_[member + 1] == members_[member + 1]) {
      const int64_t next = Append(tree, TreeMode::kEqual, feature, members_[++member], false);
      lists_.false_ids[static_cast<size_t>(node)] = next;
      on_true.true_of.push_back(next);
      node = next;
    }
    on_false.false_of.push_back(node);
  }

  const EnsembleAttrs& attrs_;
  struct Lists {
    std::vector<int64_t> tree_ids, node_ids, feature_ids, true_ids, false_ids, missing_tracks_true;
    std::vector<TreeMode> modes;
    std::vector<T> values;
    std::vector<int64_t> weight_tree_ids, weight_node_ids, score_ids;
    std::vector<T> weights;
  };
  Lists lists_;
  std::vector<T> splits_, weights_, members_;
  std::vector<size_t> first_member_;  // by node
  std::vector<bool> reached_;
};

Result<TreeAggregate> AggregateOf(int64_t number) {
  switch (number) {
    case 0:
      return TreeAggregate::kAverage;
    case 1:
      return TreeAggregate::kSum;
    case 2:
      return TreeAggregate::kMin;
    case 3:
      return TreeAggregate::kMax;
    default:
      return InvalidArgument("attribute 'aggregate_function': expected 0 to 3, got {}", number);
  }
}

Result<PostTransform> TransformOf(int64_t number) {
  constexpr std::string_view kNames[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  if (number < 0 || static_cast<uint64_t>(number) >= std::size(kNames)) {
    return InvalidArgument("attribute 'post_transform': expected 0 to 4, got {}", number);
  }
  return PostTransformFromName(kNames[number]);
}

// TreeEnsemble-5. Computes in double for doubles, else in float.
class EnsembleKernel final : public StatefulKernel<InferEnsemble> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    TENON_ASSIGN_OR_RETURN(transform_, TransformOf(attrs_.post_transform));
    if (info.ElementType(0) == DataType::kDouble) {
      TENON_ASSIGN_OR_RETURN(trees_, Make<double>());
    } else {
      TENON_ASSIGN_OR_RETURN(trees_, Make<float>());
    }
    const int64_t targets = attrs_.targets();
    attrs_ = {};  // the shape function needs no more
    attrs_.n_targets = targets;
    info.ReleaseAttributes();
    return OkStatus();
  }

  Status Run(KernelContext& context) const override {
    return std::visit([&](const auto& trees) { return Score(trees, context); }, trees_);
  }

 private:
  using AnyTrees = std::variant<TreeEnsemble<float>, TreeEnsemble<double>>;

  template <class T>
  Result<AnyTrees> Make() const {
    const int64_t targets = attrs_.targets();
    if (targets < 1 || targets > INT32_MAX) {
      return InvalidArgument("attribute 'n_targets': expected at least 1, got {}", targets);
    }
    TENON_ASSIGN_OR_RETURN(const TreeAggregate aggregate, AggregateOf(attrs_.aggregate_function));
    ListWriter<T> writer(attrs_);
    TENON_ASSIGN_OR_RETURN(const TreeLists<T> lists, writer.Write());
    TENON_ASSIGN_OR_RETURN(TreeEnsemble<T> trees,
                           TreeEnsemble<T>::Make(lists, static_cast<size_t>(targets), aggregate));
    return AnyTrees(std::move(trees));
  }

  template <class T>
  Status Score(const TreeEnsemble<T>& trees, KernelContext& context) const {
    TENON_ASSIGN_OR_RETURN(const MatrixSizes sizes, MatrixSizesOf(context.Input(0).shape()));
    if (sizes.columns < trees.feature_count()) {
      return InvalidArgument("input 0: expected at least {} features, got shape {}",
                             trees.feature_count(), context.Input(0).shape());
    }
    Tensor& y = context.Output(0);
    const size_t n = trees.score_count();
    const bool is_direct = y.type() == DataTypeOf<T>();
    void* scratch = nullptr;
    TENON_ASSIGN_OR_RETURN(
        const T* x, InputAs<T>(context, is_direct ? 0 : sizes.rows * n * sizeof(T), &scratch));
    Tensor scores = is_direct ? y : Tensor::View(DataTypeOf<T>(), y.shape(), scratch);
    context.threads().ParallelFor(sizes.rows, trees.RowGrain(), [&](size_t begin, size_t end) {
      T* into = scores.data<T>();
      trees.Score(x + begin * sizes.columns, end - begin, sizes.columns, into + begin * n);
      for (size_t row = begin; row < end; ++row) ApplyPostTransform(transform_, into + row * n, n);
    });
    return is_direct ? OkStatus() : ConvertElements(scores, y, {}, context.threads());
  }

  AnyTrees trees_;
  PostTransform transform_ = PostTransform::kNone;
};

constexpr OpRow kRows[] = {
    OpClass<EnsembleKernel>("TreeEnsemble",
                            {.domain = "ai.onnx.ml",
                             .since = 5,
                             .types = {DataType::kFloat, DataType::kDouble, DataType::kFloat16}}),
};

}  // namespace

TENON_OP_FAMILY(MlTree5, kRows);

}  // namespace tenon
