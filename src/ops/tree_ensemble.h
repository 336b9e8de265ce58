// Ensembles of decision trees, laid out for walking many rows at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace tenon {

enum class TreeMode : uint8_t { kLessOrEqual, kLess, kGreaterOrEqual, kGreater, kEqual, kNotEqual };

enum class TreeAggregate : uint8_t { kSum, kAverage, kMin, kMax };

// The node and weight lists of TreeEnsembleClassifier-3 and TreeEnsembleRegressor-3.
template <class T>
struct TreeLists {
  std::vector<int64_t> tree_ids, node_ids, feature_ids, true_ids, false_ids;
  std::vector<int64_t> missing_tracks_true;  // empty: all 0
  std::vector<std::string> modes;
  std::vector<T> values;
  // One entry per weight: the leaf, which of the scores it adds to, and the weight.
  std::vector<int64_t> weight_tree_ids, weight_node_ids, score_ids;
  std::vector<T> weights;
  // Several branches of one tree may go to one node; the lists hold no cycle.
  bool shares_nodes = false;
};

// T, float or double, is the type of features, thresholds and scores.
template <class T>
class TreeEnsemble {
 public:
  // Errors: kInvalidArgument for lists of unequal lengths, ids that do not exist, trees that are
  // none (a node reached twice), scores out of [0, score_count).
  static Result<TreeEnsemble> Make(const TreeLists<T>& lists, size_t score_count,
                                   TreeAggregate aggregate);

  size_t score_count() const { return score_count_; }
  size_t tree_count() const { return roots_.size(); }
  // Features are numbered below this.
  size_t feature_count() const { return feature_count_; }

  // Writes rows * score_count() scores: the aggregates over all trees, 0 where no leaf reached has
  // a weight for a score. `x` is [rows, columns] with columns >= feature_count(). Thread-safe.
  void Score(const T* x, size_t rows, size_t columns, T* scores) const;

  // Rows that one task of a parallel loop should handle, for this size of ensemble.
  size_t RowGrain() const;

 private:
  // A branch goes to node `child` if its test holds, else to the node after that. A leaf is its own
  // child.
  struct Node {
    T value;  // threshold; of a leaf: its weight, if each leaf has exactly one for one score
    uint32_t meta;
    uint32_t child;
  };
  struct Weight {
    uint32_t score;
    T weight;
  };
  class Builder;
  static constexpr size_t kLanes = 8;

  template <class Test>
  void Walk(const Test& test, size_t depth, const T* const* rows, uint32_t* at) const;
  void WalkLanes(size_t depth, const T* const* rows, uint32_t* at) const;
  void AddLeaf(uint32_t leaf, T* scores) const;
  void ScoreBlock(const T* x, size_t rows, size_t columns, T* scores) const;
  void ScoreRow(const T* x, T* scores) const;
  void Begin(T* scores, size_t n) const;
  void Finish(T* scores, size_t n) const;

  std::vector<Node> nodes_;
  std::vector<uint32_t> roots_, depths_;
  std::vector<uint32_t> first_weight_;  // of node i: weights [first_weight_[i], [i + 1])
  std::vector<Weight> weights_;
  size_t score_count_ = 0, feature_count_ = 0;
  TreeAggregate aggregate_ = TreeAggregate::kSum;
  // The mode of all branches, if they have one.
  TreeMode mode_ = TreeMode::kLessOrEqual;
  bool has_one_mode_ = true, tracks_missing_ = false;
  bool leaves_have_one_weight_ = false;  // all for score 0
};

}  // namespace tenon
