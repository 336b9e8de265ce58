// Unique, of ONNX and of com.microsoft: the distinct elements, or slices along an axis, of a
// tensor.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/element.h"
#include "ops/op_row.h"

namespace tenon {
namespace {

// Unique-11; without `axis` the input counts as flat.
struct UniqueAttrs {
  std::optional<int64_t> axis;
  bool sorted = true;
  static constexpr auto Fields() {
    return std::tuple(Field("axis", &UniqueAttrs::axis), Field("sorted", &UniqueAttrs::sorted));
  }
};

// Where an operator's outputs of numbers are; one that it does not have lies beyond its outputs.
struct UniqueOutputs {
  size_t first = 1, inverse = 2, counts = 3;
};
constexpr UniqueOutputs kStandardOutputs = {};
constexpr UniqueOutputs kMicrosoftOutputs = {.first = 3, .inverse = 1, .counts = 2};

Status InferUnique(const UniqueAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  const Dim count = Dim::Unknown();
  TENON_RETURN_IF_ERROR(context.SetOutput(1, {count}, DataType::kInt64));
  TENON_RETURN_IF_ERROR(context.SetOutput(3, {count}, DataType::kInt64));
  if (!attrs.axis) {
    TENON_RETURN_IF_ERROR(context.SetOutput(2, {shape.NumElements()}, DataType::kInt64));
    return context.SetOutput(0, {count});
  }
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(*attrs.axis, shape.rank()));
  TENON_RETURN_IF_ERROR(context.SetOutput(2, {shape[axis]}, DataType::kInt64));
  shape[axis] = count;
  return context.SetOutput(0, std::move(shape));
}

// com.microsoft Unique-1: of a vector, in the order in which they occur.
Status InferMicrosoftUnique(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.InputOfRank(0, 1));
  const Dim count = Dim::Unknown();
  TENON_RETURN_IF_ERROR(context.SetOutput(0, {count}));
  TENON_RETURN_IF_ERROR(context.SetOutput(1, x, DataType::kInt64));
  return context.SetOutput(2, {count}, DataType::kInt64);
}

// -1, 0 or 1. A NaN equals another and is greater than all numbers, as NumPy sorts them.
template <class T>
int Compare(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, std::string>) {
    const int order = a.compare(b);
    return (order > 0) - (order < 0);
  } else {
    if (a < b) return -1;
    if (b < a) return 1;
    if constexpr (std::is_floating_point_v<T>) {
      return static_cast<int>(std::isnan(a)) - static_cast<int>(std::isnan(b));
    }
    return 0;
  }
}

template <class T>
struct Complex {
  T real, imaginary;
};

template <class T>
int Compare(const Complex<T>& a, const Complex<T>& b) {
  const int order = Compare(a.real, b.real);
  return order != 0 ? order : Compare(a.imaginary, b.imaginary);
}

// Slice i of the input, [outer, n, inner], is its elements at [:, i, :].
struct SliceSizes {
  int64_t outer, n, inner;
};

template <class T>
int CompareSlices(const T* x, const SliceSizes& sizes, int64_t a, int64_t b) {
  for (int64_t o = 0; o < sizes.outer; ++o) {
    const T* plane = x + o * sizes.n * sizes.inner;
    for (int64_t i = 0; i < sizes.inner; ++i) {
      int order;
      if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>) {
        order = Compare(Widen(plane[a * sizes.inner + i]), Widen(plane[b * sizes.inner + i]));
      } else {
        order = Compare(plane[a * sizes.inner + i], plane[b * sizes.inner + i]);
      }
      if (order != 0) return order;
    }
  }
  return 0;
}

// What is found out about n slices, in memory for 4 n numbers.
struct Groups {
  explicit Groups(int64_t* memory, int64_t n)
      : order(memory), group(memory + n), first(memory + 2 * n), size(memory + 3 * n) {}
  int64_t count = 0;  // of different slices
  int64_t* order;     // slices in ascending order, equal ones by position; later of the groups
  int64_t* group;     // of each slice
  int64_t* first;     // of each group: its first slice
  int64_t* size;      // of each group
};

template <class T>
void FindGroups(const T* x, const SliceSizes& sizes, Groups& groups) {
  std::iota(groups.order, groups.order + sizes.n, 0);
  std::sort(groups.order, groups.order + sizes.n, [&](int64_t a, int64_t b) {
    const int order = CompareSlices(x, sizes, a, b);
    return order != 0 ? order < 0 : a < b;
  });
  for (int64_t i = 0; i < sizes.n; ++i) {
    const int64_t slice = groups.order[i];
    const bool is_new = i == 0 || CompareSlices(x, sizes, groups.order[i - 1], slice) != 0;
    if (is_new) {
      groups.first[groups.count] = slice;
      groups.size[groups.count++] = 0;
    }
    groups.group[slice] = groups.count - 1;
    ++groups.size[groups.count - 1];
  }
}

