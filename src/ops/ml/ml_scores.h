// The transforms of a row of scores in the classifiers and regressors of ai.onnx.ml.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "runtime/kernel_context.h"

namespace tenon {

enum class PostTransform : uint8_t { kNone, kSoftmax, kLogistic, kSoftmaxZero, kProbit };

Result<PostTransform> PostTransformFromName(std::string_view name);

// Transforms `n` scores in place, float or double. A single score is not changed, except for
// kProbit, as in ONNX Runtime; kProbit is also its approximation, within 2e-4.
template <class T>
void ApplyPostTransform(PostTransform transform, T* scores, size_t n);

// Makes the scores of two classes from `scores[0]`, that of the second class, and transforms them:
// (-s, s) if `symmetric`, else (1 - s, s).
void ApplyToBinaryScore(PostTransform transform, bool symmetric, float* scores);

// The labels of a classifier: strings or integers.
struct ClassLabels {
  std::vector<int64_t> integers;
  std::vector<std::string> strings;

  size_t size() const { return strings.empty() ? integers.size() : strings.size(); }
  DataType type() const { return strings.empty() ? DataType::kInt64 : DataType::kString; }
  // Sets element `i` of `labels` to the label of `class_index`, which must be below size().
  void Write(size_t class_index, size_t i, Tensor& labels) const;
};

// The matrix in the input of an ai.onnx.ml operator: a vector is one row.
struct MatrixSizes {
  size_t rows = 0;
  size_t columns = 0;
};
Result<MatrixSizes> MatrixSizesOf(const Shape& shape);
// The rows of the same for shape inference. Error: kInvalidArgument for a rank that is not 1 or 2.
Result<Dim> MatrixRows(const SymbolicShape& shape);

// Input 0 as T, float or double: itself or a converted copy in the scratch memory of `context`,
// after `reserved` bytes that the caller uses at `*scratch`.
template <class T>
Result<const T*> InputAs(KernelContext& context, size_t reserved, void** scratch);

}  // namespace tenon
