// What kernels do with the packed forms of their constants.
#pragma once

#include <cstddef>
#include <memory>

namespace tenon {

class PackedWeightFiles;
class SharedWeights;

struct WeightPolicy {
  std::shared_ptr<SharedWeights> shared;  // where sessions share them; null: they are not shared
  std::shared_ptr<PackedWeightFiles>
      files;  // where processes share them; null: they are not shared
  // In so many of its first runs, a kernel that can packs its weights piece by piece as it reads
  // them, and keeps nothing: a session that runs once needs no second copy of them. Later runs
  // keep them.
  size_t runs_before_packing = 1;
};

}  // namespace tenon
