#include "ops/framework/run_broadcast.h"

#include <algorithm>
#include <cstring>

#include "kernels/elementwise/broadcast.h"

namespace tenon {

Status RunBroadcast(KernelContext& context, const kernels::BinaryFunctions& functions, size_t grain,
                    const Tensor& a, const Tensor& b, Tensor& y) {
  const std::span<const int64_t> shapes[] = {a.shape().dims(), b.shape().dims()};
  TENON_ASSIGN_OR_RETURN(const kernels::BroadcastPlan plan, kernels::MakeBroadcastPlan(shapes));
  const kernels::BroadcastTasks tasks = kernels::SplitBroadcast(plan, grain);
  const kernels::BroadcastBinary op = {functions, DataTypeBits(a.type()) / 8,
                                       DataTypeBits(y.type()) / 8};
  context.threads().ParallelFor(tasks.count, 1, [&](size_t begin, size_t end) {
    for (size_t task = begin; task < end; ++task) {
      kernels::RunBroadcastBinary(plan, tasks, task, op, a.raw(), b.raw(), y.raw());
    }
  });
  return OkStatus();
}

void RunScalarSteps(KernelContext& context, std::span<const ScalarStep> steps, const Tensor& x,
                    Tensor& y) {
  constexpr size_t kTileBytes = 8192;  // which the L1 cache has from one step to the next
  const size_t size = DataTypeBits(x.type()) / 8;
  const auto* from = static_cast<const std::byte*>(x.raw());
  auto* to = static_cast<std::byte*>(y.raw());
  context.threads().ParallelFor(x.bytes(), kTileBytes * 8, [=](size_t begin, size_t end) {
    for (size_t at = begin; at < end; at += kTileBytes) {
      const size_t bytes = std::min(kTileBytes, end - at);
      const std::byte* operand = from + at;
      if (steps.empty() && from != to) std::memcpy(to + at, operand, bytes);
      for (const ScalarStep& step : steps) {
        const void* other = step.scalar ? step.scalar : from + at;
        step.function(step.scalar_is_first ? other : operand,
                      step.scalar_is_first ? operand : other, to + at, bytes / size);
        operand = to + at;
      }
    }
  });
}

}  // namespace tenon
