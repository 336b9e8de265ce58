// Which statistics a BatchNormalization uses.
#pragma once

#include "ir/node.h"

namespace tenon {

// The first version of BatchNormalization with the attribute 'training_mode'.
constexpr int32_t kFirstWithTrainingMode = 14;

// Whether a BatchNormalization normalizes by the statistics of its batch: it says so, or, before
// there was an attribute for it, it has outputs for them, even if nothing reads these.
bool UsesBatchStatistics(const Node& node);

}  // namespace tenon
