// TensorScatter: an update written into each sequence of a cache.
#include <algorithm>
#include <cstring>

#include "ops/framework/element.h"
#include "ops/framework/narrow_types.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// TensorScatter-24.
struct TensorScatterAttrs {
  int64_t axis = -2;
  std::string mode = "linear";
  static constexpr auto Fields() {
    return std::tuple(Field("axis", &TensorScatterAttrs::axis),
                      Field("mode", &TensorScatterAttrs::mode));
  }
};

Status CheckUpdate(const SymbolicShape& cache, const SymbolicShape& update, size_t axis) {
  bool fits = cache.rank() == update.rank();
  for (size_t i = 0; fits && i < cache.rank(); ++i) {
    const Dim &a = cache[i], &b = update[i];
    if (!a.is_number() || !b.is_number()) continue;
    fits = i == axis ? b.value() <= a.value() : b.value() == a.value();
  }
  if (fits) return OkStatus();
  return InvalidArgument(
      "input 1: expected the shape {} of input 0, axis {} at most as long, got {}", cache, axis,
      update);
}

Status InferTensorScatter(const TensorScatterAttrs& attrs, ShapeContext& context) {
  if (attrs.mode != "linear" && attrs.mode != "circular") {
    return InvalidArgument("attribute 'mode': expected linear or circular, got '{}'", attrs.mode);
  }
  TENON_ASSIGN_OR_RETURN(SymbolicShape cache, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape update, context.Input(1));
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, cache.rank()));
  if (axis == 0) return InvalidArgument("attribute 'axis': expected another than 0, the batch");
  TENON_RETURN_IF_ERROR(CheckUpdate(cache, update, axis));
  if (context.HasInput(2)) {
    TENON_ASSIGN_OR_RETURN(const SymbolicShape indices, context.InputOfRank(2, 1));
    if (indices[0].is_number() && cache[0].is_number() && !(indices[0] == cache[0])) {
      return InvalidArgument("input 2: expected {} indices, one per sequence, got {}", cache[0],
                             indices[0]);
    }
  }
  return context.SetOutput(0, std::move(cache));
}

// The sizes of a scatter: the cache is [rows, length, inner], the update [rows, steps, inner], and
// each index is that of `rows_per_index` rows. Indices are null for zeros.
struct ScatterSizes {
  int64_t rows, length, steps, inner, rows_per_index;
  const int64_t* indices;
  // The position in the cache of step `step` of row `row`.
  int64_t PositionOf(int64_t row, int64_t step) const {
    const int64_t index = indices ? indices[row / rows_per_index] % length : 0;
    return (index + step) % length;
  }
};

// In circular mode an index may be any that is not negative; otherwise the update must fit after
// it.
Status CheckIndices(const ScatterSizes& sizes, int64_t count, bool circular) {
  if (sizes.indices == nullptr) return OkStatus();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t most = circular ? INT64_MAX : sizes.length - sizes.steps;
    if (sizes.indices[i] < 0 || sizes.indices[i] > most) {
      return InvalidArgument("input 2: expected indices in [0, {}], got {} at {}", most,
                             sizes.indices[i], i);
    }
  }
  return OkStatus();
}

template <class T>
void Scatter(const ScatterSizes& sizes, const T* update, T* cache, ThreadPool& threads) {
  const auto copies = static_cast<size_t>(sizes.rows * sizes.steps);
  const size_t grain = CopyGrain(static_cast<size_t>(sizes.inner) * sizeof(T));
  threads.ParallelFor(copies, grain, [&](size_t begin, size_t end) {
    for (auto i = static_cast<int64_t>(begin); i < static_cast<int64_t>(end); ++i) {
      const int64_t row = i / sizes.steps;
      const int64_t to = row * sizes.length + sizes.PositionOf(row, i % sizes.steps);
      std::copy_n(update + i * sizes.inner, sizes.inner, cache + to * sizes.inner);
    }
  });
}

// Neighbouring elements share bytes, so one thread writes them all.
void ScatterPacked(const ScatterSizes& sizes, size_t bits, const uint8_t* update, uint8_t* cache) {
  for (int64_t i = 0; i < sizes.rows * sizes.steps; ++i) {
    const int64_t row = i / sizes.steps;
    const int64_t to = row * sizes.length + sizes.PositionOf(row, i % sizes.steps);
    for (int64_t j = 0; j < sizes.inner; ++j) {
      PackBits(cache, static_cast<size_t>(to * sizes.inner + j), bits,
               UnpackBits(update, static_cast<size_t>(i * sizes.inner + j), bits));
    }
  }
}

void CopyCache(const Tensor& from, Tensor& to) {
  if (from.raw() == to.raw() || from.size() == 0) return;
  if (from.type() == DataType::kString) {
    std::copy_n(from.data<std::string>(), from.size(), to.data<std::string>());
  } else {
    std::memcpy(to.raw(), from.raw(), from.bytes());
  }
}

Status RunTensorScatter(const TensorScatterAttrs& attrs, KernelContext& context) {
  const Tensor& past = context.Input(0);
  const Tensor& update = context.Input(1);
  Tensor& present = context.Output(0);
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, past.rank()));
  ScatterSizes sizes = {past.shape().Product(0, axis),
                        past.shape()[axis],
                        update.shape()[axis],
                        past.shape().Product(axis + 1, past.rank()),
                        past.shape().Product(1, axis),
                        context.HasInput(2) ? context.Input(2).data<int64_t>() : nullptr};
  TENON_RETURN_IF_ERROR(CheckIndices(sizes, past.shape()[0], attrs.mode == "circular"));
  CopyCache(past, present);
  if (update.size() == 0) return OkStatus();
  const size_t bits = DataTypeBits(past.type());
  if (IsSubByte(past.type()) && sizes.inner * static_cast<int64_t>(bits) % 8 != 0) {
    ScatterPacked(sizes, bits, update.data<uint8_t>(), present.data<uint8_t>());
  } else if (IsSubByte(past.type())) {
    sizes.inner = sizes.inner * static_cast<int64_t>(bits) / 8;
    Scatter(sizes, update.data<uint8_t>(), present.data<uint8_t>(), context.threads());
  } else {
    VisitElement(past.type(), [&]<class T>(T) {
      Scatter(sizes, update.data<T>(), present.data<T>(), context.threads());
    });
  }
  return OkStatus();
}

constexpr OpRow kRows[] = {
    Op<InferTensorScatter, RunTensorScatter>("TensorScatter",
                                             {.since = 24, .traits = {.in_place_input = 0}}),
};

}  // namespace

TENON_OP_FAMILY(TensorScatter, kRows);

}  // namespace tenon