Status WriteIndices(const Groups& groups, const SliceSizes& sizes, const UniqueOutputs& outputs,
                    KernelContext& context) {
  // Output i has one number per group, or per slice; `order` lists the groups as they come out.
  const auto write = [&](size_t i, int64_t count, auto value) -> Status {
    if (!context.HasOutput(i)) return OkStatus();
    TENON_ASSIGN_OR_RETURN(Tensor * output, context.AllocateOutput(i, DataType::kInt64, {count}));
    for (int64_t k = 0; k < count; ++k) output->data<int64_t>()[k] = value(k);
    return OkStatus();
  };
  const auto first = [&](int64_t k) { return groups.first[groups.order[k]]; };
  TENON_RETURN_IF_ERROR(write(outputs.first, groups.count, first));
  const auto size = [&](int64_t k) { return groups.size[groups.order[k]]; };
  TENON_RETURN_IF_ERROR(write(outputs.counts, groups.count, size));
  // From group to its place; the sizes are not needed any more.
  for (int64_t k = 0; k < groups.count; ++k) groups.size[groups.order[k]] = k;
  return write(outputs.inverse, sizes.n,
               [&](int64_t slice) { return groups.size[groups.group[slice]]; });
}

template <class T>
Status WriteUnique(const UniqueAttrs& attrs, const UniqueOutputs& outputs, const SliceSizes& sizes,
                   Shape shape, size_t axis, KernelContext& context) {
  auto* memory = static_cast<int64_t*>(
      context.Scratch(static_cast<size_t>(sizes.n + 1) * 4 * sizeof(int64_t)));
  if (memory == nullptr) return RuntimeException("out of memory for {} elements", sizes.n);
  Groups groups(memory, sizes.n);
  const T* x = static_cast<const T*>(context.Input(0).raw());
  FindGroups(x, sizes, groups);
  std::iota(groups.order, groups.order + groups.count, 0);
  if (!attrs.sorted) {
    std::sort(groups.order, groups.order + groups.count,
              [&](int64_t a, int64_t b) { return groups.first[a] < groups.first[b]; });
  }
  shape[axis] = groups.count;
  TENON_ASSIGN_OR_RETURN(Tensor * output,
                         context.AllocateOutput(0, context.Input(0).type(), shape));
  T* y = static_cast<T*>(output->raw());
  for (int64_t o = 0; o < sizes.outer; ++o) {
    for (int64_t k = 0; k < groups.count; ++k) {
      const int64_t slice = groups.first[groups.order[k]];
      y = std::copy_n(x + (o * sizes.n + slice) * sizes.inner, sizes.inner, y);
    }
  }
  return WriteIndices(groups, sizes, outputs, context);
}

Status FindUnique(const UniqueAttrs& attrs, const UniqueOutputs& outputs, KernelContext& context) {
  const Tensor& input = context.Input(0);
  SliceSizes sizes = {1, input.size(), 1};
  Shape shape = {0};
  size_t axis = 0;
  if (attrs.axis) {
    shape = input.shape();
    TENON_ASSIGN_OR_RETURN(axis, NormalizeAxis(*attrs.axis, shape.rank()));
    sizes = {shape.Product(0, axis), shape[axis], shape.Product(axis + 1, shape.rank())};
  }
  switch (input.type()) {
    case DataType::kString:
      return WriteUnique<std::string>(attrs, outputs, sizes, shape, axis, context);
    case DataType::kComplex64:
      return WriteUnique<Complex<float>>(attrs, outputs, sizes, shape, axis, context);
    case DataType::kComplex128:
      return WriteUnique<Complex<double>>(attrs, outputs, sizes, shape, axis, context);
    default:
      return VisitNumber(input.type(), [&]<class T>(T) {
        return WriteUnique<T>(attrs, outputs, sizes, shape, axis, context);
      });
  }
}

Status RunUnique(const UniqueAttrs& attrs, KernelContext& context) {
  return FindUnique(attrs, kStandardOutputs, context);
}

Status RunMicrosoftUnique(const NoAttrs&, KernelContext& context) {
  if (context.Input(0).rank() != 1) {
    return InvalidArgument("input 0: expected rank 1, got {}", context.Input(0).shape());
  }
  return FindUnique({.sorted = false}, kMicrosoftOutputs, context);
}

constexpr TypeSet kAnyElements = kFixedSize | TypeSet{DataType::kString};

constexpr OpRow kRows[] = {
    Op<InferUnique, RunUnique>(
        "Unique", {.since = 11, .types = kAnyElements, .traits = {.allocates_outputs = true}}),
    Op<InferMicrosoftUnique, RunMicrosoftUnique>(
        "Unique",
        {.domain = "com.microsoft", .types = kAnyElements, .traits = {.allocates_outputs = true}}),
};

}  // namespace

TENON_OP_FAMILY(Unique, kRows);

}  // namespace tenon
