// Ensembles of decision trees, scored for many rows at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/status.h"
#include "ops/ml/leaf_mask_ensemble.h"
#include "ops/ml/tree_nodes.h"

namespace tenon {

enum class TreeAggregate : uint8_t { kSum, kAverage, kMin, kMax };

// T, float or double, is the type of features, thresholds and scores.
template <class T>
class TreeEnsemble {
 public:
  // Errors: those of PlaceTrees.
  static Result<TreeEnsemble> Make(const TreeLists<T>& lists, size_t score_count,
                                   TreeAggregate aggregate);

  size_t score_count() const { return trees_.score_count; }
  size_t tree_count() const { return trees_.roots.size(); }
  // Features are numbered below this.
  size_t feature_count() const { return trees_.feature_count; }

  // Writes rows * score_count() scores: the aggregates over all trees, 0 where no leaf reached has
  // a weight for a score. `x` is [rows, columns] with columns >= feature_count(). Thread-safe. A
  // row gets the same bits for any number of rows.
  void Score(const T* x, size_t rows, size_t columns, T* scores) const;

  // Rows that one task of a parallel loop should handle, for this size of ensemble.
  size_t RowGrain() const;

 private:
  static constexpr size_t kLanes = 8;

  template <class Test>
  void Walk(const Test& test, size_t depth, const T* const* rows, uint32_t* at) const;
  void WalkLanes(size_t depth, const T* const* rows, uint32_t* at) const;
  void AddLeaf(uint32_t leaf, T* scores) const;
  void ScoreBlock(const T* x, size_t rows, size_t columns, T* scores) const;
  void ScoreRow(const T* x, T* scores) const;
  void Begin(T* scores, size_t n) const;
  void Finish(T* scores, size_t n) const;

  TreeNodes<T> trees_;
  std::optional<LeafMaskEnsemble<T>> small_trees_;
  TreeAggregate aggregate_ = TreeAggregate::kSum;
};

}  // namespace tenon
