// Gather, GatherElements, GatherND: elements picked by indices.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "ops/framework/element.h"
#include "ops/framework/indices.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

struct AxisAttrs {
  int64_t axis = 0;
  static constexpr auto Fields() { return std::tuple(Field("axis", &AxisAttrs::axis)); }
};

void FollowElements(ShapeContext& context) {
  const auto data = context.KnownDims(0);
  const auto indices = context.KnownDims(1);
  if (!data || !indices) return;
  const auto size = static_cast<int64_t>(data->size());
  Dims gathered;
  for (const Dim& index : *indices) {
    if (!index.is_number() || index.value() < -size || index.value() >= size) {
      gathered.push_back(Dim::Unknown());
    } else {
      const int64_t position = index.value() < 0 ? index.value() + size : index.value();
      gathered.push_back((*data)[static_cast<size_t>(position)]);
    }
  }
  context.SetOutputDims(0, std::move(gathered));
}

// Gather-13: data[..., indices, ...] along `axis`.
Status InferGather(const AxisAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape data, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape indices, context.Input(1));
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, data.rank()));
  SymbolicShape output;
  for (size_t i = 0; i < axis; ++i) output.Append(data[i]);
  for (const Dim& dim : indices) output.Append(dim);
  for (size_t i = axis + 1; i < data.rank(); ++i) output.Append(data[i]);
  if (data.rank() == 1 && indices.rank() <= 1) FollowElements(context);
  return context.SetOutput(0, std::move(output));
}

struct GatherSizes {
  size_t outer;
  size_t dim;
  size_t inner;
  size_t count;
};

// Elements from memory that may be unaligned.
template <class T>
void CopyElements(const T* from, size_t count, T* to) {
  if constexpr (std::is_trivially_copyable_v<T>) {
    std::memcpy(to, static_cast<const void*>(from), count * sizeof(T));
  } else {
    std::copy_n(from, count, to);
  }
}

// Rows [begin, end) of the [outer * count, inner] output.
template <class T, class I>
void CopyRows(const GatherSizes& sizes, const T* data, const I* indices, T* output, size_t begin,
              size_t end) {
  size_t outer = begin / sizes.count;
  size_t k = begin % sizes.count;
  const T* base = data + outer * sizes.dim * sizes.inner;
  for (size_t row = begin; row < end; ++row) {
    const size_t index = WrapIndex(indices[k], sizes.dim);
    if (sizes.inner == 1) {
      CopyElements(base + index, 1, output + row);
    } else {
      CopyElements(base + index * sizes.inner, sizes.inner, output + row * sizes.inner);
    }
    if (++k == sizes.count) {
      k = 0;
      base += sizes.dim * sizes.inner;
    }
  }
}

Status RunGather(const AxisAttrs& attrs, KernelContext& context) {
  const Tensor& data = context.Input(0);
  const Tensor& indices = context.Input(1);
  Tensor& output = context.Output(0);
  const Shape& shape = data.shape();
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, shape.rank()));
  TENON_RETURN_IF_ERROR(CheckIndices(indices, shape[axis], axis));
  if (output.size() == 0) return OkStatus();
  const GatherSizes sizes = {static_cast<size_t>(shape.Product(0, axis)),
                             static_cast<size_t>(shape[axis]),
                             static_cast<size_t>(shape.Product(axis + 1, shape.rank())),
                             static_cast<size_t>(indices.size())};
  VisitElement(data.type(), [&](auto element) {
    using T = decltype(element);
    const size_t grain = CopyGrain(sizes.inner * sizeof(T));
    context.threads().ParallelFor(sizes.outer * sizes.count, grain, [&](size_t begin, size_t end) {
      VisitIndices(indices, [&](const auto* values) {
        CopyRows(sizes, data.data<T>(), values, output.data<T>(), begin, end);
      });
    });
  });
  return OkStatus();
}

// GatherElements-13: output[i][j] = data[indices[i][j]][j] for axis 0.
Status InferGatherElements(const AxisAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape data, context.Input(0));
  TENON_ASSIGN_OR_RETURN(SymbolicShape indices, context.Input(1));
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, data.rank()));
  TENON_RETURN_IF_ERROR(CheckIndicesFit(data, indices, axis));
  return context.SetOutput(0, std::move(indices));
}

