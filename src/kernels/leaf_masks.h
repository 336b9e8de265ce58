// Scores small decision trees for many rows at once and without branches. All tests of a tree are
// made. A test that fails removes the leaves below its "true" child, and the first leaf that
// remains is the one that the row reaches: QuickScorer (Lucchese et al., SIGIR 2015), rows in the
// lanes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace tenon::kernels {

// Rows of a block, and the multiple of rows that a call handles.
inline constexpr size_t kLeafMaskBlock = 64;
inline constexpr size_t kLeafMaskStep = 16;

// T is float or double. A tree has at most `words` * kWordBits leaves, numbered such that those
// below the "true" child of a test come before those below its "false" child.
template <class T>
struct LeafMaskTrees {
  using Word = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  static constexpr size_t kWordBits = 8 * sizeof(Word);
  static constexpr size_t kMostWords = 2;

  // x < threshold if `is_strict`, else x <= threshold; no threshold is NaN.
  bool is_strict = false;
  size_t words = 1;
  size_t tree_count = 0;
  // By test: the row of `features`, whether NaN passes (all bits set), and the leaves kept when the
  // test fails: leaf i is bit i % kWordBits of word i / kWordBits, [test][words].
  const T* thresholds = nullptr;
  const uint32_t* features = nullptr;
  const Word* nan_passes = nullptr;
  const Word* kept = nullptr;
  // Tree i has the tests [first_test[i], first_test[i + 1]) and the tables alike.
  const uint32_t* first_test = nullptr;
  const uint32_t* first_table = nullptr;
  // A table adds weights[offset + leaf] to row `score` of the scores. Its leaves are filled up to a
  // multiple of 16.
  const uint32_t* table_scores = nullptr;
  const uint32_t* table_offsets = nullptr;
  const uint32_t* table_sizes = nullptr;
  const T* weights = nullptr;
};

// Adds the trees' weights to `scores`, [score][kLeafMaskBlock], in the order of the trees.
// `features` is [feature][kLeafMaskBlock]. `rows` is a multiple of kLeafMaskStep, at most
// kLeafMaskBlock. `feature_count` features are looked through for NaN.
template <class T>
void AddLeafMaskTrees(const LeafMaskTrees<T>& trees, const T* features, size_t feature_count,
                      size_t rows, T* scores);

}  // namespace tenon::kernels
