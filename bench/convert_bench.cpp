// Casts of 1M elements.
#include <benchmark/benchmark.h>

#include <vector>

#include "kernels/elementwise/convert.h"

namespace tenon::bench {
namespace {

using kernels::CastType;

void Cast(benchmark::State& state, CastType from, CastType to, size_t bytes) {
  constexpr size_t kMany = 1 << 20;
  const std::vector<uint64_t> x(kMany);
  std::vector<uint64_t> y(kMany);
  for (auto _ : state) {
    kernels::FindCast(from, to)(x.data(), y.data(), kMany);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * kMany * bytes));
}
BENCHMARK_CAPTURE(Cast, float_to_float16, CastType::kFloat, CastType::kFloat16, 6)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Cast, float16_to_float, CastType::kFloat16, CastType::kFloat, 6)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Cast, float_to_bfloat16, CastType::kFloat, CastType::kBfloat16, 6)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Cast, int64_to_float, CastType::kInt64, CastType::kFloat, 12)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Cast, float_to_int64, CastType::kFloat, CastType::kInt64, 12)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Cast, uint8_to_float, CastType::kUint8, CastType::kFloat, 5)
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_CAPTURE(Cast, int64_to_int32, CastType::kInt64, CastType::kInt32, 12)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tenon::bench