Status RunGatherElements(const AxisAttrs& attrs, KernelContext& context) {
  const Tensor& data = context.Input(0);
  const Tensor& indices = context.Input(1);
  Tensor& output = context.Output(0);
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, data.rank()));
  TENON_RETURN_IF_ERROR(CheckIndices(indices, data.shape()[axis], axis));
  TENON_ASSIGN_OR_RETURN(const AxisIndexer indexer,
                         AxisIndexer::Make(data.shape(), indices.shape(), axis));
  VisitElement(data.type(), [&](auto element) {
    using T = decltype(element);
    const T* from = data.data<T>();
    T* to = output.data<T>();
    context.threads().ParallelFor(
        indexer.rows(), CopyGrain(sizeof(T) * indexer.row_size()), [&](size_t begin, size_t end) {
          VisitIndices(indices, [&](const auto* values) {
            indexer.ForEach(begin, end, values,
                            [from, to](size_t i, size_t offset) { to[i] = from[offset]; });
          });
        });
  });
  return OkStatus();
}

// GatherND-13: the last axis of the indices holds coordinates into data[batch...].
struct GatherNDAttrs {
  int64_t batch_dims = 0;
  static constexpr auto Fields() {
    return std::tuple(Field("batch_dims", &GatherNDAttrs::batch_dims));
  }
};

Status InferGatherND(const GatherNDAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape data, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape indices, context.Input(1));
  const auto smallest = static_cast<int64_t>(std::min(data.rank(), indices.rank()));
  if (attrs.batch_dims < 0 || attrs.batch_dims >= smallest) {
    return InvalidArgument("expected batch_dims in [0, {}] for data {} and indices {}, got {}",
                           smallest - 1, data, indices, attrs.batch_dims);
  }
  const auto batch = static_cast<size_t>(attrs.batch_dims);
  for (size_t i = 0; i < batch; ++i) {
    if (data[i].is_number() && indices[i].is_number() && !(data[i] == indices[i])) {
      return InvalidArgument("expected equal sizes of batch axis {}, got data {} and indices {}", i,
                             data, indices);
    }
  }
  const Dim depth = indices[indices.rank() - 1];
  if (!depth.is_number()) return UnknownShape();
  if (depth.value() < 1 || depth.value() > static_cast<int64_t>(data.rank() - batch)) {
    return InvalidArgument("expected 1 to {} coordinates in the last axis of indices {}",
                           data.rank() - batch, indices);
  }
  SymbolicShape output;
  for (size_t i = 0; i + 1 < indices.rank(); ++i) output.Append(indices[i]);
  for (size_t i = batch + static_cast<size_t>(depth.value()); i < data.rank(); ++i) {
    output.Append(data[i]);
  }
  return context.SetOutput(0, std::move(output));
}

Status RunGatherND(const GatherNDAttrs& attrs, KernelContext& context) {
  const Tensor& data = context.Input(0);
  const Tensor& indices = context.Input(1);
  Tensor& output = context.Output(0);
  TENON_ASSIGN_OR_RETURN(
      const CoordinateIndexer indexer,
      CoordinateIndexer::Make(data.shape(), indices, static_cast<size_t>(attrs.batch_dims)));
  VisitElement(data.type(), [&](auto element) {
    using T = decltype(element);
    const size_t row = indexer.slice();
    context.threads().ParallelFor(
        indexer.count(), CopyGrain(row * sizeof(T)), [&](size_t begin, size_t end) {
          for (size_t i = begin; i < end; ++i) {
            std::copy_n(data.data<T>() + indexer.OffsetOf(i), row, output.data<T>() + i * row);
          }
        });
  });
  return OkStatus();
}

constexpr OpRow kRows[] = {
    // Embedding tables are large, and few of their rows are read.
    Op<InferGather, RunGather>(
        "Gather", {.since = 1, .types = kWholeByteTypes, .traits = {.unaligned_input = 0}}),
    Op<InferGatherElements, RunGatherElements>("GatherElements",
                                               {.since = 11, .types = kWholeByteTypes}),
    Op<InferGatherND, RunGatherND>("GatherND", {.since = 11, .types = kWholeByteTypes}),
};

}  // namespace

TENON_OP_FAMILY(Gather, kRows);

}  // namespace tenon
