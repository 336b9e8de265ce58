#include "kernels/leaf_masks.h"

#include <bit>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/leaf_masks.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/dispatch.h"

#ifndef TENON_KERNELS_LEAF_MASKS_ONCE
#define TENON_KERNELS_LEAF_MASKS_ONCE
namespace tenon::kernels {
template <class T>
using AddLeafMaskTreesFunction = void (*)(const LeafMaskTrees<T>& trees, const T* features,
                                          size_t feature_count, size_t rows, T* scores);
struct LeafMaskTable {
  AddLeafMaskTreesFunction<float> f32;
  AddLeafMaskTreesFunction<double> f64;
};
}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The fixed part of an ensemble.
template <size_t words, bool strict, bool nan>
struct Kind {
  static constexpr size_t kWords = words;
  static constexpr bool kIsStrict = strict;
  static constexpr bool kMeetsNan = nan;
};

// The number of the lowest bit that is set in each lane, of which there is one.
template <class T, class DU, class VU = hn::Vec<DU>>
HWY_INLINE hn::Vec<hn::RebindToSigned<DU>> LowestBit(DU du, VU bits) {
  const hn::RebindToSigned<DU> di;
  const hn::Rebind<T, DU> d;
  const auto x = hn::BitCast(di, bits);
  // A power of two is its exponent, and the highest bit a negative one.
  const auto power = hn::ConvertTo(d, hn::And(x, hn::Neg(x)));
  constexpr int kMantissa = sizeof(T) == 4 ? 23 : 52;
  constexpr auto kBias = static_cast<hwy::MakeSigned<T>>(sizeof(T) == 4 ? 127 : 1023);
  constexpr auto kExponent = static_cast<hwy::MakeUnsigned<T>>(2 * kBias + 1);
  const auto exponent =
      hn::And(hn::ShiftRight<kMantissa>(hn::BitCast(du, power)), hn::Set(du, kExponent));
  return hn::Sub(hn::BitCast(di, exponent), hn::Set(di, kBias));
}

// table[index]: from registers where the table is small.
template <class D, class T, class VI>
HWY_INLINE hn::Vec<D> Look(D d, const T* HWY_RESTRICT table, size_t size, VI index) {
  constexpr size_t kMostRegisters = 4;
  const hn::RebindToSigned<D> di;
  using TI = hn::TFromD<decltype(di)>;
  const size_t lanes = hn::Lanes(d);
  if (size > kMostRegisters * lanes) return hn::GatherIndex(d, table, index);
  const auto lane = hn::IndicesFromVec(d, hn::And(index, hn::Set(di, static_cast<TI>(lanes - 1))));
  auto result = hn::TableLookupLanes(hn::LoadU(d, table), lane);
  for (size_t first = lanes; first < size; first += lanes) {
    const auto is_here = hn::Gt(index, hn::Set(di, static_cast<TI>(first - 1)));
    const auto here = hn::TableLookupLanes(hn::LoadU(d, table + first), lane);
    result = hn::IfThenElse(hn::RebindMask(d, is_here), here, result);
  }
  return result;
}

// One tree for kVectors vectors of rows.
template <class K, size_t kVectors, class T>
HWY_INLINE void AddTree(const LeafMaskTrees<T>& trees, size_t tree, const T* HWY_RESTRICT features,
                        T* HWY_RESTRICT scores) {
  const hn::ScalableTag<T> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const hn::RebindToSigned<decltype(d)> di;
  const size_t lanes = hn::Lanes(d);
  using VU = hn::Vec<decltype(du)>;
  VU alive[kVectors][K::kWords];
  for (size_t v = 0; v < kVectors; ++v) {
    for (size_t w = 0; w < K::kWords; ++w) alive[v][w] = hn::Not(hn::Zero(du));
  }
  for (uint32_t test = trees.first_test[tree]; test < trees.first_test[tree + 1]; ++test) {
    const auto threshold = hn::Set(d, trees.thresholds[test]);
    const T* column = features + size_t{trees.features[test]} * kLeafMaskBlock;
    for (size_t v = 0; v < kVectors; ++v) {
      const auto x = hn::LoadU(d, column + v * lanes);
      auto fails = K::kIsStrict ? hn::Ge(x, threshold) : hn::Gt(x, threshold);
      if constexpr (K::kMeetsNan) {
        const auto passes = hn::Ne(hn::Set(du, trees.nan_passes[test]), hn::Zero(du));
        fails = hn::Or(fails, hn::AndNot(hn::RebindMask(d, passes), hn::IsNaN(x)));
      }
      for (size_t w = 0; w < K::kWords; ++w) {
        const VU kept = hn::Set(du, trees.kept[test * K::kWords + w]);
        alive[v][w] =
            hn::IfThenElse(hn::RebindMask(du, fails), hn::And(alive[v][w], kept), alive[v][w]);
      }
    }
  }
  for (size_t v = 0; v < kVectors; ++v) {
    auto leaf = hn::Zero(di);
    if constexpr (K::kWords == 1) {
      leaf = LowestBit<T>(du, alive[v][0]);
    } else {
      const auto is_high = hn::Eq(alive[v][0], hn::Zero(du));
      constexpr auto kBits = static_cast<hwy::MakeSigned<T>>(LeafMaskTrees<T>::kWordBits);
      leaf = hn::Add(LowestBit<T>(du, hn::IfThenElse(is_high, alive[v][1], alive[v][0])),
                     hn::IfThenElseZero(hn::RebindMask(di, is_high), hn::Set(di, kBits)));
    }
    for (uint32_t t = trees.first_table[tree]; t < trees.first_table[tree + 1]; ++t) {
      T* score = scores + trees.table_scores[t] * kLeafMaskBlock + v * lanes;
      const auto weight =
          Look(d, trees.weights + trees.table_offsets[t], trees.table_sizes[t], leaf);
      hn::StoreU(hn::Add(hn::LoadU(d, score), weight), d, score);
    }
  }
}

