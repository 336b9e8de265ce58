// Range, NonZero, Trilu, EyeLike: tensors made of positions.
#include <algorithm>
#include <cmath>
#include <complex>

#include "ops/element.h"
#include "ops/op_row.h"

namespace tenon {
namespace {

// Range-11: start, start + delta, ... up to but without limit.
template <class T>
Result<int64_t> CountOf(T start, T limit, T delta) {
  if (delta == T(0)) return InvalidArgument("input 2: expected a step other than 0, got 0");
  if constexpr (std::is_integral_v<T>) {
    if (delta > 0 ? start >= limit : start <= limit) return 0;
    // Differences as unsigned: they may exceed T.
    const uint64_t distance = delta > 0
                                  ? static_cast<uint64_t>(limit) - static_cast<uint64_t>(start)
                                  : static_cast<uint64_t>(start) - static_cast<uint64_t>(limit);
    const uint64_t step =
        delta > 0 ? static_cast<uint64_t>(delta) : uint64_t{0} - static_cast<uint64_t>(delta);
    const uint64_t count = (distance - 1) / step + 1;
    if (count > static_cast<uint64_t>(INT64_MAX)) return InvalidArgument("the range is too long");
    return static_cast<int64_t>(count);
  } else {
    const double count = std::ceil((static_cast<double>(limit) - static_cast<double>(start)) /
                                   static_cast<double>(delta));
    constexpr double kMost = 9e18;
    if (!(count < kMost)) {
      return InvalidArgument("a range from {} to {} by {} has no end", start, limit, delta);
    }
    return count > 0 ? static_cast<int64_t>(count) : 0;
  }
}

// Calls visit(T()) for the types that Range has.
template <class Visit>
decltype(auto) VisitRangeType(DataType type, Visit&& visit) {
  switch (type) {
    case DataType::kDouble:
      return visit(double());
    case DataType::kInt16:
      return visit(int16_t());
    case DataType::kInt32:
      return visit(int32_t());
    case DataType::kInt64:
      return visit(int64_t());
    default:
      return visit(float());
  }
}

// Of integers that shape computations know, the elements and so their number.
bool FollowRange(ShapeContext& context) {
  constexpr int64_t kMostKnown = 64;
  const auto start = context.KnownDims(0);
  const auto limit = context.KnownDims(1);
  const auto delta = context.KnownDims(2);
  if (!start || !limit || !delta) return false;
  if (start->size() != 1 || limit->size() != 1 || delta->size() != 1) return false;
  const Dim first = (*start)[0];
  const Dim step = (*delta)[0];
  if (!(first == Dim(0)) || !(step == Dim(1))) return false;
  const Dim count = (*limit)[0];
  if (count.is_number() && count.value() <= kMostKnown) {
    Dims elements;
    for (int64_t i = 0; i < count.value(); ++i) elements.emplace_back(i);
    context.SetOutputDims(0, std::move(elements));
  }
  const bool is_size = count.is_number() ? count.value() >= 0 : !count.symbol_name().empty();
  return is_size && context.SetOutput(0, {count}).ok();
}

Status InferRange(const NoAttrs&, ShapeContext& context) {
  if (FollowRange(context)) return OkStatus();
  const Tensor* inputs[3] = {};
  // com.microsoft Range-1 may leave out the step of 1.
  for (size_t i = 0; i < (context.HasInput(2) ? 3 : 2); ++i) {
    inputs[i] = context.InputData(i);
    if (inputs[i] == nullptr) return context.SetOutput(0, {Dim::Unknown()});
    if (inputs[i]->size() != 1 || inputs[i]->type() != inputs[0]->type()) {
      return InvalidArgument("input {}: expected one {}, got {} {}", i,
                             DataTypeName(inputs[0]->type()), DataTypeName(inputs[i]->type()),
                             inputs[i]->shape());
    }
  }
  TENON_ASSIGN_OR_RETURN(const int64_t count, VisitRangeType(inputs[0]->type(), [&](auto number) {
                           using T = decltype(number);
                           return CountOf<T>(*inputs[0]->data<T>(), *inputs[1]->data<T>(),
                                             inputs[2] ? *inputs[2]->data<T>() : T{1});
                         }));
  return context.SetOutput(0, {Dim(count)});
}

Status RunRange(const NoAttrs&, KernelContext& context) {
  Tensor& output = context.Output(0);
  VisitRangeType(output.type(), [&](auto number) {
    using T = decltype(number);
    const T start = *context.Input(0).data<T>();
    const T delta = context.HasInput(2) ? *context.Input(2).data<T>() : T{1};
    T* y = output.data<T>();
    for (int64_t i = 0; i < output.size(); ++i) {
      if constexpr (std::is_integral_v<T>) {
        y[i] = static_cast<T>(static_cast<uint64_t>(start) +
                              static_cast<uint64_t>(i) * static_cast<uint64_t>(delta));
      } else {
        y[i] = start + static_cast<T>(i) * delta;
      }
    }
  });
  return OkStatus();
}

// NonZero-13: the coordinates of elements other than 0, [rank, count]; for a scalar [0, count].
Status InferNonZero(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape input, context.Input(0));
  return context.SetOutput(0, {Dim(static_cast<int64_t>(input.rank())), Dim::Unknown()},
                           DataType::kInt64);
}

// Whether an element is other than 0; strings are if they hold anything.
template <class T>
bool IsNonZero(const T& element) {
  return Widen(element) != 0;
}
bool IsNonZero(const std::string& element) { return !element.empty(); }
template <class T>
bool IsNonZero(const std::complex<T>& element) {
  return element != std::complex<T>();
}

template <class T>
Status WriteNonZero(const Tensor& input, KernelContext& context) {
  const T* x = input.data<T>();
  const Shape& shape = input.shape();
  const int64_t count = std::count_if(x, x + input.size(), [](const T& e) { return IsNonZero(e); });
  const auto rank = static_cast<int64_t>(shape.rank());
  TENON_ASSIGN_OR_RETURN(Tensor * output,
                         context.AllocateOutput(0, DataType::kInt64, {rank, count}));
  auto* y = output->data<int64_t>();
  Shape at(shape.rank(), 0);
  int64_t column = 0;
  for (int64_t i = 0; i < input.size(); ++i) {
    if (IsNonZero(x[i])) {
      for (int64_t axis = 0; axis < rank; ++axis) {
        y[axis * count + column] = at[static_cast<size_t>(axis)];
      }
      ++column;
    }
    for (size_t axis = shape.rank(); axis-- > 0;) {
      if (++at[axis] < shape[axis]) break;
      at[axis] = 0;
    }
  }
  return OkStatus();
}

Status RunNonZero(const NoAttrs&, KernelContext& context) {
  const Tensor& input = context.Input(0);
  if (input.type() == DataType::kString) return WriteNonZero<std::string>(input, context);
  if (input.type() == DataType::kComplex64) {
    return WriteNonZero<std::complex<float>>(input, context);
  }
  if (input.type() == DataType::kComplex128) {
    return WriteNonZero<std::complex<double>>(input, context);
  }
  return VisitNumber(input.type(),
                     [&](auto number) { return WriteNonZero<decltype(number)>(input, context); });
}

// Trilu-14: keeps the triangle above or below diagonal k, and clears the rest.
struct TriluAttrs {
  bool upper = true;
  static constexpr auto Fields() { return std::tuple(Field("upper", &TriluAttrs::upper)); }
};

Status InferTrilu(const TriluAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape input, context.Input(0));
  if (input.rank() < 2) return InvalidArgument("input 0: expected rank >= 2, got {}", input);
  return context.SetOutput(0, std::move(input));
}

