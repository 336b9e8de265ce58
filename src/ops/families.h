// The operator families: each file of operators defines its span of rows, and registry.cpp joins
// them.
#pragma once

#include <span>

#include "ops/op_row.h"

namespace tenon {

extern const std::span<const OpRow> kBinaryFamily;
extern const std::span<const OpRow> kClipFamily;
extern const std::span<const OpRow> kDropoutFamily;
extern const std::span<const OpRow> kGemmFamily;
extern const std::span<const OpRow> kMatMulFamily;
extern const std::span<const OpRow> kNormalizationFamily;
extern const std::span<const OpRow> kReduceFamily;
extern const std::span<const OpRow> kReshapeFamily;
extern const std::span<const OpRow> kShapeFamily;
extern const std::span<const OpRow> kSoftmaxFamily;
extern const std::span<const OpRow> kUnaryFamily;

}  // namespace tenon
