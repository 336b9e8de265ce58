// Range: numbers at equal distances.
#include <cmath>

#include "ops/framework/element.h"
#include "ops/framework/op_row.h"

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

constexpr TypeSet kRangeTypes = {DataType::kFloat, DataType::kDouble, DataType::kInt16,
                                 DataType::kInt32, DataType::kInt64};

// Calls visit(T()) for one of these types.
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

// If shape computations know the integers, the elements and so their number.
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
  // In com.microsoft Range-1 the step may be absent; it is then 1.
  for (size_t i = 0; i < (context.HasInput(2) ? 3 : 2); ++i) {
    inputs[i] = context.InputData(i);
    if (inputs[i] == nullptr) return context.SetOutput(0, {Dim::Unknown()});
    if (inputs[i]->size() != 1 || inputs[i]->type() != inputs[0]->type()) {
      return InvalidArgument("input {}: expected one {}, got {} {}", i,
                             DataTypeName(inputs[0]->type()), DataTypeName(inputs[i]->type()),
                             inputs[i]->shape());
    }
  }
  // Numbers of narrow types are known once they are widened.
  if (!kRangeTypes.Contains(inputs[0]->type())) return context.SetOutput(0, {Dim::Unknown()});
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

constexpr OpRow kRows[] = {
    Op<InferRange, RunRange>("Range", {.since = 11, .types = kRangeTypes}),
    Op<InferRange, RunRange>("Range", {.domain = "com.microsoft", .types = kRangeTypes}),
};

}  // namespace

TENON_OP_FAMILY(Range, kRows);

}  // namespace tenon
