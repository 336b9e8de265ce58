// Clip.
#include <algorithm>
#include <limits>

#include "kernels/elementwise/elementwise.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// Clip-11 takes the bounds as inputs. Before, they are attributes; see unary.cpp.
Status InferClip(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  return context.SetOutput(0, std::move(x));
}

void ClipFloats(KernelContext& context, float low, float high) {
  const float* x = context.Input(0).data<float>();
  float* y = context.Output(0).data<float>();
  const kernels::UnaryFunction clip = kernels::FindUnary(UnaryOp::kClip);
  context.threads().ParallelFor(
      static_cast<size_t>(context.Input(0).size()), kernels::ElementwiseGrain(UnaryOp::kClip),
      [&](size_t begin, size_t end) { clip(x + begin, y + begin, end - begin, low, high); });
}

template <class T>
Status ClipTo(KernelContext& context) {
  using Limits = std::numeric_limits<T>;
  T bounds[] = {Limits::has_infinity ? -Limits::infinity() : Limits::lowest(),
                Limits::has_infinity ? Limits::infinity() : Limits::max()};
  for (size_t i = 0; i < 2; ++i) {
    if (!context.HasInput(i + 1)) continue;
    if (context.Input(i + 1).size() != 1) {
      return InvalidArgument("input {}: expected a scalar, got shape {}", i + 1,
                             context.Input(i + 1).shape());
    }
    bounds[i] = *context.Input(i + 1).data<T>();
  }
  if constexpr (std::is_same_v<T, float>) {
    ClipFloats(context, bounds[0], bounds[1]);
  } else {
    const Tensor& x = context.Input(0);
    for (int64_t i = 0; i < x.size(); ++i) {
      // In this order a lower bound above the upper one gives the upper one, as the standard says.
      context.Output(0).data<T>()[i] = std::min(std::max(x.data<T>()[i], bounds[0]), bounds[1]);
    }
  }
  return OkStatus();
}

Status RunClip(const NoAttrs&, KernelContext& context) {
  switch (context.Input(0).type()) {
    case DataType::kFloat:
      return ClipTo<float>(context);
    case DataType::kDouble:
      return ClipTo<double>(context);
    case DataType::kInt8:
      return ClipTo<int8_t>(context);
    case DataType::kInt16:
      return ClipTo<int16_t>(context);
    case DataType::kInt32:
      return ClipTo<int32_t>(context);
    case DataType::kInt64:
      return ClipTo<int64_t>(context);
    case DataType::kUint8:
      return ClipTo<uint8_t>(context);
    case DataType::kUint16:
      return ClipTo<uint16_t>(context);
    case DataType::kUint32:
      return ClipTo<uint32_t>(context);
    default:
      return ClipTo<uint64_t>(context);
  }
}

constexpr TypeSet kFloatAndDouble = {DataType::kFloat, DataType::kDouble};

constexpr OpRow kRows[] = {
    Op<InferClip, RunClip>(
        "Clip", {.since = 11, .types = kInts | kFloatAndDouble, .traits = {.in_place_input = 0}}),
};

}  // namespace

TENON_OP_FAMILY(Clip, kRows);

}  // namespace tenon
