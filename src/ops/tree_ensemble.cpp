#include "ops/tree_ensemble.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/arithmetic.h"

namespace tenon {
namespace {

// Node::meta: the feature, the mode, whether NaN passes the test, whether it is a branch.
constexpr uint32_t kFeatureBits = 27;
constexpr uint32_t kFeatureMask = (1u << kFeatureBits) - 1;
constexpr uint32_t kModeShift = kFeatureBits;
constexpr uint32_t kMissingShift = 30;
constexpr uint32_t kBranchShift = 31;

Result<TreeMode> ModeFromName(std::string_view name) {
  if (name == "BRANCH_LEQ") return TreeMode::kLessOrEqual;
  if (name == "BRANCH_LT") return TreeMode::kLess;
  if (name == "BRANCH_GTE") return TreeMode::kGreaterOrEqual;
  if (name == "BRANCH_GT") return TreeMode::kGreater;
  if (name == "BRANCH_EQ") return TreeMode::kEqual;
  if (name == "BRANCH_NEQ") return TreeMode::kNotEqual;
  return InvalidArgument("attribute 'nodes_modes': unknown mode '{}'", name);
}

template <class T>
bool Holds(TreeMode mode, T x, T value) {
  switch (mode) {
    case TreeMode::kLessOrEqual:
      return x <= value;
    case TreeMode::kLess:
      return x < value;
    case TreeMode::kGreaterOrEqual:
      return x >= value;
    case TreeMode::kGreater:
      return x > value;
    case TreeMode::kEqual:
      return x == value;
    case TreeMode::kNotEqual:
      break;
  }
  return x != value;
}

bool PassesMissing(uint32_t meta) { return (meta >> kMissingShift) & 1; }

// The test of a node, as fixed as the ensemble allows.
template <TreeMode kMode, bool kTracksMissing>
struct FixedTest {
  template <class T>
  bool operator()(T x, T value, uint32_t meta) const {
    bool holds = Holds(kMode, x, value);
    if constexpr (kTracksMissing) holds |= std::isnan(x) & PassesMissing(meta);
    return holds;
  }
};
struct AnyTest {
  template <class T>
  bool operator()(T x, T value, uint32_t meta) const {
    const auto mode = static_cast<TreeMode>((meta >> kModeShift) & 7);
    return Holds(mode, x, value) || (std::isnan(x) && PassesMissing(meta));
  }
};

}  // namespace

// Orders the nodes of each tree such that the two children of a node are neighbours.
template <class T>
class TreeEnsemble<T>::Builder {
 public:
  Builder(const TreeLists<T>& lists, TreeEnsemble& ensemble) : lists_(lists), out_(ensemble) {}

  Status Build() {
    TENON_RETURN_IF_ERROR(CheckLengths());
    TENON_RETURN_IF_ERROR(SortIds());
    TENON_RETURN_IF_ERROR(SortWeights());
    placed_.assign(lists_.node_ids.size(), false);
    if (lists_.shares_nodes) place_of_.assign(lists_.node_ids.size(), 0);
    out_.nodes_.reserve(lists_.node_ids.size());
    out_.leaves_have_one_weight_ = true;
    for (const uint32_t root : FindRoots()) TENON_RETURN_IF_ERROR(PlaceTree(root));
    out_.first_weight_.push_back(static_cast<uint32_t>(out_.weights_.size()));
    return OkStatus();
  }

 private:
  using Key = std::pair<int64_t, int64_t>;
  Key KeyOf(size_t i) const { return {lists_.tree_ids[i], lists_.node_ids[i]}; }
  Key WeightKeyOf(size_t i) const { return {lists_.weight_tree_ids[i], lists_.weight_node_ids[i]}; }

