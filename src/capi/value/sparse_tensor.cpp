// Sparse tensors: values and their indices.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "capi/boundary/arguments.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/value/allocator.h"
#include "capi/value/element_type.h"
#include "capi/value/tensor_arguments.h"

namespace tenon::capi {
namespace {

// A client's handle for memory that Tenon allocates when a tensor is filled: values without
// elements, which keep the allocator.
struct SparseMemory {
  std::shared_ptr<Allocator> allocator;
};

template <class Handle>
Result<SparseTensor*> SparseOf(Handle* value) {
  TENON_RETURN_IF_NULL(value);
  const Value& object = *Unwrap(value);
  if (object.kind() != Value::Kind::kSparseTensor) {
    return InvalidArgument("expected a sparse tensor, got a {}", ValueKindName(object.kind()));
  }
  return &object.sparse();
}

template <class Handle>
Result<SparseTensor*> FilledSparseOf(Handle* value) {
  TENON_ASSIGN_OR_RETURN(SparseTensor* const sparse, SparseOf(value));
  if (sparse->format == SparseFormat::kNone) {
    return InvalidArgument("the sparse tensor has no indices yet");
  }
  return sparse;
}

// Values and indices of one sparse tensor, before it owns them.
struct Parts {
  SparseFormat format = SparseFormat::kNone;
  Tensor values;
  Tensor indices;
  Tensor outer_indices;
};

template <class T>
Status CheckRange(const Tensor& indices, int64_t bound) {
  for (const T index : indices.values<T>()) {
    if (index < 0 || index >= bound) {
      return InvalidArgument("index {} is outside [0, {})", index, bound);
    }
  }
  return OkStatus();
}

Status CheckCoo(const Parts& parts, const Shape& dense) {
  if (parts.indices.rank() == 1) return CheckRange<int64_t>(parts.indices, dense.NumElements());
  const auto* const indices = parts.indices.data<int64_t>();
  const size_t rank = dense.rank();
  for (int64_t i = 0; i < parts.indices.size(); ++i) {
    const int64_t bound = dense[static_cast<size_t>(i) % rank];
    if (indices[i] < 0 || indices[i] >= bound) {
      return InvalidArgument("index {} is outside [0, {})", indices[i], bound);
    }
  }
  return OkStatus();
}

Status CheckCsr(const Parts& parts, const Shape& dense) {
  TENON_RETURN_IF_ERROR(CheckRange<int64_t>(parts.indices, dense[1]));
  const auto starts = parts.outer_indices.values<int64_t>();
  if (starts.empty()) return OkStatus();
  const bool ascends = std::is_sorted(starts.begin(), starts.end()) && starts.front() == 0 &&
                       starts.back() == parts.values.size();
  if (ascends) return OkStatus();
  return InvalidArgument("the starts of rows ascend from 0 to {}, got others", parts.values.size());
}

Status CheckBlocks(const Parts& parts) { return CheckRange<int32_t>(parts.indices, INT32_MAX); }

Status CheckIndices(const Parts& parts, const Shape& dense) {
  switch (parts.format) {
    case SparseFormat::kCoo:
      return CheckCoo(parts, dense);
    case SparseFormat::kCsr:
      return CheckCsr(parts, dense);
    case SparseFormat::kBlock:
      return CheckBlocks(parts);
    case SparseFormat::kNone:
      break;
  }
  return OkStatus();
}

Result<Shape> CooShape(size_t indices_num, int64_t values, size_t rank) {
  const auto count = static_cast<size_t>(values);
  if (indices_num == count) return Shape{values};
  if (rank > 0 && indices_num == count * rank) return Shape{values, static_cast<int64_t>(rank)};
  return InvalidArgument("{} values need {} linear indices or {} coordinates, got {}", count, count,
                         count * rank, indices_num);
}

Status CheckCsrCounts(size_t inner_num, size_t outer_num, int64_t values, const Shape& dense) {
  if (dense.rank() != 2) {
    return InvalidArgument("expected a matrix for compressed rows, got shape {}", dense);
  }
  if (inner_num != static_cast<size_t>(values)) {
    return InvalidArgument("{} values need as many inner indices, got {}", values, inner_num);
  }
  const auto rows = static_cast<size_t>(dense[0]);
  if (outer_num == rows + 1 || (outer_num == 0 && values == 0)) return OkStatus();
  return InvalidArgument("{} rows need {} outer indices, got {}", rows, rows + 1, outer_num);
}

Status CheckBlockShapes(const Shape& values, const Shape& indices) {
  if (values.rank() < 3) {
    return InvalidArgument("expected blocks of rank 2, got values of shape {}", values);
  }
  if (indices.rank() == 2 && indices[1] == values[0]) return OkStatus();
  return InvalidArgument("expected indices of shape [rank, {}], got {}", values[0], indices);
}

Tensor IndicesView(const Shape& shape, const int64_t* indices) {
  return Tensor::View(DataType::kInt64, shape, const_cast<int64_t*>(indices));
}

Tensor IndicesView(const Shape& shape, const int32_t* indices) {
  return Tensor::View(DataType::kInt32, shape, const_cast<int32_t*>(indices));
}

Result<Shape> ShapeOf(const int64_t* dims, size_t rank) {
  Shape shape(std::span(dims, rank));
  TENON_RETURN_IF_ERROR(shape.CheckedNumElements());
  return shape;
}

// A copy of a client's values. Strings are an array of pointers.
Result<Tensor> CopyValues(const SparseTensor& sparse, const OrtMemoryInfo* memory,
                          const int64_t* dims, size_t rank, const void* values,
                          const std::shared_ptr<Allocator>& allocator) {
  TENON_RETURN_IF_NULL(memory);
  TENON_RETURN_IF_NULL_ARRAY(dims, rank);
  if (!Unwrap(memory)->IsHostAccessible()) {
    return NotImplemented("values in memory of '{}' cannot be read", Unwrap(memory)->name);
  }
  TENON_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(dims, rank));
  if (values == nullptr && shape.NumElements() != 0) {
    return InvalidArgument("values must not be null");
  }
  const DataType type = sparse.values.type();
  TENON_ASSIGN_OR_RETURN(Tensor copy, Tensor::Allocate(type, shape, allocator));
  if (type != DataType::kString) {
    if (copy.bytes() != 0) std::memcpy(copy.raw(), values, copy.bytes());
    return copy;
  }
  const auto* const strings = static_cast<const char* const*>(values);
  for (int64_t i = 0; i < copy.size(); ++i) {
    if (strings[i] == nullptr) return InvalidArgument("values[{}] must not be null", i);
    copy.data<std::string>()[i] = strings[i];
  }
  return copy;
}

// Copies the indices of `parts`, which are the client's, and stores all parts.
Status FillWith(SparseTensor& sparse, Parts parts) {
  TENON_RETURN_IF_ERROR(CheckIndices(parts, sparse.dense_shape));
  TENON_ASSIGN_OR_RETURN(sparse.indices, parts.indices.Clone());
  if (parts.outer_indices.defined()) {
    TENON_ASSIGN_OR_RETURN(sparse.outer_indices, parts.outer_indices.Clone());
  }
  sparse.values = std::move(parts.values);
  sparse.format = parts.format;
  return OkStatus();
}

// Uses the client's indices without a copy. The values exist already.
Status UseIndices(SparseTensor& sparse, Parts parts) {
  parts.values = sparse.values;
  TENON_RETURN_IF_ERROR(CheckIndices(parts, sparse.dense_shape));
  sparse.indices = std::move(parts.indices);
  sparse.outer_indices = std::move(parts.outer_indices);
  sparse.format = parts.format;
  return OkStatus();
}

// The allocator of the values of `sparse`: CreateSparseTensorAsOrtValue keeps it as their owner.
std::shared_ptr<Allocator> AllocatorOf(const SparseTensor& sparse) {
  const auto memory = std::static_pointer_cast<SparseMemory>(sparse.values.owner());
  return memory->allocator;
}

Result<SparseTensor*> EmptySparseOf(OrtValue* value) {
  TENON_ASSIGN_OR_RETURN(SparseTensor* const sparse, SparseOf(value));
  const bool is_empty = sparse->format == SparseFormat::kNone && sparse->values.raw() == nullptr &&
                        sparse->values.owner() != nullptr;
  if (!is_empty) return InvalidArgument("the sparse tensor has values already");
  return sparse;
}

Result<SparseTensor*> UnindexedSparseOf(OrtValue* value) {
  TENON_ASSIGN_OR_RETURN(SparseTensor* const sparse, SparseOf(value));
  if (sparse->format != SparseFormat::kNone) {
    return InvalidArgument("the sparse tensor has indices already");
  }
  return sparse;
}

Result<const Tensor*> IndicesOf(const OrtValue* value, int indices_format) {
  TENON_ASSIGN_OR_RETURN(const SparseTensor* const sparse, FilledSparseOf(value));
  const auto check = [&](SparseFormat format, const Tensor& tensor) -> Result<const Tensor*> {
    if (sparse->format == format) return &tensor;
    return InvalidArgument("the sparse tensor has indices of another format");
  };
  switch (indices_format) {
    case ORT_SPARSE_COO_INDICES:
      return check(SparseFormat::kCoo, sparse->indices);
    case ORT_SPARSE_CSR_INNER_INDICES:
      return check(SparseFormat::kCsr, sparse->indices);
    case ORT_SPARSE_CSR_OUTER_INDICES:
      return check(SparseFormat::kCsr, sparse->outer_indices);
    case ORT_SPARSE_BLOCK_SPARSE_INDICES:
      return check(SparseFormat::kBlock, sparse->indices);
  }
  return InvalidArgument("there is no format {} of sparse indices", indices_format);
}

}  // namespace

