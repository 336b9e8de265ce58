// OneHot: a row for each index, with one element switched on.
#include <algorithm>

#include "ops/framework/element.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// OneHot-11: negative indices count from the end; those out of range switch nothing on.
struct OneHotAttrs {
  int64_t axis;
  static constexpr auto Fields() { return std::tuple(Field("axis", &OneHotAttrs::axis)); }
};

// Elements [first, first + count) as integers.
void ReadIntegers(const Tensor& tensor, size_t first, size_t count, int64_t* integers) {
  VisitNumber(tensor.type(), [&](auto number) {
    for (size_t i = 0; i < count; ++i) {
      const auto value = Widen(tensor.data<decltype(number)>()[first + i]);
      if constexpr (std::is_floating_point_v<decltype(value)>) {
        // Out of range for any depth, like NaN, for which all comparisons are false.
        constexpr double kLimit = 9e18;
        integers[i] = value > -kLimit && value < kLimit ? static_cast<int64_t>(value) : INT64_MAX;
      } else {
        integers[i] = static_cast<int64_t>(value);
      }
    }
  });
}

Status InferOneHot(const OneHotAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape indices, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, indices.rank() + 1));
  Dim depth = Dim::Unknown();
  if (const Tensor* data = context.InputData(1)) {
    if (data->size() != 1) {
      return InvalidArgument("input 1: expected one element, got shape {}", data->shape());
    }
    int64_t number;
    ReadIntegers(*data, 0, 1, &number);
    depth = Dim(number);
    if (depth.value() < 0) return InvalidArgument("expected a depth >= 0, got {}", depth);
  }
  SymbolicShape output;
  for (size_t i = 0; i <= indices.rank(); ++i) {
    output.Append(i == axis ? depth : indices[i < axis ? i : i - 1]);
  }
  return context.SetOutput(0, std::move(output), context.ElementType(2));
}

struct OneHotSizes {
  size_t depth;
  size_t inner;
};

// The parts [begin, end) of the output, each [depth, inner] for as many indices.
template <class T>
void SwitchOn(const OneHotSizes& sizes, const Tensor& indices, size_t begin, size_t end,
              const T* values, T* output) {
  const size_t part = sizes.depth * sizes.inner, last = end * sizes.inner;
  constexpr size_t kSome = 64;
  int64_t some[kSome];
  size_t next = begin * sizes.inner, used = kSome;
  for (size_t i = begin; i < end; ++i) {
    T* const to = output + i * part;
    std::fill_n(to, part, values[0]);
    for (size_t j = 0; j < sizes.inner; ++j, ++next, ++used) {
      if (used == kSome) {
        ReadIntegers(indices, next, std::min(kSome, last - next), some);
        used = 0;
      }
      int64_t k = some[used];
      if (k < 0) k += static_cast<int64_t>(sizes.depth);
      if (k >= 0 && k < static_cast<int64_t>(sizes.depth)) {
        to[static_cast<size_t>(k) * sizes.inner + j] = values[1];
      }
    }
  }
}

Status RunOneHot(const OneHotAttrs& attrs, KernelContext& context) {
  const Tensor& indices = context.Input(0);
  const Tensor& values = context.Input(2);
  Tensor& output = context.Output(0);
  if (values.size() != 2) {
    return InvalidArgument("input 2: expected two values, got shape {}", values.shape());
  }
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, output.rank()));
  const OneHotSizes sizes = {static_cast<size_t>(output.shape()[axis]),
                             static_cast<size_t>(indices.shape().Product(axis, indices.rank()))};
  const auto outer = static_cast<size_t>(indices.shape().Product(0, axis));
  VisitElement(output.type(), [&](auto element) {
    using T = decltype(element);
    const size_t part = sizes.depth * sizes.inner;
    context.threads().ParallelFor(
        outer, CopyGrain(part * sizeof(T)), [&](size_t begin, size_t end) {
          SwitchOn(sizes, indices, begin, end, values.data<T>(), output.data<T>());
        });
  });
  return OkStatus();
}

constexpr OpRow kRows[] = {
    Op<InferOneHot, RunOneHot>("OneHot", {.since = 9, .types = kNumbers}),
};

}  // namespace

TENON_OP_FAMILY(OneHot, kRows);

}  // namespace tenon
