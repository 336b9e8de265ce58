// Reductions of 1M floats; bytes are those read once.
#include <benchmark/benchmark.h>

#include <array>
#include <vector>

#include "kernels/cumulative.h"
#include "kernels/reduce.h"
#include "kernels/search.h"

namespace tenon::bench {
namespace {

constexpr size_t kMany = 1 << 20;

std::vector<float> Inputs() {
  std::vector<float> x(kMany);
  for (size_t i = 0; i < kMany; ++i) x[i] = static_cast<float>(i * 2654435761u >> 8 & 0xffff);
  return x;
}

void Reduce(benchmark::State& state, kernels::ReduceOp op, std::array<size_t, 3> shape,
            std::array<bool, 3> reduced) {
  const auto x = Inputs();
  const auto plan = kernels::MakeReducePlan(shape, reduced);
  std::vector<float> y(plan->outputs);
  for (auto _ : state) {
    kernels::RunReduce(*plan, op, kernels::ElementType::kFloat, x.data(), y.data(), 0, plan->units);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kMany * 4));
}

using Shape = std::array<size_t, 3>;
using Axes = std::array<bool, 3>;
#define TENON_REDUCE_BENCHMARK(op)                                                      \
  BENCHMARK_CAPTURE(Reduce, op##_last, kernels::ReduceOp::k##op, Shape{1, 1024, 1024},  \
                    Axes{false, false, true})                                           \
      ->Unit(benchmark::kMicrosecond);                                                  \
  BENCHMARK_CAPTURE(Reduce, op##_first, kernels::ReduceOp::k##op, Shape{1, 1024, 1024}, \
                    Axes{true, true, false})                                            \
      ->Unit(benchmark::kMicrosecond);                                                  \
  BENCHMARK_CAPTURE(Reduce, op##_mid, kernels::ReduceOp::k##op, Shape{16, 64, 1024},    \
                    Axes{false, true, false})                                           \
      ->Unit(benchmark::kMicrosecond);                                                  \
  BENCHMARK_CAPTURE(Reduce, op##_all, kernels::ReduceOp::k##op, Shape{1, 1024, 1024},   \
                    Axes{true, true, true})                                             \
      ->Unit(benchmark::kMicrosecond)
TENON_REDUCE_BENCHMARK(Sum);
TENON_REDUCE_BENCHMARK(Max);
TENON_REDUCE_BENCHMARK(LogSumExp);

void ArgMaxLast(benchmark::State& state) {
  const auto x = Inputs();
  std::vector<int64_t> y(1024);
  for (auto _ : state) {
    kernels::ArgExtreme({.n = 1024, .inner = 1}, kernels::ElementType::kFloat, x.data(), y.data(),
                        0, 1024);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kMany * 4));
}
BENCHMARK(ArgMaxLast)->Unit(benchmark::kMicrosecond);

void TopK(benchmark::State& state) {
  const size_t rows = state.range(0), n = state.range(1), k = state.range(2);
  const auto x = Inputs();
  std::vector<float> values(rows * k);
  std::vector<int64_t> indices(rows * k);
  const kernels::TopKSizes sizes = {n, k, 1};
  std::vector<uint8_t> workspace(kernels::TopKWorkspaceBytes(sizes));
  for (auto _ : state) {
    kernels::TopK(sizes, {}, kernels::ElementType::kFloat, x.data(), values.data(), indices.data(),
                  0, rows, workspace.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * rows * n * 4));
}
BENCHMARK(TopK)
    ->Unit(benchmark::kMicrosecond)
    ->Args({1, 8400, 100})
    ->Args({80, 8400, 100})
    ->Args({1, 50257, 50});

void Cumulate(benchmark::State& state) {
  const auto x = Inputs();
  std::vector<float> y(kMany);
  const size_t inner = state.range(0);
  const kernels::CumulativePlan plan = {
      .op = kernels::CumulativeOp::kSum, .outer = 1024 / inner, .n = 1024, .inner = inner};
  for (auto _ : state) {
    kernels::Cumulate(plan, kernels::ElementType::kFloat, x.data(), y.data(), 0, plan.tasks());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kMany * 8));
}
BENCHMARK(Cumulate)->Unit(benchmark::kMicrosecond)->Arg(1)->Arg(1024);

}  // namespace
}  // namespace tenon::bench
