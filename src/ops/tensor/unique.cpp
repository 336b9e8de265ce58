// Unique, of ONNX and of com.microsoft: the distinct elements, or slices along an axis, of a
// tensor.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/pieces.h"
#include "ops/framework/element.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// Unique-11; without `axis` the input is flattened.
struct UniqueAttrs {
  std::optional<int64_t> axis;
  bool sorted = true;
  static constexpr auto Fields() {
    return std::tuple(Field("axis", &UniqueAttrs::axis), Field("sorted", &UniqueAttrs::sorted));
  }
};

// The positions of an operator's outputs of numbers; absent ones are beyond its outputs.
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

// A number as 64 bits that sort like the numbers: equal ones have equal keys.
template <class T>
uint64_t KeyOf(T x) {
  constexpr uint64_t kTop = uint64_t{1} << 63;
  if constexpr (std::is_same_v<T, double>) {
    if (std::isnan(x)) return ~uint64_t{0};
    const auto bits = std::bit_cast<uint64_t>(x + 0.0);  // -0 becomes 0
    return bits & kTop ? ~bits : bits | kTop;
  } else if constexpr (std::is_signed_v<T> && std::is_integral_v<T>) {
    return static_cast<uint64_t>(int64_t{x}) ^ kTop;
  } else if constexpr (std::is_integral_v<T>) {
    return uint64_t{x};
  } else {  // 32 bits are enough, and need fewer passes
    const float narrow = Widen(x);
    if (std::isnan(narrow)) return ~uint32_t{0};
    const auto bits = std::bit_cast<uint32_t>(narrow + 0.0f);
    return bits >> 31 ? uint32_t{~bits} : bits | 1u << 31;
  }
}

template <class T>
constexpr bool kHasKeys = !std::is_same_v<T, std::string>;
template <class T>
constexpr bool kHasKeys<Complex<T>> = false;

struct KeyedSlice {
  uint64_t key;
  int64_t slice;
};

// Sorts by key, byte by byte from the lowest on, and keeps the order of equal ones. Bytes that are
// equal in all keys are skipped. Returns the array with the result, `items` or `spare`, or null if
// the run is to end before.
KeyedSlice* SortByKey(KeyedSlice* items, KeyedSlice* spare, size_t n) {
  constexpr size_t kBytes = sizeof(uint64_t), kValues = 256;
  size_t counts[kBytes][kValues] = {};
  const auto count = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      for (size_t byte = 0; byte < kBytes; ++byte) ++counts[byte][items[i].key >> 8 * byte & 255];
    }
  };
  if (!InPieces(n, count)) return nullptr;
  for (size_t byte = 0; byte < kBytes; ++byte) {
    size_t* places = counts[byte];
    if (std::find(places, places + kValues, n) != places + kValues) continue;
    size_t next = 0;
    for (size_t value = 0; value < kValues; ++value) next += std::exchange(places[value], next);
    const auto distribute = [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        spare[places[items[i].key >> 8 * byte & 255]++] = items[i];
      }
    };
    if (!InPieces(n, distribute)) return nullptr;
    std::swap(items, spare);
  }
  return items;
}

// The results for n slices, in memory for 4 n numbers.
struct Groups {
  explicit Groups(int64_t* memory, int64_t n)
      : order(memory), group(memory + n), first(memory + 2 * n), size(memory + 3 * n) {}
  int64_t count = 0;  // of different slices
  int64_t* order;     // slices in ascending order, equal ones by position; later of the groups
  int64_t* group;     // of each slice
  int64_t* first;     // of each group: its first slice
  int64_t* size;      // of each group
};

// The next slice in ascending order, equal ones by position.
void AddToGroups(int64_t slice, bool is_new, Groups& groups) {
  if (is_new) {
    groups.first[groups.count] = slice;
    groups.size[groups.count++] = 0;
  }
  groups.group[slice] = groups.count - 1;
  ++groups.size[groups.count - 1];
}

// False if the run is to end before.
template <class T>
bool FindGroups(const T* x, const SliceSizes& sizes, Groups& groups) {
  const auto n = static_cast<size_t>(sizes.n);
  std::iota(groups.order, groups.order + n, 0);
  const int64_t* const sorted =
      SortInPieces(groups.order, groups.group, n, [&](int64_t a, int64_t b) {
        const int order = CompareSlices(x, sizes, a, b);
        return order != 0 ? order < 0 : a < b;
      });
  if (sorted == nullptr) return false;
  if (sorted != groups.order) std::copy_n(sorted, n, groups.order);
  return InPieces(n, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const int64_t slice = groups.order[i];
      const bool is_new = i == 0 || CompareSlices(x, sizes, groups.order[i - 1], slice) != 0;
      AddToGroups(slice, is_new, groups);
    }
  });
}

