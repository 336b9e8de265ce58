#include "ops/framework/run_broadcast.h"

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

}  // namespace tenon