  Status CheckLengths() const {
    const size_t n = lists_.node_ids.size();
    const auto same = [n](size_t size) { return size == n; };
    if (!same(lists_.tree_ids.size()) || !same(lists_.feature_ids.size()) ||
        !same(lists_.true_ids.size()) || !same(lists_.false_ids.size()) ||
        !same(lists_.modes.size()) || !same(lists_.values.size()) ||
        (!lists_.missing_tracks_true.empty() && !same(lists_.missing_tracks_true.size()))) {
      return InvalidArgument("expected the nodes_ attributes to have {} entries each", n);
    }
    const size_t weights = lists_.weights.size();
    if (lists_.weight_tree_ids.size() != weights || lists_.weight_node_ids.size() != weights ||
        lists_.score_ids.size() != weights) {
      return InvalidArgument("expected the attributes of the {} weights to have as many entries",
                             weights);
    }
    if (n >= std::numeric_limits<uint32_t>::max() || n == 0 ||
        weights >= std::numeric_limits<uint32_t>::max()) {
      return InvalidArgument("an ensemble of {} nodes and {} weights", n, weights);
    }
    return OkStatus();
  }

  Status SortIds() {
    by_id_.resize(lists_.node_ids.size());
    std::iota(by_id_.begin(), by_id_.end(), 0);
    std::stable_sort(by_id_.begin(), by_id_.end(),
                     [this](uint32_t a, uint32_t b) { return KeyOf(a) < KeyOf(b); });
    for (size_t i = 1; i < by_id_.size(); ++i) {
      if (KeyOf(by_id_[i]) == KeyOf(by_id_[i - 1])) {
        return InvalidArgument("node {} of tree {} is given twice", lists_.node_ids[by_id_[i]],
                               lists_.tree_ids[by_id_[i]]);
      }
    }
    return OkStatus();
  }

  // The index of a node in the lists, or an error that names it.
  Result<uint32_t> Find(int64_t tree, int64_t node) const {
    const Key key(tree, node);
    const auto found = std::lower_bound(by_id_.begin(), by_id_.end(), key,
                                        [this](uint32_t i, const Key& k) { return KeyOf(i) < k; });
    if (found == by_id_.end() || KeyOf(*found) != key) {
      return InvalidArgument("node {} of tree {} does not exist", node, tree);
    }
    return *found;
  }

  // The first node listed of each tree, in the order of the lists.
  std::vector<uint32_t> FindRoots() const {
    std::vector<uint32_t> roots;
    for (size_t i = 0; i < by_id_.size(); ++i) {
      const bool begins_tree =
          i == 0 || lists_.tree_ids[by_id_[i]] != lists_.tree_ids[by_id_[i - 1]];
      if (begins_tree) roots.push_back(by_id_[i]);
      roots.back() = std::min(roots.back(), by_id_[i]);
    }
    std::sort(roots.begin(), roots.end());
    return roots;
  }

  Status SortWeights() {
    weights_by_id_.resize(lists_.weights.size());
    std::iota(weights_by_id_.begin(), weights_by_id_.end(), 0);
    std::stable_sort(weights_by_id_.begin(), weights_by_id_.end(),
                     [this](uint32_t a, uint32_t b) { return WeightKeyOf(a) < WeightKeyOf(b); });
    for (size_t i = 0; i < lists_.weights.size(); ++i) {
      const int64_t score = lists_.score_ids[i];
      if (score < 0 || score >= static_cast<int64_t>(out_.score_count_)) {
        return InvalidArgument("weight {}: expected a class or target in [0, {}], got {}", i,
                               static_cast<int64_t>(out_.score_count_) - 1, score);
      }
      TENON_RETURN_IF_ERROR(Find(lists_.weight_tree_ids[i], lists_.weight_node_ids[i]));
    }
    return OkStatus();
  }

  // Appends room for a node whose content follows.
  void Reserve() {
    out_.nodes_.push_back({});
    out_.first_weight_.push_back(0);
  }