OrtStatus* CreateSparseTensorAsOrtValue(OrtAllocator* allocator, const int64_t* dense_shape,
                                        size_t dense_shape_len, ONNXTensorElementDataType type,
                                        OrtValue** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(allocator);
    TENON_RETURN_IF_NULL_ARRAY(dense_shape, dense_shape_len);
    TENON_RETURN_IF_NULL(out);
    TENON_ASSIGN_OR_RETURN(const DataType data_type, FromElementType(type));
    if (data_type == DataType::kUndefined) return InvalidArgument("type must be defined");
    TENON_ASSIGN_OR_RETURN(Shape dense, ShapeOf(dense_shape, dense_shape_len));
    auto memory = std::make_shared<SparseMemory>(SparseMemory{FromClient(allocator)});
    const MemoryInfo& info = memory->allocator->info();
    *out = NewHandle<OrtValue>(std::make_shared<SparseTensor>(
        SparseTensor{Tensor::View(data_type, Shape{0}, nullptr, std::move(memory), info),
                     {},
                     std::move(dense),
                     SparseFormat::kNone}));
    return OkStatus();
  });
}

OrtStatus* FillSparseTensorCoo(OrtValue* ort_value, const OrtMemoryInfo* data_mem_info,
                               const int64_t* values_shape, size_t values_shape_len,
                               const void* values, const int64_t* indices_data,
                               size_t indices_num) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_ASSIGN_OR_RETURN(SparseTensor* const sparse, EmptySparseOf(ort_value));
    TENON_RETURN_IF_NULL_ARRAY(indices_data, indices_num);
    Parts parts = {.format = SparseFormat::kCoo};
    TENON_ASSIGN_OR_RETURN(
        parts.values, CopyValues(*sparse, data_mem_info, values_shape, values_shape_len, values,
                                 AllocatorOf(*sparse)));
    TENON_ASSIGN_OR_RETURN(const Shape shape,
                           CooShape(indices_num, parts.values.size(), sparse->dense_shape.rank()));
    parts.indices = IndicesView(shape, indices_data);
    return FillWith(*sparse, std::move(parts));
  });
}

