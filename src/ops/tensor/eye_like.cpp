// EyeLike: matrices with ones on a diagonal.
#include <algorithm>
#include <optional>

#include "ops/framework/element.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

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

constexpr OpRow kRows[] = {
    Op<InferEyeLike, RunEyeLike>("EyeLike", {.since = 9}),
};

}  // namespace

TENON_OP_FAMILY(EyeLike, kRows);

}  // namespace tenon
