#include "ops/ml/tree_nodes.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace tenon {
namespace {

// Indices of `tree_ids` in the order of tree and node.
std::vector<uint32_t> SortedByIds(std::span<const int64_t> tree_ids,
                                  std::span<const int64_t> node_ids) {
  std::vector<uint32_t> order(tree_ids.size());
  std::iota(order.begin(), order.end(), 0);
  const auto before = [&](uint32_t a, uint32_t b) {
    return tree_ids[a] != tree_ids[b] ? tree_ids[a] < tree_ids[b] : node_ids[a] < node_ids[b];
  };
  if (!std::is_sorted(order.begin(), order.end(), before)) {
    std::stable_sort(order.begin(), order.end(), before);
  }
  return order;
}

// Orders the nodes of each tree such that the two children of a node are neighbours. Nodes are
// known by their rank in the order of their ids.
template <class T>
class TreePlacer {
 public:
  TreePlacer(const TreeLists<T>& lists, TreeNodes<T>& out) : lists_(lists), out_(out) {}

  Status Place() {
    TENON_RETURN_IF_ERROR(CheckLengths());
    by_rank_ = SortedByIds(lists_.tree_ids, lists_.node_ids);
    weights_by_id_ = SortedByIds(lists_.weight_tree_ids, lists_.weight_node_ids);
    TENON_RETURN_IF_ERROR(FindTrees());
    TENON_RETURN_IF_ERROR(AssignWeights());
    const size_t n = by_rank_.size();
    place_of_.assign(n, kNowhere);
    out_.nodes.reserve(n);
    out_.first_weight.reserve(n + 1);
    out_.weights.reserve(lists_.weights.size());
    for (const Tree& tree : trees_) TENON_RETURN_IF_ERROR(PlaceTree(tree));
    out_.first_weight.push_back(static_cast<uint32_t>(out_.weights.size()));
    return OkStatus();
  }

 private:
  using Node = typename TreeNodes<T>::Node;
  static constexpr uint32_t kNowhere = std::numeric_limits<uint32_t>::max();
  struct Tree {
    uint32_t begin, end;  // ranks
    uint32_t root;        // rank of the node listed first
  };
  struct Leaf {
    uint32_t rank;
    uint32_t target;
  };
  struct Pending {
    uint32_t rank;
    uint32_t target;
    uint32_t depth;
  };

  int64_t NodeId(uint32_t rank) const { return lists_.node_ids[by_rank_[rank]]; }
  int64_t TreeId(uint32_t rank) const { return lists_.tree_ids[by_rank_[rank]]; }

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
    if (n >= kNowhere / 2 || n == 0 || weights >= kNowhere) {
      return InvalidArgument("an ensemble of {} nodes and {} weights", n, weights);
    }
    return OkStatus();
  }

  // The trees in the order of their first node in the lists.
  Status FindTrees() {
    for (uint32_t rank = 0; rank < by_rank_.size(); ++rank) {
      const bool begins = rank == 0 || TreeId(rank) != TreeId(rank - 1);
      if (begins) {
        trees_.push_back({rank, rank + 1, rank});
        continue;
      }
      if (NodeId(rank) == NodeId(rank - 1)) {
        return InvalidArgument("node {} of tree {} is given twice", NodeId(rank), TreeId(rank));
      }
      Tree& tree = trees_.back();
      tree.end = rank + 1;
      if (by_rank_[rank] < by_rank_[tree.root]) tree.root = rank;
    }
    std::sort(trees_.begin(), trees_.end(),
              [this](const Tree& a, const Tree& b) { return by_rank_[a.root] < by_rank_[b.root]; });
    return OkStatus();
  }

  Status AssignWeights() {
    first_weight_.reserve(by_rank_.size() + 1);
    uint32_t next = 0;
    const auto id = [&](uint32_t w) {
      const uint32_t i = weights_by_id_[w];
      return std::pair(lists_.weight_tree_ids[i], lists_.weight_node_ids[i]);
    };
    const auto count = static_cast<uint32_t>(weights_by_id_.size());
    for (uint32_t rank = 0; rank < by_rank_.size(); ++rank) {
      first_weight_.push_back(next);
      while (next < count && id(next) == std::pair(TreeId(rank), NodeId(rank))) ++next;
      if (next < count && id(next) < std::pair(TreeId(rank), NodeId(rank))) break;
    }
    if (next < count) {
      return InvalidArgument("node {} of tree {} does not exist", id(next).second, id(next).first);
    }
    first_weight_.push_back(next);
    for (size_t i = 0; i < lists_.score_ids.size(); ++i) {
      const int64_t score = lists_.score_ids[i];
      if (score >= 0 && score < static_cast<int64_t>(out_.score_count)) continue;
      return InvalidArgument("weight {}: expected a class or target in [0, {}], got {}", i,
                             static_cast<int64_t>(out_.score_count) - 1, score);
    }
    return OkStatus();
  }

