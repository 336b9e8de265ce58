// Softmax over the last and over a middle axis; bytes are those read and written once.
#include <benchmark/benchmark.h>

#include <vector>

#include "kernels/softmax.h"

namespace tenon::bench {
namespace {

std::vector<float> Inputs(size_t n) {
  std::vector<float> x(n);
  for (size_t i = 0; i < n; ++i) x[i] = 0.01f * static_cast<float>(i % 997) - 5;
  return x;
}

void Rows(benchmark::State& state) {
  const size_t rows = state.range(0), n = state.range(1);
  const std::vector<float> x = Inputs(rows * n);
  std::vector<float> y(x.size());
  for (auto _ : state) {
    kernels::SoftmaxRows(x.data(), y.data(), rows, n, false);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * rows * n * 8));
}
BENCHMARK(Rows)
    ->Unit(benchmark::kMicrosecond)
    ->Args({4, 1000})
    ->Args({1536, 128})
    ->Args({6144, 512})
    ->Args({128, 30522});

void Middle(benchmark::State& state) {
  const size_t outer = state.range(0), n = state.range(1), inner = state.range(2);
  const std::vector<float> x = Inputs(outer * n * inner);
  std::vector<float> y(x.size());
  for (auto _ : state) {
    kernels::SoftmaxMiddle(x.data(), y.data(), n, inner, false, 0,
                           kernels::SoftmaxMiddleTasks(outer, inner));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * x.size() * 8));
}
BENCHMARK(Middle)->Unit(benchmark::kMicrosecond)->Args({1, 1024, 1024})->Args({4, 16, 8400});

}  // namespace
}  // namespace tenon::bench