  Status PlaceTree(size_t root) {
    struct Pending {
      size_t source;
      uint32_t target;
      uint32_t depth;
    };
    out_.roots_.push_back(static_cast<uint32_t>(out_.nodes_.size()));
    Reserve();
    uint32_t deepest = 0, branches = 0;
    const size_t first_node = out_.roots_.back();
    leaves_.clear();
    std::vector<Pending> pending = {{root, out_.roots_.back(), 0}};
    while (!pending.empty()) {
      const Pending next = pending.back();
      pending.pop_back();
      const bool is_leaf = lists_.modes[next.source] == "LEAF";
      if (placed_[next.source] && lists_.shares_nodes) {
        PlaceAgain(next.source, next.target, is_leaf);
        continue;
      }
      if (placed_[next.source]) {
        return InvalidArgument("node {} of tree {} is reached twice", lists_.node_ids[next.source],
                               lists_.tree_ids[next.source]);
      }
      placed_[next.source] = true;
      deepest = std::max(deepest, next.depth);
      if (is_leaf) {
        leaves_.push_back({next.source, next.target});
        continue;
      }
      const auto child = static_cast<uint32_t>(out_.nodes_.size());
      Reserve();
      Reserve();
      TENON_RETURN_IF_ERROR(PlaceBranch(next.source, next.target, child));
      ++branches;
      if (lists_.shares_nodes) place_of_[next.source] = next.target;
      const int64_t tree = lists_.tree_ids[next.source];
      TENON_ASSIGN_OR_RETURN(const uint32_t on_true, Find(tree, lists_.true_ids[next.source]));
      TENON_ASSIGN_OR_RETURN(const uint32_t on_false, Find(tree, lists_.false_ids[next.source]));
      pending.push_back({on_false, child + 1, next.depth + 1});
      pending.push_back({on_true, child, next.depth + 1});
    }
    // A shared node may be reached first on the shorter way.
    out_.depths_.push_back(lists_.shares_nodes ? branches : deepest);
    PlaceWeights(first_node);
    return OkStatus();
  }

  // Another branch goes to a node that has a place: a branch is copied, children and all.
  void PlaceAgain(size_t source, uint32_t target, bool is_leaf) {
    if (is_leaf) {
      leaves_.push_back({source, target});
    } else {
      out_.nodes_[target] = out_.nodes_[place_of_[source]];
    }
  }

  Status PlaceBranch(size_t source, uint32_t target, uint32_t child) {
    const int64_t feature = lists_.feature_ids[source];
    if (feature < 0 || feature > kFeatureMask) {
      return InvalidArgument("node {} of tree {}: feature {} is out of range",
                             lists_.node_ids[source], lists_.tree_ids[source], feature);
    }
    TENON_ASSIGN_OR_RETURN(const TreeMode mode, ModeFromName(lists_.modes[source]));
    const bool missing =
        !lists_.missing_tracks_true.empty() && lists_.missing_tracks_true[source] != 0;
    if (!seen_branch_) out_.mode_ = mode;
    seen_branch_ = true;
    out_.has_one_mode_ = out_.has_one_mode_ && mode == out_.mode_;
    out_.tracks_missing_ = out_.tracks_missing_ || missing;
    out_.feature_count_ = std::max(out_.feature_count_, static_cast<size_t>(feature) + 1);
    out_.nodes_[target] = {lists_.values[source],
                           static_cast<uint32_t>(feature) |
                               static_cast<uint32_t>(mode) << kModeShift |
                               static_cast<uint32_t>(missing) << kMissingShift | 1u << kBranchShift,
                           child};
    return OkStatus();
  }