  // The rank of a node, or an error that names it.
  Result<uint32_t> Find(const Tree& tree, int64_t node) const {
    const int64_t first = NodeId(tree.begin);
    if (node >= first && node <= NodeId(tree.end - 1)) {
      // Ids without gaps, which is what converters write.
      const auto offset = static_cast<uint64_t>(node) - static_cast<uint64_t>(first);
      if (offset < tree.end - tree.begin) {
        const uint32_t guess = tree.begin + static_cast<uint32_t>(offset);
        if (NodeId(guess) == node) return guess;
      }
      const auto begin = by_rank_.begin() + tree.begin, end = by_rank_.begin() + tree.end;
      const auto found = std::lower_bound(
          begin, end, node, [this](uint32_t i, int64_t id) { return lists_.node_ids[i] < id; });
      if (lists_.node_ids[*found] == node) {
        return static_cast<uint32_t>(found - by_rank_.begin());
      }
    }
    return InvalidArgument("node {} of tree {} does not exist", node, TreeId(tree.begin));
  }

  // Appends room for a node whose content follows.
  void Reserve() {
    out_.nodes.push_back({});
    out_.first_weight.push_back(0);
  }

  Status PlaceTree(const Tree& tree) {
    const auto root = static_cast<uint32_t>(out_.nodes.size());
    out_.roots.push_back(root);
    Reserve();
    uint32_t deepest = 0;
    bool shares_nodes = false;
    leaves_.clear();
    pending_.assign(1, {tree.root, root, 0});
    while (!pending_.empty()) {
      const Pending next = pending_.back();
      pending_.pop_back();
      const uint32_t source = by_rank_[next.rank];
      const bool is_leaf = lists_.modes[source] == TreeMode::kLeaf;
      const uint32_t place = place_of_[next.rank];
      place_of_[next.rank] = next.target;
      deepest = std::max(deepest, next.depth);
      shares_nodes = shares_nodes || place != kNowhere;
      if (is_leaf) {
        leaves_.push_back({next.rank, next.target});
      } else if (place != kNowhere) {
        out_.nodes[next.target] = out_.nodes[place];  // its children have positions
      } else {
        TENON_RETURN_IF_ERROR(PlaceBranch(tree, next));
      }
    }
    out_.depths.push_back(deepest);
    PlaceWeights(root);
    if (shares_nodes) {
      out_.shares_nodes = true;
      TENON_ASSIGN_OR_RETURN(out_.depths.back(), LongestWay(tree));
    }
    return OkStatus();
  }

  Status PlaceBranch(const Tree& tree, const Pending& at) {
    const uint32_t source = by_rank_[at.rank];
    const auto child = static_cast<uint32_t>(out_.nodes.size());
    Reserve();
    Reserve();
    const int64_t feature = lists_.feature_ids[source];
    if (feature < 0 || feature > Node::kFeatureMask) {
      return InvalidArgument("node {} of tree {}: feature {} is out of range", NodeId(at.rank),
                             TreeId(at.rank), feature);
    }
    const TreeMode mode = lists_.modes[source];
    const bool missing =
        !lists_.missing_tracks_true.empty() && lists_.missing_tracks_true[source] != 0;
    if (!seen_branch_) out_.mode = mode;
    seen_branch_ = true;
    out_.has_one_mode = out_.has_one_mode && mode == out_.mode;
    out_.tracks_missing = out_.tracks_missing || missing;
    out_.feature_count = std::max(out_.feature_count, static_cast<size_t>(feature) + 1);
    const uint32_t meta =
        static_cast<uint32_t>(feature) | static_cast<uint32_t>(mode) << Node::kModeShift |
        static_cast<uint32_t>(missing) << Node::kMissingShift | 1u << Node::kBranchShift;
    out_.nodes[at.target] = {lists_.values[source], meta, child};
    TENON_ASSIGN_OR_RETURN(const uint32_t on_true, Find(tree, lists_.true_ids[source]));
    TENON_ASSIGN_OR_RETURN(const uint32_t on_false, Find(tree, lists_.false_ids[source]));
    pending_.push_back({on_false, child + 1, at.depth + 1});
    pending_.push_back({on_true, child, at.depth + 1});
    return OkStatus();
  }

