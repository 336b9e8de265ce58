// Where GridSample takes its samples along an axis of floats.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::kernels {

enum class GridPadding : uint8_t { kZeros, kBorder, kReflection };

struct GridAxis {
  int64_t dim = 1;
  size_t taps = 1;  // elements of a sample: 1, the nearest; 2, linear; 4, cubic interpolation
  GridPadding padding = GridPadding::kZeros;
  bool align_corners = false;

  // Whether the functions below serve it.
  bool IsServed() const { return padding != GridPadding::kReflection || taps == 2; }
};

// Finds the taps of `count` positions, which `weights` begins with, -1 and 1 at the ends of the
// axis. Tap k of position i is indices[k * count + i], negative where it counts as 0, with
// weights[k * count + i]. `slopes`, if not null, gets the derivatives of the weights.
void FindAxisTaps(const GridAxis& axis, size_t count, int32_t* indices, float* weights,
                  float* slopes);

// The same for positions in a plane, pairs that begin with the column, and at most 2 taps along
// each axis. Those of a row are neighbours: tap k of the rows and j of the columns is k * taps + j.
void FindPlaneTaps(const GridAxis& rows, const GridAxis& columns, size_t count,
                   const float* positions, int32_t* indices, float* weights);

// Joins the taps of n positions along some axes, one each, with those along a further one of `dim`
// elements. The results may take the place of the first ones.
void JoinTaps(int64_t dim, const int32_t* indices, const float* weights, const int32_t* own_indices,
              const float* own_weights, int32_t* to_indices, float* to_weights, size_t n);

// sums[k * n + i] += x[indices[k * n + i]] * factors[i] for i in [0, n) and k in [0, taps), where
// the index is not negative.
void AddSampled(size_t taps, const int32_t* indices, const float* x, const float* factors,
                float* sums, size_t n);

// to[i] = sum over k of terms[k * n + i] * factors[k * n + i], for i in [0, n) and k in [0, taps).
// `to` may be `terms`.
void ContractTaps(size_t taps, const float* terms, const float* factors, float* to, size_t n);

}  // namespace tenon::kernels