  // The leaves of a tree in the order of their nodes, with their weights.
  void PlaceWeights(size_t first_node) {
    std::sort(leaves_.begin(), leaves_.end(),
              [](const Leaf& a, const Leaf& b) { return a.target < b.target; });
    size_t next = 0;
    for (size_t node = first_node; node < out_.nodes_.size(); ++node) {
      out_.first_weight_[node] = static_cast<uint32_t>(out_.weights_.size());
      if (next == leaves_.size() || leaves_[next].target != node) continue;
      const Key key = KeyOf(leaves_[next++].source);
      auto at = std::lower_bound(weights_by_id_.begin(), weights_by_id_.end(), key,
                                 [this](uint32_t i, const Key& k) { return WeightKeyOf(i) < k; });
      for (; at != weights_by_id_.end() && WeightKeyOf(*at) == key; ++at) {
        out_.weights_.push_back(
            {static_cast<uint32_t>(lists_.score_ids[*at]), lists_.weights[*at]});
      }
      const size_t first = out_.first_weight_[node];
      const bool has_one = out_.weights_.size() - first == 1 && out_.weights_[first].score == 0;
      out_.leaves_have_one_weight_ = out_.leaves_have_one_weight_ && has_one;
      out_.nodes_[node] = {has_one ? out_.weights_[first].weight : T(0), 0,
                           static_cast<uint32_t>(node)};
    }
  }

  struct Leaf {
    size_t source;
    uint32_t target;
  };

  const TreeLists<T>& lists_;
  TreeEnsemble& out_;
  std::vector<uint32_t> by_id_, weights_by_id_;
  std::vector<bool> placed_;
  std::vector<uint32_t> place_of_;  // of branches that may be shared, by index in the lists
  std::vector<Leaf> leaves_;
  bool seen_branch_ = false;
};

template <class T>
Result<TreeEnsemble<T>> TreeEnsemble<T>::Make(const TreeLists<T>& lists, size_t score_count,
                                              TreeAggregate aggregate) {
  TreeEnsemble ensemble;
  ensemble.score_count_ = score_count;
  ensemble.aggregate_ = aggregate;
  TENON_RETURN_IF_ERROR(Builder(lists, ensemble).Build());
  return ensemble;
}

// Each lane goes down one tree with one row. The lanes' loads do not wait for each other, which
// hides their latency; a lane that has reached its leaf stays there.
template <class T>
template <class Test>
void TreeEnsemble<T>::Walk(const Test& test, size_t depth, const T* const* rows,
                           uint32_t* at) const {
  const Node* nodes = nodes_.data();
  constexpr size_t kStepsPerCheck = 4;
  uint32_t lanes[kLanes];
  std::copy_n(at, kLanes, lanes);
  for (size_t step = 0; step < depth; step += kStepsPerCheck) {
    uint32_t branches = 0;
    for (size_t k = 0; k < kStepsPerCheck; ++k) {
      branches = 0;
      for (size_t lane = 0; lane < kLanes; ++lane) {
        const Node& node = nodes[lanes[lane]];
        const T x = rows[lane][node.meta & kFeatureMask];
        const uint32_t branch = node.meta >> kBranchShift;
        const auto fails = static_cast<uint32_t>(!test(x, node.value, node.meta));
        lanes[lane] = node.child + (fails & branch);
        branches |= branch;
      }
    }
    if (branches == 0) break;
  }
  std::copy_n(lanes, kLanes, at);
}

template <class T>
void TreeEnsemble<T>::WalkLanes(size_t depth, const T* const* rows, uint32_t* at) const {
  if (has_one_mode_ && mode_ == TreeMode::kLessOrEqual) {
    if (tracks_missing_) return Walk(FixedTest<TreeMode::kLessOrEqual, true>(), depth, rows, at);
    return Walk(FixedTest<TreeMode::kLessOrEqual, false>(), depth, rows, at);
  }
  if (has_one_mode_ && mode_ == TreeMode::kLess) {
    if (tracks_missing_) return Walk(FixedTest<TreeMode::kLess, true>(), depth, rows, at);
    return Walk(FixedTest<TreeMode::kLess, false>(), depth, rows, at);
  }
  Walk(AnyTest(), depth, rows, at);
}

template <class T>
void TreeEnsemble<T>::AddLeaf(uint32_t leaf, T* scores) const {
  if (leaves_have_one_weight_ && aggregate_ <= TreeAggregate::kAverage) {
    scores[0] += nodes_[leaf].value;
    return;
  }
  for (uint32_t i = first_weight_[leaf]; i < first_weight_[leaf + 1]; ++i) {
    T& score = scores[weights_[i].score];
    const T weight = weights_[i].weight;
    if (aggregate_ == TreeAggregate::kMin) {
      score = std::min(score, weight);
    } else if (aggregate_ == TreeAggregate::kMax) {
      score = std::max(score, weight);
    } else {
      score += weight;
    }
  }
}

template <class T>
void TreeEnsemble<T>::Begin(T* scores, size_t n) const {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  const T start = aggregate_ == TreeAggregate::kMin   ? kInfinity
                  : aggregate_ == TreeAggregate::kMax ? -kInfinity
                                                      : T(0);
  std::fill_n(scores, n, start);
}

template <class T>
void TreeEnsemble<T>::Finish(T* scores, size_t n) const {
  if (aggregate_ == TreeAggregate::kSum) return;
  const auto trees = static_cast<T>(roots_.size());
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  for (size_t i = 0; i < n; ++i) {
    if (aggregate_ == TreeAggregate::kAverage) {
      scores[i] /= trees;
    } else if (scores[i] == kInfinity || scores[i] == -kInfinity) {
      scores[i] = 0;  // no weight was met
    }
  }
}

// Lanes are rows: a tree stays in the cache while all rows of a block go down it.
template <class T>
void TreeEnsemble<T>::ScoreBlock(const T* x, size_t rows, size_t columns, T* scores) const {
  for (size_t tree = 0; tree < roots_.size(); ++tree) {
    for (size_t first = 0; first < rows; first += kLanes) {
      const size_t n = std::min(kLanes, rows - first);
      const T* lanes[kLanes];
      uint32_t at[kLanes];
      for (size_t lane = 0; lane < kLanes; ++lane) {
        lanes[lane] = x + (first + std::min(lane, n - 1)) * columns;
        at[lane] = roots_[tree];
      }
      WalkLanes(depths_[tree], lanes, at);
      for (size_t lane = 0; lane < n; ++lane) {
        AddLeaf(at[lane], scores + (first + lane) * score_count_);
      }
    }
  }
}

// Lanes are trees.
template <class T>
void TreeEnsemble<T>::ScoreRow(const T* x, T* scores) const {
  const T* lanes[kLanes];
  std::fill_n(lanes, kLanes, x);
  for (size_t first = 0; first < roots_.size(); first += kLanes) {
    const size_t n = std::min(kLanes, roots_.size() - first);
    uint32_t at[kLanes];
    uint32_t depth = 0;
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const size_t tree = first + std::min(lane, n - 1);
      at[lane] = roots_[tree];
      depth = std::max(depth, depths_[tree]);
    }
    WalkLanes(depth, lanes, at);
    for (size_t lane = 0; lane < n; ++lane) AddLeaf(at[lane], scores);
  }
}

