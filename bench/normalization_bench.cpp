// Normalizations; bytes are those read and written once.
#include <benchmark/benchmark.h>

#include <vector>

#include "kernels/lrn.h"
#include "kernels/normalization.h"

namespace tenon::bench {
namespace {

std::vector<float> Inputs(size_t n) {
  std::vector<float> x(n);
  for (size_t i = 0; i < n; ++i) x[i] = 0.01f * static_cast<float>(i % 997) - 5;
  return x;
}

template <class Body>
void Run(benchmark::State& state, size_t elements, double arrays, Body&& body) {
  for (auto _ : state) {
    body();
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(static_cast<double>(state.iterations()) *
                                               static_cast<double>(elements) * 4 * arrays));
}

void LayerNorm(benchmark::State& state) {
  const size_t rows = state.range(0), n = state.range(1);
  const auto x = Inputs(rows * n), gamma = Inputs(n);
  std::vector<float> y(x.size());
  Run(state, x.size(), 2, [&] {
    kernels::LayerNorm({x.data()}, y.data(), rows, n, {1e-5f, gamma.data(), gamma.data()});
  });
}
BENCHMARK(LayerNorm)->Unit(benchmark::kMicrosecond)->Args({128, 768})->Args({3136, 96});

void SkipLayerNorm(benchmark::State& state) {
  const size_t rows = state.range(0), n = state.range(1);
  const auto x = Inputs(rows * n), gamma = Inputs(n);
  std::vector<float> y(x.size()), sum(x.size());
  Run(state, x.size(), 4, [&] {
    kernels::LayerNorm({x.data(), x.data(), gamma.data(), sum.data()}, y.data(), rows, n,
                       {1e-5f, gamma.data(), gamma.data()});
  });
}
BENCHMARK(SkipLayerNorm)->Unit(benchmark::kMicrosecond)->Args({128, 768});

void RmsNorm(benchmark::State& state) {
  const size_t rows = state.range(0), n = state.range(1);
  const auto x = Inputs(rows * n), gamma = Inputs(n);
  std::vector<float> y(x.size());
  Run(state, x.size(), 2, [&] {
    kernels::RmsNorm({x.data()}, y.data(), rows, n, {1e-5f, gamma.data()});
  });
}
BENCHMARK(RmsNorm)->Unit(benchmark::kMicrosecond)->Args({128, 2048});

void InstanceNorm(benchmark::State& state) {
  const size_t channels = state.range(0), n = state.range(1);
  const auto x = Inputs(channels * n), gamma = Inputs(channels);
  std::vector<float> y(x.size());
  Run(state, x.size(), 2, [&] {
    kernels::GroupNorm(x.data(), y.data(), 0, channels, {channels, 1, n}, gamma.data(),
                       gamma.data(), 1e-5f);
  });
}
BENCHMARK(InstanceNorm)->Unit(benchmark::kMicrosecond)->Args({64, 128 * 128});

void BatchNorm(benchmark::State& state) {
  const size_t channels = state.range(0), n = state.range(1);
  const auto x = Inputs(channels * n), scale = Inputs(channels);
  std::vector<float> y(x.size());
  Run(state, x.size(), 2, [&] {
    kernels::ScaleShiftRows(x.data(), y.data(), 0, channels, n, channels, scale.data(),
                            scale.data());
  });
}
BENCHMARK(BatchNorm)->Unit(benchmark::kMicrosecond)->Args({64, 128 * 128});

void Lrn(benchmark::State& state) {
  const size_t channels = state.range(0), n = state.range(1);
  const auto x = Inputs(channels * n);
  std::vector<float> y(x.size());
  Run(state, x.size(), 2, [&] {
    kernels::Lrn(x.data(), y.data(), channels, n, {5, 1e-4f, 0.75f, 1}, 0, kernels::LrnTasks(1, n));
  });
}
BENCHMARK(Lrn)->Unit(benchmark::kMicrosecond)->Args({64, 56 * 56})->Args({192, 56 * 56});

}  // namespace
}  // namespace tenon::bench