OrtStatus* FillSparseTensorCsr(OrtValue* ort_value, const OrtMemoryInfo* data_mem_info,
                               const int64_t* values_shape, size_t values_shape_len,
                               const void* values, const int64_t* inner_indices_data,
                               size_t inner_indices_num, const int64_t* outer_indices_data,
                               size_t outer_indices_num) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_ASSIGN_OR_RETURN(SparseTensor* const sparse, EmptySparseOf(ort_value));
    TENON_RETURN_IF_NULL_ARRAY(inner_indices_data, inner_indices_num);
    TENON_RETURN_IF_NULL_ARRAY(outer_indices_data, outer_indices_num);
    Parts parts = {.format = SparseFormat::kCsr};
    TENON_ASSIGN_OR_RETURN(
        parts.values, CopyValues(*sparse, data_mem_info, values_shape, values_shape_len, values,
                                 AllocatorOf(*sparse)));
    TENON_RETURN_IF_ERROR(CheckCsrCounts(inner_indices_num, outer_indices_num, parts.values.size(),
                                         sparse->dense_shape));
    parts.indices = IndicesView(Shape{static_cast<int64_t>(inner_indices_num)}, inner_indices_data);
    parts.outer_indices =
        IndicesView(Shape{static_cast<int64_t>(outer_indices_num)}, outer_indices_data);
    return FillWith(*sparse, std::move(parts));
  });
}

