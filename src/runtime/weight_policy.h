// What kernels do with the packed forms of their constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/status.h"
#include "base/string_map.h"

namespace tenon {

class Logger;
class PackedWeightFiles;
class PackingPace;
class SessionWeights;
class SharedWeights;

// How exactly products of float32 matrices with constants are to be computed, as in PyTorch. A
// kernel computes more exactly where that is no slower.
enum class MatmulPrecision : uint8_t {
  kHighest,  // with float32 numbers
  kHigh,     // at least with sums of two bfloat16 numbers, which have 16 bits
  kMedium,   // at least with bfloat16 numbers, which have 8 bits; sums are in float32
};

struct WeightPolicy {
  std::shared_ptr<SharedWeights> shared;  // where sessions share them; null: they are not shared
  std::shared_ptr<PackedWeightFiles>
      files;  // where processes share them; null: they are not shared
  std::shared_ptr<SessionWeights>
      session;  // where a session's kernels share them; null: they don't
  // In so many of its first runs, a kernel that can packs its weights piece by piece as it reads
  // them, and keeps nothing: a session that runs once needs no second copy of them. Later runs
  // keep them.
  size_t runs_before_packing = 1;
  std::shared_ptr<PackingPace> pace;  // of these later runs; null: the first of them packs all
  MatmulPrecision precision = MatmulPrecision::kHighest;
  // accuracy_level of MatMulNBits that names none; 0: the weights decide.
  size_t nbits_accuracy_level = 0;
};

// That of a session with this configuration. Error: kInvalidArgument naming key and value.
Result<WeightPolicy> MakeWeightPolicy(const StringMap& config,
                                      std::shared_ptr<SharedWeights> shared, const Logger& logger);

}  // namespace tenon
