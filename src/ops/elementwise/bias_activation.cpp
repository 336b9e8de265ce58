// Operators of com.microsoft that add a bias and compute what follows in the same pass.
#include "kernels/elementwise/elementwise.h"
#include "ops/framework/op_row.h"
#include "ops/framework/run_broadcast.h"

namespace tenon {
namespace {

using kernels::BinaryOp;
using kernels::ElementType;

// Checks that input 1, if present, has one value for each element of the last axis of input 0.
Status CheckBias(const SymbolicShape& x, const ShapeContext& context) {
  if (x.rank() < 1) return InvalidArgument("input 0: expected rank >= 1, got a scalar");
  if (!context.HasInput(1)) return OkStatus();
  const Result<SymbolicShape> bias = context.Input(1);
  if (!bias) return IsUnknownShape(bias.error()) ? OkStatus() : bias.error();
  const Dim& size = x[x.rank() - 1];
  const bool fits =
      bias->rank() == 1 && (!(*bias)[0].is_number() || !size.is_number() || (*bias)[0] == size);
  if (fits) return OkStatus();
  return InvalidArgument("input 1: expected shape [{}], got {}", size, *bias);
}

// --- BiasGelu-1, FastGelu-1: an activation of x + bias ---

Status InferBiasActivation(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  TENON_RETURN_IF_ERROR(CheckBias(x, context));
  return context.SetOutput(0, std::move(x));
}

// How many rows of n elements one task handles.
size_t RowGrain(UnaryOp op, size_t n) {
  return kernels::ElementwiseGrain(op) / std::max<size_t>(1, n) + 1;
}

// FastGelu's bias is broadcast, as the function body of its schema does it.
Status InferFastGelu(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, context.Input(0));
  if (context.HasInput(1)) {
    TENON_ASSIGN_OR_RETURN(const SymbolicShape bias, context.Input(1));
    TENON_ASSIGN_OR_RETURN(y, BroadcastShapes(y, bias));
  }
  return context.SetOutput(0, std::move(y));
}

// y = x + bias.
Status AddBias(ElementType type, KernelContext& context) {
  return RunBroadcast(context, kernels::FindBinary(BinaryOp::kAdd, type),
                      kernels::ElementwiseGrain(BinaryOp::kAdd), context.Input(0), context.Input(1),
                      context.Output(0));
}

template <UnaryOp op>
Status RunBiasActivation(const NoAttrs&, KernelContext& context) {
  Tensor& y = context.Output(0);
  if (y.size() == 0) return OkStatus();
  const auto n = static_cast<size_t>(y.rank() == 0 ? 1 : y.shape().back());
  const float* x = context.Input(0).data<float>();
  const float* bias = nullptr;
  if (context.HasInput(1)) {
    const Tensor& added = context.Input(1);
    if (added.rank() == 1 && added.shape()[0] == static_cast<int64_t>(n) &&
        context.Input(0).size() == y.size()) {
      bias = added.data<float>();
    } else {
      TENON_RETURN_IF_ERROR(AddBias(ElementType::kFloat, context));
      x = y.data<float>();
    }
  }
  const auto add = kernels::FindBinary(BinaryOp::kAdd, ElementType::kFloat).vector_vector;
  const auto activate = kernels::FindUnary(op);
  const size_t rows = static_cast<size_t>(y.size()) / n;
  context.threads().ParallelFor(rows, RowGrain(op, n), [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) {
      const float* from = x + row * n;
      float* into = y.data<float>() + row * n;
      if (bias) add(from, bias, into, n);
      activate(bias ? into : from, into, n, 1, 0);
    }
  });
  return OkStatus();
}

template <UnaryOp op>
Status RunBiasActivationDouble(const NoAttrs&, KernelContext& context) {
  Tensor& y = context.Output(0);
  if (y.size() == 0) return OkStatus();
  const double* x = context.Input(0).data<double>();
  if (context.HasInput(1)) {
    TENON_RETURN_IF_ERROR(AddBias(ElementType::kDouble, context));
    x = y.data<double>();
  }
  kernels::ApplyInDouble(op, x, y.data<double>(), static_cast<size_t>(y.size()), 0, 0);
  return OkStatus();
}

// --- BiasAdd-1: X + bias + skip ---

Status InferBiasAdd(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  TENON_RETURN_IF_ERROR(CheckBias(x, context));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape skip, context.InputOfRank(2, x.rank()));
  for (size_t axis = 0; axis < x.rank(); ++axis) {
    if (skip[axis].is_number() && x[axis].is_number() && !(skip[axis] == x[axis])) {
      return InvalidArgument("input 2: expected shape {}, got {}", x, skip);
    }
  }
  return context.SetOutput(0, std::move(x));
}

