#include "ir/permutation.h"

#include <algorithm>
#include <numeric>

namespace tenon {

Permutation PermutationOf(const Node& transpose, size_t rank) {
  Permutation permutation = transpose.GetInts("perm");
  if (permutation.empty()) {
    for (size_t i = rank; i > 0; --i) permutation.push_back(static_cast<int64_t>(i) - 1);
  }
  if (permutation.size() != rank) return {};
  std::vector<bool> seen(rank, false);
  for (const int64_t axis : permutation) {
    if (axis < 0 || axis >= static_cast<int64_t>(rank) || seen[static_cast<size_t>(axis)]) {
      return {};
    }
    seen[static_cast<size_t>(axis)] = true;
  }
  return permutation;
}

Permutation Inverse(const Permutation& permutation) {
  Permutation inverse(permutation.size());
  for (size_t i = 0; i < permutation.size(); ++i) {
    inverse[static_cast<size_t>(permutation[i])] = static_cast<int64_t>(i);
  }
  return inverse;
}

Permutation Composed(const Permutation& inner, const Permutation& outer) {
  Permutation composed;
  for (const int64_t axis : outer) composed.push_back(inner[static_cast<size_t>(axis)]);
  return composed;
}

Permutation ToChannelsLast(size_t rank) {
  Permutation axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  std::rotate(axes.begin() + 1, axes.begin() + 2, axes.end());
  return axes;
}

Permutation ToChannelsFirst(size_t rank) { return Inverse(ToChannelsLast(rank)); }

bool IsIdentity(const Permutation& permutation) {
  return std::is_sorted(permutation.begin(), permutation.end());
}

}  // namespace tenon
