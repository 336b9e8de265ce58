// The families whose operators are of com.microsoft alone, as far as families.h has them not.
#pragma once

#include "ops/families.h"

namespace tenon {

extern const std::span<const OpRow> kBifurcationDetectorFamily;
extern const std::span<const OpRow> kDynamicTimeWarpingFamily;
extern const std::span<const OpRow> kGatedRowsFamily;
extern const std::span<const OpRow> kHyperConnectionFamily;
extern const std::span<const OpRow> kNGramHashFamily;
extern const std::span<const OpRow> kQuantizedEmbeddingFamily;
extern const std::span<const OpRow> kUnfoldTensorFamily;

}  // namespace tenon