OrtStatus* FillSparseTensorBlockSparse(OrtValue* ort_value, const OrtMemoryInfo* data_mem_info,
                                       const int64_t* values_shape, size_t values_shape_len,
                                       const void* values, const int64_t* indices_shape_data,
                                       size_t indices_shape_len,
                                       const int32_t* indices_data) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_ASSIGN_OR_RETURN(SparseTensor* const sparse, EmptySparseOf(ort_value));
    TENON_RETURN_IF_NULL_ARRAY(indices_shape_data, indices_shape_len);
    Parts parts = {.format = SparseFormat::kBlock};
    TENON_ASSIGN_OR_RETURN(
        parts.values, CopyValues(*sparse, data_mem_info, values_shape, values_shape_len, values,
                                 AllocatorOf(*sparse)));
    TENON_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(indices_shape_data, indices_shape_len));
    TENON_RETURN_IF_ERROR(CheckBlockShapes(parts.values.shape(), shape));
    TENON_RETURN_IF_NULL_ARRAY(indices_data, shape.NumElements());
    parts.indices = IndicesView(shape, indices_data);
    return FillWith(*sparse, std::move(parts));
  });
}

OrtStatus* CreateSparseTensorWithValuesAsOrtValue(
    const OrtMemoryInfo* info, void* p_data, const int64_t* dense_shape, size_t dense_shape_len,
    const int64_t* values_shape, size_t values_shape_len, ONNXTensorElementDataType type,
    OrtValue** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(info);
    TENON_RETURN_IF_NULL_ARRAY(dense_shape, dense_shape_len);
    TENON_RETURN_IF_NULL(out);
    TENON_ASSIGN_OR_RETURN(Shape dense, ShapeOf(dense_shape, dense_shape_len));
    // The size is not checked: the ABI does not pass it.
    TENON_ASSIGN_OR_RETURN(Tensor values, ViewOf(*Unwrap(info), p_data, SIZE_MAX, values_shape,
                                                 values_shape_len, type, nullptr));
    *out = NewHandle<OrtValue>(std::make_shared<SparseTensor>(
        SparseTensor{std::move(values), {}, std::move(dense), SparseFormat::kNone}));
    return OkStatus();
  });
}

OrtStatus* UseCooIndices(OrtValue* ort_value, int64_t* indices_data, size_t indices_num) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_ASSIGN_OR_RETURN(SparseTensor* const sparse, UnindexedSparseOf(ort_value));
    TENON_RETURN_IF_NULL_ARRAY(indices_data, indices_num);
    TENON_ASSIGN_OR_RETURN(const Shape shape, CooShape(indices_num, sparse->values.size(),
                                                       sparse->dense_shape.rank()));
    return UseIndices(*sparse, {.format = SparseFormat::kCoo,
                                .values = {},
                                .indices = IndicesView(shape, indices_data),
                                .outer_indices = {}});
  });
}

