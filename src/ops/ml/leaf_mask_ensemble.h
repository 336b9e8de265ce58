// An ensemble of small trees as tables for kernels/leaf_masks.h.
#pragma once

#include <optional>
#include <vector>

#include "kernels/leaf_masks.h"
#include "ops/ml/tree_nodes.h"

namespace tenon {

template <class T>
class LeafMaskEnsemble {
 public:
  // Null if the ensemble is not suitable: trees of too many leaves, shared nodes, tests for
  // equality or of several kinds, many features, a leaf with two weights for one score.
  static std::optional<LeafMaskEnsemble> Make(const TreeNodes<T>& trees);

  // Adds to `scores`, rows * score_count, the weights of the leaves that the rows of `x`,
  // [rows, columns], reach, in the order of the trees. Thread-safe.
  void Add(const T* x, size_t rows, size_t columns, T* scores) const;

  // The cost of a row, in tests of a walk.
  size_t StepsPerRow() const { return 1 + thresholds_.size() / 4 + table_scores_.size(); }

 private:
  using Trees = kernels::LeafMaskTrees<T>;
  using Word = typename Trees::Word;
  struct Strike;

  bool AddTree(const TreeNodes<T>& trees, size_t tree);
  bool AddTest(const typename TreeNodes<T>::Node& node, uint32_t first, uint32_t last);
  bool AddTables(const TreeNodes<T>& trees);
  uint32_t RowOf(uint32_t feature);
  Trees View() const;

  bool is_strict_ = false, has_tests_ = false;
  size_t words_ = Trees::kMostWords, score_count_ = 0;
  std::vector<uint32_t> used_features_;  // ascending in the order of their first use
  std::vector<uint32_t> row_of_;         // by feature
  std::vector<T> thresholds_, weights_;
  std::vector<uint32_t> features_, first_test_, first_table_;
  std::vector<Word> nan_passes_, kept_;
  std::vector<uint32_t> table_scores_, table_offsets_, table_sizes_;
  std::vector<uint32_t> leaves_;  // of the tree that is being added, as nodes
  size_t most_leaves_ = 0;
};

}  // namespace tenon