template <class K, class T>
void AddTrees(const LeafMaskTrees<T>& trees, const T* features, size_t rows, T* scores) {
  const size_t lanes = hn::Lanes(hn::ScalableTag<T>());
  size_t row = 0;
  for (; row + 4 * lanes <= rows; row += 4 * lanes) {
    for (size_t tree = 0; tree < trees.tree_count; ++tree) {
      AddTree<K, 4>(trees, tree, features + row, scores + row);
    }
  }
  for (; row < rows; row += lanes) {
    for (size_t tree = 0; tree < trees.tree_count; ++tree) {
      AddTree<K, 1>(trees, tree, features + row, scores + row);
    }
  }
}

template <class T>
bool HasNan(const T* features, size_t feature_count, size_t rows) {
  const hn::ScalableTag<T> d;
  auto sum = hn::Zero(d);  // becomes NaN by 0 * x only where x is NaN or infinite
  for (size_t f = 0; f < feature_count; ++f) {
    for (size_t i = 0; i < rows; i += hn::Lanes(d)) {
      sum = hn::MulAdd(hn::LoadU(d, features + f * kLeafMaskBlock + i), hn::Zero(d), sum);
    }
  }
  return !hn::AllFalse(d, hn::IsNaN(sum));
}

template <size_t kWords, class T>
void AddTreesOfWords(const LeafMaskTrees<T>& trees, const T* features, size_t feature_count,
                     size_t rows, T* scores) {
  const bool has_nan = HasNan(features, feature_count, rows);
  if (trees.is_strict) {
    return has_nan ? AddTrees<Kind<kWords, true, true>>(trees, features, rows, scores)
                   : AddTrees<Kind<kWords, true, false>>(trees, features, rows, scores);
  }
  return has_nan ? AddTrees<Kind<kWords, false, true>>(trees, features, rows, scores)
                 : AddTrees<Kind<kWords, false, false>>(trees, features, rows, scores);
}

// Row by row, for element types of which the target has no vectors.
template <class T>
void AddTreesOfRows(const LeafMaskTrees<T>& trees, const T* features, size_t rows, T* scores) {
  using Word = typename LeafMaskTrees<T>::Word;
  for (size_t row = 0; row < rows; ++row) {
    for (size_t tree = 0; tree < trees.tree_count; ++tree) {
      Word alive[] = {static_cast<Word>(-1), static_cast<Word>(-1)};
      for (uint32_t test = trees.first_test[tree]; test < trees.first_test[tree + 1]; ++test) {
        const T x = features[size_t{trees.features[test]} * kLeafMaskBlock + row];
        const T threshold = trees.thresholds[test];
        const bool nan_fails = x != x && trees.nan_passes[test] == 0;
        if (!nan_fails && !(trees.is_strict ? x >= threshold : x > threshold)) continue;
        for (size_t w = 0; w < trees.words; ++w) alive[w] &= trees.kept[test * trees.words + w];
      }
      const size_t leaf = alive[0] != 0 ? std::countr_zero(alive[0])
                                        : LeafMaskTrees<T>::kWordBits + std::countr_zero(alive[1]);
      for (uint32_t t = trees.first_table[tree]; t < trees.first_table[tree + 1]; ++t) {
        scores[trees.table_scores[t] * kLeafMaskBlock + row] +=
            trees.weights[trees.table_offsets[t] + leaf];
      }
    }
  }
}

template <class T>
void AddAnyTrees(const LeafMaskTrees<T>& trees, const T* features, size_t feature_count,
                 size_t rows, T* scores) {
  constexpr bool kHasVectors = sizeof(T) == 4 || HWY_HAVE_FLOAT64;
  if constexpr (!kHasVectors) {
    AddTreesOfRows(trees, features, rows, scores);
  } else if (trees.words == 1) {
    AddTreesOfWords<1>(trees, features, feature_count, rows, scores);
  } else {
    AddTreesOfWords<2>(trees, features, feature_count, rows, scores);
  }
}

const LeafMaskTable kLeafMaskTable = {&AddAnyTrees<float>, &AddAnyTrees<double>};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::kernels {

template <>
void AddLeafMaskTrees(const LeafMaskTrees<float>& trees, const float* features,
                      size_t feature_count, size_t rows, float* scores) {
  TENON_SELECT_TABLE(LeafMaskTable, kLeafMaskTable)
      .f32(trees, features, feature_count, rows, scores);
}

template <>
void AddLeafMaskTrees(const LeafMaskTrees<double>& trees, const double* features,
                      size_t feature_count, size_t rows, double* scores) {
  TENON_SELECT_TABLE(LeafMaskTable, kLeafMaskTable)
      .f64(trees, features, feature_count, rows, scores);
}

}  // namespace tenon::kernels
#endif