OrtStatus* UseCsrIndices(OrtValue* ort_value, int64_t* inner_data, size_t inner_num,
                         int64_t* outer_data, size_t outer_num) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_ASSIGN_OR_RETURN(SparseTensor* const sparse, UnindexedSparseOf(ort_value));
    TENON_RETURN_IF_NULL_ARRAY(inner_data, inner_num);
    TENON_RETURN_IF_NULL_ARRAY(outer_data, outer_num);
    TENON_RETURN_IF_ERROR(
        CheckCsrCounts(inner_num, outer_num, sparse->values.size(), sparse->dense_shape));
    return UseIndices(
        *sparse,
        {.format = SparseFormat::kCsr,
         .values = {},
         .indices = IndicesView(Shape{static_cast<int64_t>(inner_num)}, inner_data),
         .outer_indices = IndicesView(Shape{static_cast<int64_t>(outer_num)}, outer_data)});
  });
}

OrtStatus* UseBlockSparseIndices(OrtValue* ort_value, const int64_t* indices_shape,
                                 size_t indices_shape_len, int32_t* indices_data) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_ASSIGN_OR_RETURN(SparseTensor* const sparse, UnindexedSparseOf(ort_value));
    TENON_RETURN_IF_NULL_ARRAY(indices_shape, indices_shape_len);
    TENON_ASSIGN_OR_RETURN(const Shape shape, ShapeOf(indices_shape, indices_shape_len));
    TENON_RETURN_IF_ERROR(CheckBlockShapes(sparse->values.shape(), shape));
    TENON_RETURN_IF_NULL_ARRAY(indices_data, shape.NumElements());
    return UseIndices(*sparse, {.format = SparseFormat::kBlock,
                                .values = {},
                                .indices = IndicesView(shape, indices_data),
                                .outer_indices = {}});
  });
}

OrtStatus* GetSparseTensorFormat(const OrtValue* ort_value, OrtSparseFormat* out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(out);
    TENON_ASSIGN_OR_RETURN(const SparseTensor* const sparse, SparseOf(ort_value));
    switch (sparse->format) {
      case SparseFormat::kNone:
        *out = ORT_SPARSE_UNDEFINED;
        break;
      case SparseFormat::kCoo:
        *out = ORT_SPARSE_COO;
        break;
      case SparseFormat::kCsr:
        *out = ORT_SPARSE_CSRC;
        break;
      case SparseFormat::kBlock:
        *out = ORT_SPARSE_BLOCK_SPARSE;
        break;
    }
    return OkStatus();
  });
}

OrtStatus* GetSparseTensorValuesTypeAndShape(const OrtValue* ort_value,
                                             OrtTensorTypeAndShapeInfo** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(out);
    TENON_ASSIGN_OR_RETURN(const SparseTensor* const sparse, SparseOf(ort_value));
    *out = NewHandle<OrtTensorTypeAndShapeInfo>(ValueType::Of(sparse->values));
    return OkStatus();
  });
}

OrtStatus* GetSparseTensorValues(const OrtValue* ort_value, const void** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(out);
    TENON_ASSIGN_OR_RETURN(const SparseTensor* const sparse, SparseOf(ort_value));
    if (sparse->values.type() == DataType::kString) {
      return InvalidArgument("strings cannot be read as bytes");
    }
    *out = std::as_const(sparse->values).raw();
    return OkStatus();
  });
}

OrtStatus* GetSparseTensorIndicesTypeShape(const OrtValue* ort_value,
                                           OrtSparseIndicesFormat indices_format,
                                           OrtTensorTypeAndShapeInfo** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(out);
    TENON_ASSIGN_OR_RETURN(const Tensor* const indices, IndicesOf(ort_value, indices_format));
    *out = NewHandle<OrtTensorTypeAndShapeInfo>(ValueType::Of(*indices));
    return OkStatus();
  });
}

OrtStatus* GetSparseTensorIndices(const OrtValue* ort_value, OrtSparseIndicesFormat indices_format,
                                  size_t* num_indices, const void** indices) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(num_indices);
    TENON_RETURN_IF_NULL(indices);
    TENON_ASSIGN_OR_RETURN(const Tensor* const tensor, IndicesOf(ort_value, indices_format));
    *num_indices = static_cast<size_t>(tensor->size());
    *indices = tensor->raw();
    return OkStatus();
  });
}

}  // namespace tenon::capi