template <class T>
void TreeEnsemble<T>::Score(const T* x, size_t rows, size_t columns, T* scores) const {
  constexpr size_t kBlockRows = 64;
  Begin(scores, rows * score_count_);
  for (size_t first = 0; first < rows; first += kBlockRows) {
    const size_t n = std::min(kBlockRows, rows - first);
    // A row gets the same bits whichever way: both add up its trees in order.
    if (n < kLanes) {
      for (size_t row = first; row < first + n; ++row) {
        ScoreRow(x + row * columns, scores + row * score_count_);
      }
    } else {
      ScoreBlock(x + first * columns, n, columns, scores + first * score_count_);
    }
  }
  Finish(scores, rows * score_count_);
}

template <class T>
size_t TreeEnsemble<T>::RowGrain() const {
  constexpr size_t kStepsPerTask = 8 * 1024;  // some ten microseconds
  size_t steps = 1;
  for (const uint32_t depth : depths_) steps += depth + 1;
  const size_t rows = std::max<size_t>(1, kStepsPerTask / steps);
  // Lanes that have no row cost as much as the others.
  return rows < kLanes / 2 ? rows : RoundUp(rows, kLanes);
}

template class TreeEnsemble<float>;
template class TreeEnsemble<double>;

}  // namespace tenon
