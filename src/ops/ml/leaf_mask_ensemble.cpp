#include "ops/ml/leaf_mask_ensemble.h"

#include <algorithm>
#include <cmath>

#include "base/arithmetic.h"

namespace tenon {
namespace {

// Columns and scores of a block of rows are on the stack.
constexpr size_t kMostFeatures = 64;
constexpr size_t kMostScores = 16;
constexpr uint32_t kNoRow = UINT32_MAX;

}  // namespace

template <class T>
std::optional<LeafMaskEnsemble<T>> LeafMaskEnsemble<T>::Make(const TreeNodes<T>& trees) {
  if (trees.shares_nodes || trees.score_count > kMostScores) return std::nullopt;
  LeafMaskEnsemble result;
  result.score_count_ = trees.score_count;
  result.row_of_.assign(trees.feature_count, kNoRow);
  for (size_t tree = 0; tree < trees.roots.size(); ++tree) {
    if (!result.AddTree(trees, tree)) return std::nullopt;
  }
  result.first_test_.push_back(static_cast<uint32_t>(result.thresholds_.size()));
  result.first_table_.push_back(static_cast<uint32_t>(result.table_scores_.size()));
  if (result.most_leaves_ <= Trees::kWordBits) {
    result.words_ = 1;
    for (size_t i = 0; i < result.thresholds_.size(); ++i) {
      result.kept_[i] = result.kept_[i * Trees::kMostWords];
    }
    result.kept_.resize(result.thresholds_.size());
  }
  return result;
}

// Depth first, the true child first, which numbers the leaves.
template <class T>
bool LeafMaskEnsemble<T>::AddTree(const TreeNodes<T>& trees, size_t tree) {
  first_test_.push_back(static_cast<uint32_t>(thresholds_.size()));
  first_table_.push_back(static_cast<uint32_t>(table_scores_.size()));
  leaves_.clear();
  // The second visit of a branch is between its children.
  struct Visit {
    uint32_t node;
    uint32_t first_leaf;
    bool is_second;
  };
  std::vector<Visit> visits = {{trees.roots[tree], 0, false}};
  while (!visits.empty()) {
    const Visit visit = visits.back();
    visits.pop_back();
    const auto& node = trees.nodes[visit.node];
    const auto leaf = static_cast<uint32_t>(leaves_.size());
    if (visit.is_second) {
      if (!AddTest(node, visit.first_leaf, leaf)) return false;
      visits.push_back({node.child + 1, leaf, false});
    } else if (node.is_branch()) {
      visits.push_back({visit.node, leaf, true});
      visits.push_back({node.child, leaf, false});
    } else {
      if (leaf == Trees::kMostWords * Trees::kWordBits) return false;
      leaves_.push_back(visit.node);
    }
  }
  most_leaves_ = std::max(most_leaves_, leaves_.size());
  return AddTables(trees);
}

template <class T>
uint32_t LeafMaskEnsemble<T>::RowOf(uint32_t feature) {
  if (row_of_[feature] == kNoRow) {
    row_of_[feature] = static_cast<uint32_t>(used_features_.size());
    used_features_.push_back(feature);
  }
  return row_of_[feature];
}

// A test whose true child has the leaves [first, last).
template <class T>
bool LeafMaskEnsemble<T>::AddTest(const typename TreeNodes<T>::Node& node, uint32_t first,
                                  uint32_t last) {
  const TreeMode mode = node.mode();
  const bool is_strict = mode == TreeMode::kLess;
  if ((mode != TreeMode::kLess && mode != TreeMode::kLessOrEqual) ||
      (has_tests_ && is_strict != is_strict_) || std::isnan(node.value)) {
    return false;
  }
  has_tests_ = true;
  is_strict_ = is_strict;
  thresholds_.push_back(node.value);
  features_.push_back(RowOf(node.feature()));
  nan_passes_.push_back(node.passes_missing() ? ~Word{0} : Word{0});
  for (size_t word = 0; word < Trees::kMostWords; ++word) {
    Word kept = ~Word{0};
    for (uint32_t leaf = first; leaf < last; ++leaf) {
      if (leaf / Trees::kWordBits == word) kept &= ~(Word{1} << leaf % Trees::kWordBits);
    }
    kept_.push_back(kept);
  }
  return used_features_.size() <= kMostFeatures;
}

// The weights of the tree's leaves: one table for each score that some leaf has a weight for.
template <class T>
bool LeafMaskEnsemble<T>::AddTables(const TreeNodes<T>& trees) {
  const size_t first_table = first_table_.back();
  const size_t size = RoundUp(leaves_.size(), kernels::kLeafMaskStep);
  for (size_t leaf = 0; leaf < leaves_.size(); ++leaf) {
    const uint32_t node = leaves_[leaf];
    const uint32_t begin = trees.first_weight[node], end = trees.first_weight[node + 1];
    for (uint32_t w = begin; w < end; ++w) {
      const uint32_t score = trees.weights[w].score;
      for (uint32_t other = begin; other < w; ++other) {
        if (trees.weights[other].score == score) return false;
      }
      const auto known = std::find(table_scores_.begin() + static_cast<ptrdiff_t>(first_table),
                                   table_scores_.end(), score);
      const auto table = static_cast<size_t>(known - table_scores_.begin());
      if (known == table_scores_.end()) {
        table_scores_.push_back(score);
        table_offsets_.push_back(static_cast<uint32_t>(weights_.size()));
        table_sizes_.push_back(static_cast<uint32_t>(leaves_.size()));
        weights_.resize(weights_.size() + size, T(0));
      }
      weights_[table_offsets_[table] + leaf] = trees.weights[w].weight;
    }
  }
  return weights_.size() < UINT32_MAX;
}

template <class T>
kernels::LeafMaskTrees<T> LeafMaskEnsemble<T>::View() const {
  Trees view;
  view.is_strict = is_strict_;
  view.words = words_;
  view.tree_count = first_test_.size() - 1;
  view.thresholds = thresholds_.data();
  view.features = features_.data();
  view.nan_passes = nan_passes_.data();
  view.kept = kept_.data();
  view.first_test = first_test_.data();
  view.first_table = first_table_.data();
  view.table_scores = table_scores_.data();
  view.table_offsets = table_offsets_.data();
  view.table_sizes = table_sizes_.data();
  view.weights = weights_.data();
  return view;
}

template <class T>
void LeafMaskEnsemble<T>::Add(const T* x, size_t rows, size_t columns, T* scores) const {
  constexpr size_t kBlock = kernels::kLeafMaskBlock;
  alignas(64) T features[kMostFeatures * kBlock];
  alignas(64) T sums[kMostScores * kBlock];
  const Trees trees = View();
  for (size_t first = 0; first < rows; first += kBlock) {
    const size_t n = std::min(kBlock, rows - first);
    const size_t padded = RoundUp(n, kernels::kLeafMaskStep);
    for (size_t f = 0; f < used_features_.size(); ++f) {
      const T* from = x + first * columns + used_features_[f];
      T* column = features + f * kBlock;
      for (size_t row = 0; row < n; ++row) column[row] = from[row * columns];
      std::fill(column + n, column + padded, T(0));
    }
    std::fill_n(sums, score_count_ * kBlock, T(0));
    kernels::AddLeafMaskTrees(trees, features, used_features_.size(), padded, sums);
    T* into = scores + first * score_count_;
    for (size_t row = 0; row < n; ++row) {
      for (size_t s = 0; s < score_count_; ++s) {
        into[row * score_count_ + s] += sums[s * kBlock + row];
      }
    }
  }
}

template class LeafMaskEnsemble<float>;
template class LeafMaskEnsemble<double>;

}  // namespace tenon
