#include "ops/ml/tree_ensemble.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/arithmetic.h"

namespace tenon {
namespace {

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
    case TreeMode::kLeaf:
      break;
  }
  return x != value;
}

// The test of a node, as far as the ensemble determines it.
template <TreeMode kMode, bool kTracksMissing>
struct FixedTest {
  template <class T, class Node>
  bool operator()(T x, const Node& node) const {
    bool holds = Holds(kMode, x, node.value);
    if constexpr (kTracksMissing) holds |= int{std::isnan(x)} & int{node.passes_missing()};
    return holds;
  }
};
struct AnyTest {
  template <class T, class Node>
  bool operator()(T x, const Node& node) const {
    return Holds(node.mode(), x, node.value) || (std::isnan(x) && node.passes_missing());
  }
};

}  // namespace

template <class T>
Result<TreeEnsemble<T>> TreeEnsemble<T>::Make(const TreeLists<T>& lists, size_t score_count,
                                              TreeAggregate aggregate) {
  TreeEnsemble ensemble;
  ensemble.aggregate_ = aggregate;
  TENON_ASSIGN_OR_RETURN(ensemble.trees_, PlaceTrees(lists, score_count));
  if (aggregate <= TreeAggregate::kAverage) {
    ensemble.small_trees_ = LeafMaskEnsemble<T>::Make(ensemble.trees_);
  }
  return ensemble;
}

// Each lane goes down one tree with one row. The loads of the lanes do not depend on each other,
// which hides their latency; a lane that has reached its leaf stays there.
template <class T>
template <class Test>
void TreeEnsemble<T>::Walk(const Test& test, size_t depth, const T* const* rows,
                           uint32_t* at) const {
  const auto* nodes = trees_.nodes.data();
  constexpr size_t kStepsPerCheck = 4;
  uint32_t lanes[kLanes];
  std::copy_n(at, kLanes, lanes);
  for (size_t step = 0; step < depth; step += kStepsPerCheck) {
    uint32_t branches = 0;
    for (size_t k = 0; k < kStepsPerCheck; ++k) {
      branches = 0;
      for (size_t lane = 0; lane < kLanes; ++lane) {
        const auto& node = nodes[lanes[lane]];
        const T x = rows[lane][node.feature()];
        const auto branch = static_cast<uint32_t>(node.is_branch());
        const auto fails = static_cast<uint32_t>(!test(x, node));
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
  if (trees_.has_one_mode && trees_.mode == TreeMode::kLessOrEqual) {
    if (trees_.tracks_missing)
      return Walk(FixedTest<TreeMode::kLessOrEqual, true>(), depth, rows, at);
    return Walk(FixedTest<TreeMode::kLessOrEqual, false>(), depth, rows, at);
  }
  if (trees_.has_one_mode && trees_.mode == TreeMode::kLess) {
    if (trees_.tracks_missing) return Walk(FixedTest<TreeMode::kLess, true>(), depth, rows, at);
    return Walk(FixedTest<TreeMode::kLess, false>(), depth, rows, at);
  }
  Walk(AnyTest(), depth, rows, at);
}

template <class T>
void TreeEnsemble<T>::AddLeaf(uint32_t leaf, T* scores) const {
  if (trees_.leaves_have_one_weight && aggregate_ <= TreeAggregate::kAverage) {
    scores[0] += trees_.nodes[leaf].value;
    return;
  }
  for (uint32_t i = trees_.first_weight[leaf]; i < trees_.first_weight[leaf + 1]; ++i) {
    T& score = scores[trees_.weights[i].score];
    const T weight = trees_.weights[i].weight;
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
  const auto trees = static_cast<T>(trees_.roots.size());
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  for (size_t i = 0; i < n; ++i) {
    if (aggregate_ == TreeAggregate::kAverage) {
      scores[i] /= trees;
    } else if (scores[i] == kInfinity || scores[i] == -kInfinity) {
      scores[i] = 0;  // no weight was met
    }
  }
}

// Lanes are rows: a tree stays in the cache while it is used for all rows of a block.
template <class T>
void TreeEnsemble<T>::ScoreBlock(const T* x, size_t rows, size_t columns, T* scores) const {
  for (size_t tree = 0; tree < trees_.roots.size(); ++tree) {
    for (size_t first = 0; first < rows; first += kLanes) {
      const size_t n = std::min(kLanes, rows - first);
      const T* lanes[kLanes];
      uint32_t at[kLanes];
      for (size_t lane = 0; lane < kLanes; ++lane) {
        lanes[lane] = x + (first + std::min(lane, n - 1)) * columns;
        at[lane] = trees_.roots[tree];
      }
      WalkLanes(trees_.depths[tree], lanes, at);
      for (size_t lane = 0; lane < n; ++lane) {
        AddLeaf(at[lane], scores + (first + lane) * trees_.score_count);
      }
    }
  }
}

// Lanes are trees.
template <class T>
void TreeEnsemble<T>::ScoreRow(const T* x, T* scores) const {
  const T* lanes[kLanes];
  std::fill_n(lanes, kLanes, x);
  for (size_t first = 0; first < trees_.roots.size(); first += kLanes) {
    const size_t n = std::min(kLanes, trees_.roots.size() - first);
    uint32_t at[kLanes];
    uint32_t depth = 0;
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const size_t tree = first + std::min(lane, n - 1);
      at[lane] = trees_.roots[tree];
      depth = std::max(depth, trees_.depths[tree]);
    }
    WalkLanes(depth, lanes, at);
    for (size_t lane = 0; lane < n; ++lane) AddLeaf(at[lane], scores);
  }
}

template <class T>
void TreeEnsemble<T>::Score(const T* x, size_t rows, size_t columns, T* scores) const {
  constexpr size_t kBlockRows = 64;
  Begin(scores, rows * trees_.score_count);
  if (small_trees_ && rows >= kLanes) {
    small_trees_->Add(x, rows, columns, scores);
    return Finish(scores, rows * trees_.score_count);
  }
  for (size_t first = 0; first < rows; first += kBlockRows) {
    const size_t n = std::min(kBlockRows, rows - first);
    // A row gets the same bits in both ways: both add up its trees in order.
    if (n < kLanes) {
      for (size_t row = first; row < first + n; ++row) {
        ScoreRow(x + row * columns, scores + row * trees_.score_count);
      }
    } else {
      ScoreBlock(x + first * columns, n, columns, scores + first * trees_.score_count);
    }
  }
  Finish(scores, rows * trees_.score_count);
}

template <class T>
size_t TreeEnsemble<T>::RowGrain() const {
  constexpr size_t kStepsPerTask = 8 * 1024;  // some ten microseconds
  if (small_trees_) {
    return RoundUp(kStepsPerTask / small_trees_->StepsPerRow() + 1, kernels::kLeafMaskBlock);
  }
  size_t steps = 1;
  for (const uint32_t depth : trees_.depths) steps += depth + 1;
  const size_t rows = std::max<size_t>(1, kStepsPerTask / steps);
  // Lanes without a row cost as much as the others.
  return rows < kLanes / 2 ? rows : RoundUp(rows, kLanes);
}

template class TreeEnsemble<float>;
template class TreeEnsemble<double>;

}  // namespace tenon
