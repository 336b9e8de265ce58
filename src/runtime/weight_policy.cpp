#include "runtime/weight_policy.h"

#include <string_view>
#include <utility>

#include "runtime/config.h"
#include "runtime/packed_weight_files.h"
#include "runtime/packing_pace.h"
#include "runtime/session_weights.h"

namespace tenon {
namespace {

Result<MatmulPrecision> PrecisionOf(const StringMap& config) {
  constexpr std::string_view kKey = "session.matmul_precision";
  const auto entry = config.find(kKey);
  if (entry == config.end() || entry->second == "highest") return MatmulPrecision::kHighest;
  if (entry->second == "high") return MatmulPrecision::kHigh;
  if (entry->second == "medium") return MatmulPrecision::kMedium;
  return InvalidArgument("{}: expected highest, high or medium, got '{}'", kKey, entry->second);
}

Result<size_t> NBitsLevelOf(const StringMap& config) {
  constexpr std::string_view kKey = "session.qdq_matmulnbits_accuracy_level";
  TENON_ASSIGN_OR_RETURN(const size_t level, ConfigCount(config, kKey, 0));
  if (level <= 4) return level;
  return InvalidArgument("{}: expected a level from 0 to 4, got {}", kKey, level);
}

}  // namespace

Result<WeightPolicy> MakeWeightPolicy(const StringMap& config,
                                      std::shared_ptr<SharedWeights> shared, const Logger& logger) {
  WeightPolicy policy;
  policy.shared = std::move(shared);
  policy.session = std::make_shared<SessionWeights>();
  const auto folder = config.find(std::string_view("tenon.packed_weights_folder"));
  if (folder != config.end() && !folder->second.empty()) {
    TENON_ASSIGN_OR_RETURN(policy.files, PackedWeightFiles::Open(folder->second, logger));
    policy.runs_before_packing = 0;  // so that a process that runs once leaves files, too
  }
  TENON_ASSIGN_OR_RETURN(
      policy.runs_before_packing,
      ConfigCount(config, "tenon.runs_before_packing", policy.runs_before_packing));
  if (ConfigFlag(config, "session.disable_prepacking", false)) {
    policy.runs_before_packing = SIZE_MAX;
  }
  if (policy.runs_before_packing > 0) policy.pace = std::make_shared<PackingPace>();
  TENON_ASSIGN_OR_RETURN(policy.precision, PrecisionOf(config));
  TENON_ASSIGN_OR_RETURN(policy.nbits_accuracy_level, NBitsLevelOf(config));
  return policy;
}

}  // namespace tenon
