// Element-wise operators on 1M floats (in the last-level cache) and 4K floats (in L1).
#include <benchmark/benchmark.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/elementwise/broadcast.h"
#include "kernels/elementwise/elementwise.h"

namespace tenon::bench {
namespace {

using kernels::BinaryOp;
using kernels::ElementType;

constexpr size_t kMany = 1 << 20;

std::vector<float> Inputs(size_t n) {
  std::vector<float> x(n);
  for (size_t i = 0; i < n; ++i) x[i] = 0.01f + 0.003f * static_cast<float>(i % 997);
  return x;
}

void Unary(benchmark::State& state, UnaryOp op, size_t n) {
  const std::vector<float> x = Inputs(n);
  std::vector<float> y(n);
  for (auto _ : state) {
    kernels::FindUnary(op)(x.data(), y.data(), n, 0.5f, 1.0f);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * n * 8));
}

void Binary(benchmark::State& state, BinaryOp op, std::vector<int64_t> a_shape,
            std::vector<int64_t> b_shape) {
  const std::span<const int64_t> shapes[] = {a_shape, b_shape};
  const auto plan = kernels::MakeBroadcastPlan(shapes);
  const std::vector<float> a = Inputs(kMany), b = Inputs(kMany);
  std::vector<float> y(kMany);
  const size_t output_size = kernels::IsComparison(op) ? 1 : 4;
  const kernels::BroadcastBinary binary = {kernels::FindBinary(op, ElementType::kFloat), 4,
                                           output_size};
  const auto tasks = kernels::SplitBroadcast(*plan, kernels::ElementwiseGrain(op));
  for (auto _ : state) {
    for (size_t task = 0; task < tasks.count; ++task) {
      kernels::RunBroadcastBinary(*plan, tasks, task, binary, a.data(), b.data(), y.data());
    }
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(
      static_cast<int64_t>(state.iterations() * plan->output_size() * (8 + output_size)));
}

void Where(benchmark::State& state) {
  const std::vector<float> a = Inputs(kMany), b = Inputs(kMany);
  std::vector<float> y(kMany);
  std::vector<uint8_t> condition(kMany);
  for (size_t i = 0; i < kMany; ++i) condition[i] = i * 2654435761u >> 7 & 1;
  for (auto _ : state) {
    kernels::Where(condition.data(), a.data(), b.data(), y.data(), kMany, 4, {1, 1, 1});
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kMany * 13));
}
BENCHMARK(Where)->Unit(benchmark::kMicrosecond);

[[maybe_unused]] const bool kHasUnary = [] {
  for (const UnaryInfo& info : kUnaryFunctions) {
    const std::string name = "Unary/" + std::string(info.name);
    const UnaryOp op = *FindUnaryOp(info.name);
    for (const auto& [suffix, n] : {std::pair("_1M", kMany), std::pair("_4K", size_t{4096})}) {
      benchmark::RegisterBenchmark((name + suffix).c_str(), Unary, op, n)
          ->Unit(benchmark::kMicrosecond);
    }
  }
  return true;
}();

#define TENON_BINARY_BENCHMARK(name)                                                  \
  BENCHMARK_CAPTURE(Binary, name##_1M, BinaryOp::k##name, {1024, 1024}, {1024, 1024}) \
      ->Unit(benchmark::kMicrosecond);                                                \
  BENCHMARK_CAPTURE(Binary, name##_row, BinaryOp::k##name, {1024, 1024}, {1024})      \
      ->Unit(benchmark::kMicrosecond);                                                \
  BENCHMARK_CAPTURE(Binary, name##_col, BinaryOp::k##name, {1024, 1024}, {1024, 1})   \
      ->Unit(benchmark::kMicrosecond);                                                \
  BENCHMARK_CAPTURE(Binary, name##_last3, BinaryOp::k##name, {349525, 3}, {3})        \
      ->Unit(benchmark::kMicrosecond);
TENON_BINARY_BENCHMARK(Add)
TENON_BINARY_BENCHMARK(Div)
TENON_BINARY_BENCHMARK(Max)
TENON_BINARY_BENCHMARK(Less)
TENON_BINARY_BENCHMARK(Pow)

}  // namespace
}  // namespace tenon::bench