  // The leaves of a tree in the order of their positions, with their weights.
  void PlaceWeights(uint32_t first_node) {
    std::sort(leaves_.begin(), leaves_.end(),
              [](const Leaf& a, const Leaf& b) { return a.target < b.target; });
    size_t next = 0;
    for (uint32_t node = first_node; node < out_.nodes.size(); ++node) {
      const auto first = static_cast<uint32_t>(out_.weights.size());
      out_.first_weight[node] = first;
      if (next == leaves_.size() || leaves_[next].target != node) continue;
      const uint32_t rank = leaves_[next++].rank;
      for (uint32_t w = first_weight_[rank]; w < first_weight_[rank + 1]; ++w) {
        const uint32_t i = weights_by_id_[w];
        out_.weights.push_back({static_cast<uint32_t>(lists_.score_ids[i]), lists_.weights[i]});
      }
      const bool has_one = out_.weights.size() - first == 1 && out_.weights[first].score == 0;
      out_.leaves_have_one_weight = out_.leaves_have_one_weight && has_one;
      out_.nodes[node] = {has_one ? out_.weights[first].weight : T(0), 0, node};
    }
  }

  // The number of branches on the longest path down a tree with shared nodes.
  Result<uint32_t> LongestWay(const Tree& tree) {
    constexpr uint32_t kUnknown = kNowhere, kOnWay = kNowhere - 1;
    std::vector<uint32_t> length(tree.end - tree.begin, kUnknown);
    const auto at = [&](uint32_t rank) -> uint32_t& { return length[rank - tree.begin]; };
    std::vector<uint32_t> way = {tree.root};
    while (!way.empty()) {
      const uint32_t rank = way.back();
      const uint32_t source = by_rank_[rank];
      if (lists_.modes[source] == TreeMode::kLeaf) {
        at(rank) = 0;
        way.pop_back();
        continue;
      }
      at(rank) = kOnWay;
      uint32_t longest = 0;
      bool is_done = true;
      for (const int64_t id : {lists_.true_ids[source], lists_.false_ids[source]}) {
        TENON_ASSIGN_OR_RETURN(const uint32_t child, Find(tree, id));
        if (at(child) == kOnWay) {
          return InvalidArgument("node {} of tree {} is below itself", id, TreeId(rank));
        }
        if (at(child) == kUnknown) {
          way.push_back(child);
          is_done = false;
          break;
        }
        longest = std::max(longest, at(child) + 1);
      }
      if (!is_done) continue;
      at(rank) = longest;
      way.pop_back();
    }
    return at(tree.root);
  }

  const TreeLists<T>& lists_;
  TreeNodes<T>& out_;
  std::vector<uint32_t> by_rank_;        // index in the lists
  std::vector<uint32_t> weights_by_id_;  // index in the lists
  std::vector<uint32_t> first_weight_;   // by rank: in weights_by_id_
  std::vector<Tree> trees_;
  std::vector<uint32_t> place_of_;  // by rank
  std::vector<Pending> pending_;
  std::vector<Leaf> leaves_;
  bool seen_branch_ = false;
};

}  // namespace

Result<TreeMode> TreeModeFromName(std::string_view name) {
  constexpr std::string_view kNames[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                         "BRANCH_EQ",  "BRANCH_NEQ", "LEAF"};
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (name == kNames[i]) return static_cast<TreeMode>(i);
  }
  return InvalidArgument("attribute 'nodes_modes': unknown mode '{}'", name);
}

template <class T>
Result<TreeNodes<T>> PlaceTrees(const TreeLists<T>& lists, size_t score_count) {
  TreeNodes<T> nodes;
  nodes.score_count = score_count;
  TENON_RETURN_IF_ERROR(TreePlacer<T>(lists, nodes).Place());
  return nodes;
}

template Result<TreeNodes<float>> PlaceTrees(const TreeLists<float>&, size_t);
template Result<TreeNodes<double>> PlaceTrees(const TreeLists<double>&, size_t);

}  // namespace tenon
