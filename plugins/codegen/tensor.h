// A value while a plan is made: where it lies or will lie, or how it is computed.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph.h"

namespace codegen {

class KernelWriter;
struct Call;
struct Tensor;
using TensorRef = std::shared_ptr<Tensor>;

// The inside of a kernel that computes a tensor. `code` calls STORE(i, v) once for each element
// i of the tensor, with its value: element-wise operators that follow are applied there.
struct KernelBody {
  std::string name;  // no built-in function's
  std::string code;
  std::array<size_t, 3> global = {1, 1, 1};
  std::array<size_t, 3> local = {1, 1, 1};
};
using Root = std::function<KernelBody(KernelWriter&)>;

// How to compute a tensor that is not in memory yet: by a root kernel, by a call, or by an
// expression of C in which $0, $1 ... are the operands' elements, broadcast to the tensor's shape.
struct Deferred {
  Root root;
  std::shared_ptr<Call> call;
  std::string expression;
  std::vector<TensorRef> operands;
  int size = 1;  // expressions in this one
};

// A strided view of a storage, or a value that has none yet.
struct Tensor {
  Tensor() = default;
  // Row-major.
  Tensor(DataType element_type, Shape sizes);

  DataType type = DataType::kNone;
  DataType stored_type = DataType::kNone;  // in memory: a view of float16 may have type float
  Shape shape;
  Shape strides;  // in elements; may be 0 or negative
  int64_t offset = 0;
  int storage = -1;                           // of the plan; -1: in no memory
  std::optional<std::vector<int64_t>> known;  // contents of small integer tensors, if known
  std::optional<float> scalar;                // the one element, if known
  std::unique_ptr<Deferred> deferred;

  bool IsContiguous() const;
  // [n, channels, ...] with the channels innermost: not row-major, without gaps.
  bool IsChannelsLast() const;
};

// Strides of a row-major tensor.
Shape RowMajorStrides(const Shape& shape);
// Strides of a [n, channels, ...] tensor whose channels are innermost.
Shape ChannelsLastStrides(const Shape& shape);
// Strides with which the same memory is a tensor of another shape, with the elements in the same
// order; nothing if there are none.
std::optional<Shape> ReshapedStrides(const Shape& shape, const Shape& strides,
                                     const Shape& reshaped);
// Whether tensors of the shape lie alike under both strides.
bool AreSameLayout(const Shape& shape, const Shape& a, const Shape& b);
// The shape of an element-wise operator's result.
Result<Shape> BroadcastShape(const Shape& a, const Shape& b);
// Strides with which a tensor is read as one of a larger shape.
Shape BroadcastStrides(const Tensor& tensor, const Shape& shape);
// In [0, rank).
Result<size_t> NormalizeAxis(int64_t axis, size_t rank);

}  // namespace codegen
