// The operator families: each file of operators defines its span of rows, and registry.cpp joins
// them.
#pragma once

#include <span>

#include "ops/op_row.h"

namespace tenon {

extern const std::span<const OpRow> kAffineGridFamily;
extern const std::span<const OpRow> kArgReduceFamily;
extern const std::span<const OpRow> kAttentionFamily;
extern const std::span<const OpRow> kBeamSearchFamily;
extern const std::span<const OpRow> kBiasActivationFamily;
extern const std::span<const OpRow> kBinaryFamily;
extern const std::span<const OpRow> kBitwiseFamily;
extern const std::span<const OpRow> kBlockQuantizedGatherFamily;
extern const std::span<const OpRow> kCastFamily;
extern const std::span<const OpRow> kCausalConvFamily;
extern const std::span<const OpRow> kCenterCropPadFamily;
extern const std::span<const OpRow> kClipFamily;
extern const std::span<const OpRow> kCol2ImFamily;
extern const std::span<const OpRow> kCompressFamily;
extern const std::span<const OpRow> kConcatFamily;
extern const std::span<const OpRow> kConstantFamily;
extern const std::span<const OpRow> kContribTensorFamily;
extern const std::span<const OpRow> kControlFlowFamily;
extern const std::span<const OpRow> kConvFamily;
extern const std::span<const OpRow> kConvTransposeFamily;
extern const std::span<const OpRow> kCrossEntropyFamily;
extern const std::span<const OpRow> kCumProdFamily;
extern const std::span<const OpRow> kDeformConvFamily;
extern const std::span<const OpRow> kDepthToSpaceFamily;
extern const std::span<const OpRow> kDetFamily;
extern const std::span<const OpRow> kDftFamily;
extern const std::span<const OpRow> kDropoutFamily;
extern const std::span<const OpRow> kEinsumFamily;
extern const std::span<const OpRow> kExpandFamily;
extern const std::span<const OpRow> kFlexAttentionFamily;
extern const std::span<const OpRow> kGatherFamily;
extern const std::span<const OpRow> kGemmFamily;
extern const std::span<const OpRow> kGreedySearchFamily;
extern const std::span<const OpRow> kGridSampleFamily;
extern const std::span<const OpRow> kGroupNormFamily;
extern const std::span<const OpRow> kGroupQueryAttentionFamily;
extern const std::span<const OpRow> kGruFamily;
extern const std::span<const OpRow> kHardmaxFamily;
extern const std::span<const OpRow> kImageDecoderFamily;
extern const std::span<const OpRow> kLinearAttentionFamily;
extern const std::span<const OpRow> kLinearRecurrenceFamily;
extern const std::span<const OpRow> kLongformerAttentionFamily;
extern const std::span<const OpRow> kLpNormalizationFamily;
extern const std::span<const OpRow> kLstmFamily;
extern const std::span<const OpRow> kMatMulFamily;
extern const std::span<const OpRow> kMatMulNBitsFamily;
extern const std::span<const OpRow> kMatrixOrderFamily;
extern const std::span<const OpRow> kMaxUnpoolFamily;
extern const std::span<const OpRow> kMelWeightMatrixFamily;
extern const std::span<const OpRow> kMixtureOfExpertsFamily;
extern const std::span<const OpRow> kMlEncodersFamily;
extern const std::span<const OpRow> kMlLinearFamily;
extern const std::span<const OpRow> kMlMapsFamily;
extern const std::span<const OpRow> kMlNormalizerFamily;
extern const std::span<const OpRow> kMlSvmFamily;
extern const std::span<const OpRow> kMlTree5Family;
extern const std::span<const OpRow> kMlTreeFamily;
extern const std::span<const OpRow> kMlZipmapFamily;
extern const std::span<const OpRow> kMultiHeadAttentionFamily;
extern const std::span<const OpRow> kNchwcConvFamily;
extern const std::span<const OpRow> kNchwcPoolFamily;
extern const std::span<const OpRow> kNonMaxSuppressionFamily;
extern const std::span<const OpRow> kNormalizationFamily;
extern const std::span<const OpRow> kOneHotFamily;
extern const std::span<const OpRow> kOptimizersFamily;
extern const std::span<const OpRow> kOptionalFamily;
extern const std::span<const OpRow> kOrderedMatMulFamily;
extern const std::span<const OpRow> kPackedAttentionFamily;
extern const std::span<const OpRow> kPadFamily;
extern const std::span<const OpRow> kPagedAttentionFamily;
extern const std::span<const OpRow> kPoolFamily;
extern const std::span<const OpRow> kPositionBiasFamily;
extern const std::span<const OpRow> kPositionsFamily;
extern const std::span<const OpRow> kProjectedAttentionFamily;
extern const std::span<const OpRow> kQLinearElementwiseFamily;
extern const std::span<const OpRow> kQuantizeLinearFamily;
extern const std::span<const OpRow> kQuantizedConvFamily;
extern const std::span<const OpRow> kQuantizedMatMulFamily;
extern const std::span<const OpRow> kQuantizedPoolFamily;
extern const std::span<const OpRow> kQuantizedProductsFamily;
extern const std::span<const OpRow> kQuantizedReduceFamily;
extern const std::span<const OpRow> kRandomFamily;
extern const std::span<const OpRow> kReduceFamily;
extern const std::span<const OpRow> kRegexMatchFamily;
extern const std::span<const OpRow> kReshapeFamily;
extern const std::span<const OpRow> kResizeFamily;
extern const std::span<const OpRow> kReverseSequenceFamily;
extern const std::span<const OpRow> kRnnFamily;
extern const std::span<const OpRow> kRoiPoolFamily;
extern const std::span<const OpRow> kRotaryEmbeddingFamily;
extern const std::span<const OpRow> kScan8Family;
extern const std::span<const OpRow> kScanFamily;
extern const std::span<const OpRow> kScatterFamily;
extern const std::span<const OpRow> kSequenceFamily;
extern const std::span<const OpRow> kSequenceMapFamily;
extern const std::span<const OpRow> kSequencePaddingFamily;
extern const std::span<const OpRow> kShapeFamily;
extern const std::span<const OpRow> kShrinkFamily;
extern const std::span<const OpRow> kSkipNormalizationFamily;
extern const std::span<const OpRow> kSliceFamily;
extern const std::span<const OpRow> kSoftmaxFamily;
extern const std::span<const OpRow> kSparseAttentionFamily;
extern const std::span<const OpRow> kSplitFamily;
extern const std::span<const OpRow> kSplitToSequenceFamily;
extern const std::span<const OpRow> kStringNormalizerFamily;
extern const std::span<const OpRow> kStringsFamily;
extern const std::span<const OpRow> kTensorScatterFamily;
extern const std::span<const OpRow> kTextHashFamily;
extern const std::span<const OpRow> kTfidfVectorizerFamily;
extern const std::span<const OpRow> kTokenizerFamily;
extern const std::span<const OpRow> kTopKFamily;
extern const std::span<const OpRow> kTransposeFamily;
extern const std::span<const OpRow> kUnaryFamily;
extern const std::span<const OpRow> kUniqueFamily;
extern const std::span<const OpRow> kWhereFamily;

}  // namespace tenon