Status RunTrilu(const TriluAttrs& attrs, KernelContext& context) {
  const Tensor& input = context.Input(0);
  int64_t diagonal = 0;
  if (context.HasInput(1)) {
    TENON_ASSIGN_OR_RETURN(const Shape k, IntegersOf(context.Input(1)));
    if (k.rank() != 1) return InvalidArgument("input 1: expected one number");
    diagonal = k[0];
  }
  const Shape& shape = input.shape();
  const int64_t rows = shape[shape.rank() - 2];
  const int64_t columns = shape.back();
  // Beyond the corners nothing changes, and sums stay small.
  diagonal = std::clamp(diagonal, -rows, columns);
  VisitElement(input.type(), [&](auto element) {
    using T = decltype(element);
    const T* x = input.data<T>();
    T* y = context.Output(0).data<T>();
    const auto lines = static_cast<size_t>(columns == 0 ? 0 : input.size() / columns);
    context.threads().ParallelFor(
        lines, CopyGrain(static_cast<size_t>(columns) * sizeof(T)), [&](size_t begin, size_t end) {
          for (auto line = static_cast<int64_t>(begin); line < static_cast<int64_t>(end); ++line) {
            const int64_t row = line % rows;
            // Columns before `middle` are below the diagonal, or with `upper` unset on it too.
            const int64_t middle =
                std::clamp<int64_t>(row + diagonal + (attrs.upper ? 0 : 1), 0, columns);
            const T* from = x + line * columns;
            T* to = y + line * columns;
            for (int64_t j = 0; j < columns; ++j) {
              to[j] = (j >= middle) == attrs.upper ? from[j] : T();
            }
          }
        });
  });
  return OkStatus();
}

