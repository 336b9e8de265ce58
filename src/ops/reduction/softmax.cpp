// Softmax and LogSoftmax.
#include "kernels/softmax.h"

#include "ops/framework/op_row.h"

namespace tenon {
namespace {

struct SoftmaxAttrs {
  int64_t axis;
  static constexpr auto Fields() { return std::tuple(Field("axis", &SoftmaxAttrs::axis)); }
};

Status InferSoftmax(const SoftmaxAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  if (x.rank() > 0) TENON_RETURN_IF_ERROR(NormalizeAxis(attrs.axis, x.rank()));
  return context.SetOutput(0, std::move(x));
}

// x as [outer, n, inner], with the softmax over the middle.
struct Sizes {
  size_t outer = 1, n = 1, inner = 1;
};

template <class T>
void RunOver(const Sizes& sizes, bool log, const T* x, T* y, KernelContext& context) {
  if (sizes.inner == 1) {
    context.threads().ParallelFor(
        sizes.outer, kernels::SoftmaxGrain(sizes.n), [&](size_t begin, size_t end) {
          const size_t offset = begin * sizes.n;
          kernels::SoftmaxRows(x + offset, y + offset, end - begin, sizes.n, log);
        });
    return;
  }
  context.threads().ParallelFor(
      kernels::SoftmaxMiddleTasks(sizes.outer, sizes.inner), 1, [&](size_t begin, size_t end) {
        kernels::SoftmaxMiddle(x, y, sizes.n, sizes.inner, log, begin, end);
      });
}

Status RunOver(const Sizes& sizes, bool log, KernelContext& context) {
  const Tensor& x = context.Input(0);
  Tensor& y = context.Output(0);
  if (x.size() == 0) return OkStatus();
  if (x.type() == DataType::kDouble) {
    RunOver(sizes, log, x.data<double>(), y.data<double>(), context);
  } else {
    RunOver(sizes, log, x.data<float>(), y.data<float>(), context);
  }
  return OkStatus();
}

// Softmax-13, LogSoftmax-13: along one axis.
template <bool log>
Status RunSoftmax(const SoftmaxAttrs& attrs, KernelContext& context) {
  const Shape& shape = context.Input(0).shape();
  if (shape.rank() == 0) return RunOver({}, log, context);
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, shape.rank()));
  const Sizes sizes = {static_cast<size_t>(shape.Product(0, axis)),
                       static_cast<size_t>(shape[axis]),
                       static_cast<size_t>(shape.Product(axis + 1, shape.rank()))};
  return RunOver(sizes, log, context);
}

// Softmax-1, LogSoftmax-1: over all axes from `axis` on, flattened.
template <bool log>
Status RunFlattened(const SoftmaxAttrs& attrs, KernelContext& context) {
  const Shape& shape = context.Input(0).shape();
  if (shape.rank() == 0) return RunOver({}, log, context);
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, shape.rank()));
  const Sizes sizes = {static_cast<size_t>(shape.Product(0, axis)),
                       static_cast<size_t>(shape.Product(axis, shape.rank())), 1};
  return RunOver(sizes, log, context);
}

constexpr TypeSet kFloatAndDouble = {DataType::kFloat, DataType::kDouble};

constexpr OpOptions Since(int32_t since) {
  return {.since = since, .types = kFloatAndDouble, .traits = {.in_place_input = 0}};
}

constexpr OpRow kRows[] = {
    Op<InferSoftmax, RunFlattened<false>>("Softmax", Since(1)),
    Op<InferSoftmax, RunSoftmax<false>>("Softmax", Since(13)),
    Op<InferSoftmax, RunFlattened<true>>("LogSoftmax", Since(1)),
    Op<InferSoftmax, RunSoftmax<true>>("LogSoftmax", Since(13)),
};

}  // namespace

TENON_OP_FAMILY(Softmax, kRows);

}  // namespace tenon