// The same of n numbers whose keys are in `items`; `spare` has room for as many.
bool FindKeyGroups(KeyedSlice* items, KeyedSlice* spare, size_t n, Groups& groups) {
  const KeyedSlice* const sorted = SortByKey(items, spare, n);
  if (sorted == nullptr) return false;
  return InPieces(n, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      AddToGroups(sorted[i].slice, i == 0 || sorted[i].key != sorted[i - 1].key, groups);
    }
  });
}

// Sets the order of the groups: as sorted, or by their first slices. False if the run is to end
// before.
bool OrderGroups(bool sorted, size_t n, Groups& groups) {
  if (sorted) {
    std::iota(groups.order, groups.order + groups.count, 0);
    return true;
  }
  int64_t* next = groups.order;
  return InPieces(n, [&](size_t begin, size_t end) {
    for (size_t slice = begin; slice < end; ++slice) {
      const int64_t group = groups.group[slice];
      if (groups.first[group] == static_cast<int64_t>(slice)) *next++ = group;
    }
  });
}

Status WriteIndices(const Groups& groups, const SliceSizes& sizes, const UniqueOutputs& outputs,
                    KernelContext& context) {
  // Output i has one number per group, or per slice; `order` lists the groups in the order of the
  // output.
  const auto write = [&](size_t i, int64_t count, auto value) -> Status {
    if (!context.HasOutput(i)) return OkStatus();
    TENON_ASSIGN_OR_RETURN(Tensor * output, context.AllocateOutput(i, DataType::kInt64, {count}));
    InPieces(static_cast<size_t>(count), [&](size_t begin, size_t end) {
      for (size_t k = begin; k < end; ++k) {
        output->data<int64_t>()[k] = value(static_cast<int64_t>(k));
      }
    });
    return OkStatus();
  };
  const auto first = [&](int64_t k) { return groups.first[groups.order[k]]; };
  TENON_RETURN_IF_ERROR(write(outputs.first, groups.count, first));
  const auto size = [&](int64_t k) { return groups.size[groups.order[k]]; };
  TENON_RETURN_IF_ERROR(write(outputs.counts, groups.count, size));
  // From group to its position; the sizes are not needed any more.
  for (int64_t k = 0; k < groups.count; ++k) groups.size[groups.order[k]] = k;
  return write(outputs.inverse, sizes.n,
               [&](int64_t slice) { return groups.size[groups.group[slice]]; });
}

template <class T>
Status WriteUnique(const UniqueAttrs& attrs, const UniqueOutputs& outputs, const SliceSizes& sizes,
                   Shape shape, size_t axis, KernelContext& context) {
  // For few numbers, a comparison sort is faster than counting the keys' bytes.
  constexpr int64_t kFewNumbers = 256;
  const bool has_keys = kHasKeys<T> && sizes.outer * sizes.inner == 1 && sizes.n > kFewNumbers;
  const size_t room = 4 * sizeof(int64_t) + (has_keys ? 2 * sizeof(KeyedSlice) : 0);
  auto* memory = static_cast<int64_t*>(context.Scratch(static_cast<size_t>(sizes.n + 1) * room));
  if (memory == nullptr) return RuntimeException("out of memory for {} elements", sizes.n);
  Groups groups(memory, sizes.n);
  const T* x = static_cast<const T*>(context.Input(0).raw());
  const auto n = static_cast<size_t>(sizes.n);
  bool is_done = false;
  if (has_keys) {
    if constexpr (kHasKeys<T>) {
      auto* items = reinterpret_cast<KeyedSlice*>(memory + 4 * n);
      for (size_t i = 0; i < n; ++i) items[i] = {KeyOf(x[i]), static_cast<int64_t>(i)};
      is_done = FindKeyGroups(items, items + n, n, groups);
    }
  } else {
    is_done = FindGroups(x, sizes, groups);
  }
  if (!is_done || !OrderGroups(attrs.sorted, n, groups)) return OkStatus();  // the run ends
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
