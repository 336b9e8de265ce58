// NonZero: the coordinates of elements other than 0.
#include <algorithm>
#include <complex>

#include "ops/framework/element.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// NonZero-13: the coordinates of elements other than 0, [rank, count]; for a scalar [0, count].
Status InferNonZero(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape input, context.Input(0));
  return context.SetOutput(0, {Dim(static_cast<int64_t>(input.rank())), Dim::Unknown()},
                           DataType::kInt64);
}

// Whether an element is not 0; a string is not if it is not empty.
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

constexpr OpRow kRows[] = {
    Op<InferNonZero, RunNonZero>("NonZero", {.since = 9,
                                             .types = kFixedSize | TypeSet{DataType::kString},
                                             .traits = {.allocates_outputs = true}}),
};

}  // namespace

TENON_OP_FAMILY(NonZero, kRows);

}  // namespace tenon