Status RunBiasAdd(const NoAttrs&, KernelContext& context) {
  const Tensor& x = context.Input(0);
  if (x.size() == 0) return OkStatus();
  const auto n = static_cast<size_t>(x.shape().back());
  const auto add = kernels::FindBinary(BinaryOp::kAdd, ElementType::kFloat).vector_vector;
  const float* bias = context.Input(1).data<float>();
  const float* skip = context.Input(2).data<float>();
  float* y = context.Output(0).data<float>();
  const size_t rows = static_cast<size_t>(x.size()) / n;
  const size_t grain = kernels::ElementwiseGrain(BinaryOp::kAdd) / n + 1;
  context.threads().ParallelFor(rows, grain, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) {
      add(x.data<float>() + row * n, bias, y + row * n, n);
      add(y + row * n, skip + row * n, y + row * n, n);
    }
  });
  return OkStatus();
}

// --- BiasSplitGelu-1: left * gelu(right), of the halves of X + bias ---

Status InferBiasSplitGelu(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  TENON_RETURN_IF_ERROR(CheckBias(x, context));
  Dim& size = x[x.rank() - 1];
  if (size.is_number() && size.value() % 2 != 0) {
    return InvalidArgument("input 0: expected an even last dimension, got {}", x);
  }
  size = FloorDiv(size, Dim(2));
  return context.SetOutput(0, std::move(x));
}

Status RunBiasSplitGelu(const NoAttrs&, KernelContext& context) {
  const Tensor& x = context.Input(0);
  Tensor& y = context.Output(0);
  if (y.size() == 0) return OkStatus();
  const auto n = static_cast<size_t>(y.shape().back());
  const float* bias = context.Input(1).data<float>();
  const auto add = kernels::FindBinary(BinaryOp::kAdd, ElementType::kFloat).vector_vector;
  const auto multiply = kernels::FindBinary(BinaryOp::kMul, ElementType::kFloat).vector_vector;
  const auto gelu = kernels::FindUnary(UnaryOp::kGelu);
  const size_t rows = static_cast<size_t>(y.size()) / n;
  // Each task handles some rows and has a row of scratch for the left half.
  const size_t rows_per_task = RowGrain(UnaryOp::kGelu, n);
  const size_t tasks = (rows + rows_per_task - 1) / rows_per_task;
  return context.ForEachTask(tasks, n * sizeof(float), [&](size_t task, std::byte* scratch) {
    auto* left = reinterpret_cast<float*>(scratch);
    const size_t end = std::min(rows, (task + 1) * rows_per_task);
    for (size_t row = task * rows_per_task; row < end; ++row) {
      const float* from = x.data<float>() + row * 2 * n;
      float* into = y.data<float>() + row * n;
      add(from, bias, left, n);
      add(from + n, bias + n, into, n);
      gelu(into, into, n, 1, 0);
      multiply(left, into, into, n);
    }
  });
}

constexpr KernelTraits kInPlace = {.in_place_input = 0};
constexpr const char* kMicrosoft = "com.microsoft";

constexpr OpRow kRows[] = {
    Op<InferBiasActivation, RunBiasActivation<UnaryOp::kGelu>>(
        "BiasGelu", {.domain = kMicrosoft, .types = kFloat32Only, .traits = kInPlace}),
    Op<InferBiasActivation, RunBiasActivationDouble<UnaryOp::kGelu>>(
        "BiasGelu", {.domain = kMicrosoft, .types = {DataType::kDouble}, .traits = kInPlace}),
    Op<InferFastGelu, RunBiasActivation<UnaryOp::kGeluTanh>>(
        "FastGelu", {.domain = kMicrosoft, .types = kFloat32Only, .traits = kInPlace}),
    Op<InferFastGelu, RunBiasActivationDouble<UnaryOp::kGeluTanh>>(
        "FastGelu", {.domain = kMicrosoft, .types = {DataType::kDouble}, .traits = kInPlace}),
    Op<InferBiasAdd, RunBiasAdd>("BiasAdd", {.domain = kMicrosoft, .types = kFloat32Only}),
    Op<InferBiasSplitGelu, RunBiasSplitGelu>("BiasSplitGelu",
                                             {.domain = kMicrosoft, .types = kFloat32Only}),
};

}  // namespace

TENON_OP_FAMILY(BiasActivation, kRows);

}  // namespace tenon