// EyeLike-9: ones on diagonal k.
struct EyeLikeAttrs {
  std::optional<DataType> dtype;
  int64_t k = 0;
  static constexpr auto Fields() {
    return std::tuple(Field("dtype", &EyeLikeAttrs::dtype), Field("k", &EyeLikeAttrs::k));
  }
};

Status InferEyeLike(const EyeLikeAttrs& attrs, ShapeContext& context) {
  const DataType type = attrs.dtype.value_or(context.ElementType(0));
  Result<SymbolicShape> input = context.InputOfRank(0, 2);
  if (!input && IsUnknownShape(input.error())) {
    TENON_RETURN_IF_ERROR(context.SetOutputType(0, ValueType::Tensor(type)));
  }
  if (!input) return input.error();
  if (!(kNumbers | TypeSet{DataType::kBool}).Contains(type)) {
    return InvalidArgument("attribute 'dtype': expected a number type, got {}", DataTypeName(type));
  }
  return context.SetOutput(0, std::move(*input), type);
}

Status RunEyeLike(const EyeLikeAttrs& attrs, KernelContext& context) {
  Tensor& output = context.Output(0);
  const int64_t rows = output.shape()[0];
  const int64_t columns = output.shape()[1];
  const int64_t k = std::clamp(attrs.k, -rows, columns);
  VisitNumber(output.type(), [&](auto number) {
    using T = decltype(number);
    T* y = output.data<T>();
    std::fill_n(y, output.size(), T());
    for (int64_t row = std::max<int64_t>(0, -k); row < rows && row + k < columns; ++row) {
      y[row * columns + row + k] = T(1);
    }
  });
  return OkStatus();
}

constexpr TypeSet kRangeTypes = {DataType::kFloat, DataType::kDouble, DataType::kInt16,
                                 DataType::kInt32, DataType::kInt64};

constexpr OpRow kRows[] = {
    Op<InferRange, RunRange>("Range", {.since = 11, .types = kRangeTypes}),
    Op<InferRange, RunRange>("Range", {.domain = "com.microsoft", .types = kRangeTypes}),
    Op<InferNonZero, RunNonZero>("NonZero", {.since = 9,
                                             .types = kFixedSize | TypeSet{DataType::kString},
                                             .traits = {.allocates_outputs = true}}),
    Op<InferTrilu, RunTrilu>(
        "Trilu", {.since = 14, .types = kWholeByteTypes, .traits = {.in_place_input = 0}}),
    Op<InferTrilu, RunTrilu>(
        "Trilu",
        {.domain = "com.microsoft", .types = kWholeByteTypes, .traits = {.in_place_input = 0}}),
    Op<InferEyeLike, RunEyeLike>("EyeLike", {.since = 9}),
};

}  // namespace

TENON_OP_FAMILY(Positions, kRows);

}  // namespace tenon
