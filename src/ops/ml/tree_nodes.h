// The nodes of decision trees: in the lists of ai.onnx.ml's attributes, and in a layout for
// walking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace tenon {

enum class TreeMode : uint8_t {
  kLessOrEqual,
  kLess,
  kGreaterOrEqual,
  kGreater,
  kEqual,
  kNotEqual,
  kLeaf
};

// "BRANCH_LEQ" ... "LEAF".
Result<TreeMode> TreeModeFromName(std::string_view name);

// The node and weight lists of TreeEnsembleClassifier-3 and TreeEnsembleRegressor-3. T, float or
// double, is the type of features, thresholds and scores.
template <class T>
struct TreeLists {
  std::span<const int64_t> tree_ids, node_ids, feature_ids, true_ids, false_ids;
  std::span<const int64_t> missing_tracks_true;  // empty: all 0
  std::span<const TreeMode> modes;
  std::span<const T> values;
  // One entry per weight: the leaf, which of the scores it adds to, and the weight.
  std::span<const int64_t> weight_tree_ids, weight_node_ids, score_ids;
  std::span<const T> weights;
};

template <class T>
struct TreeNodes {
  // A branch goes to node `child` if its test holds, else to the node after that. A leaf is its own
  // child. Branches may share their children, but no way through them leads back.
  struct Node {
    T value;  // threshold; of a leaf: its weight, if each leaf has exactly one for score 0
    uint32_t meta;
    uint32_t child;

    // meta: the feature, the mode, whether NaN passes the test, whether it is a branch.
    static constexpr uint32_t kFeatureBits = 27;
    static constexpr uint32_t kFeatureMask = (1u << kFeatureBits) - 1;
    static constexpr uint32_t kModeShift = kFeatureBits;
    static constexpr uint32_t kMissingShift = 30;
    static constexpr uint32_t kBranchShift = 31;

    uint32_t feature() const { return meta & kFeatureMask; }
    TreeMode mode() const { return static_cast<TreeMode>((meta >> kModeShift) & 7); }
    bool passes_missing() const { return (meta >> kMissingShift) & 1; }
    bool is_branch() const { return meta >> kBranchShift; }
  };
  struct Weight {
    uint32_t score;
    T weight;
  };

  std::vector<Node> nodes;
  // By tree: its first node, and the most branches on the path of a row.
  std::vector<uint32_t> roots, depths;
  std::vector<uint32_t> first_weight;  // of node i: weights [first_weight[i], [i + 1])
  std::vector<Weight> weights;
  size_t score_count = 0;
  size_t feature_count = 0;  // features are numbered below this
  // The mode of all branches, if they have one.
  TreeMode mode = TreeMode::kLessOrEqual;
  bool has_one_mode = true;
  bool tracks_missing = false;  // NaN passes some test
  bool shares_nodes = false;
  bool leaves_have_one_weight = true;  // all for score 0
};

// Errors: kInvalidArgument for lists of unequal lengths, ids that do not exist or are given twice,
// branches that lead back to where they come from, scores out of [0, score_count).
template <class T>
Result<TreeNodes<T>> PlaceTrees(const TreeLists<T>& lists, size_t score_count);

}  // namespace tenon
