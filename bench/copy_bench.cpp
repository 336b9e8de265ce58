// Transposes and strided copies; bytes are those read and written once.
#include <benchmark/benchmark.h>

#include <vector>

#include "kernels/copy.h"
#include "kernels/transpose.h"

namespace tenon::bench {
namespace {

void RunPlan(benchmark::State& state, const kernels::CopyPlan& plan, size_t src_bytes,
             size_t dst_bytes) {
  const std::vector<uint8_t> src(src_bytes, 1);
  std::vector<uint8_t> dst(dst_bytes);
  for (auto _ : state) {
    kernels::RunCopy(plan, src.data(), dst.data(), 0, plan.units);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * dst_bytes * 2));
}

void Transpose(benchmark::State& state, std::vector<size_t> shape, std::vector<size_t> permutation,
               size_t element_size) {
  size_t bytes = element_size;
  for (const size_t dim : shape) bytes *= dim;
  RunPlan(state, *kernels::MakeTransposePlan(shape, permutation, element_size), bytes, bytes);
}

#define TENON_TRANSPOSE_BENCHMARK(name, ...) \
  BENCHMARK_CAPTURE(Transpose, name, __VA_ARGS__)->Unit(benchmark::kMicrosecond)
using Sizes = std::vector<size_t>;
TENON_TRANSPOSE_BENCHMARK(square_1024, Sizes{1024, 1024}, Sizes{1, 0}, 4);
TENON_TRANSPOSE_BENCHMARK(square_1000, Sizes{1000, 1000}, Sizes{1, 0}, 4);
TENON_TRANSPOSE_BENCHMARK(square_1024_u8, Sizes{1024, 1024}, Sizes{1, 0}, 1);
TENON_TRANSPOSE_BENCHMARK(heads_12x128x64, Sizes{128, 12, 64}, Sizes{1, 0, 2}, 4);
TENON_TRANSPOSE_BENCHMARK(nchw2nhwc, Sizes{64, 112, 112}, Sizes{1, 2, 0}, 4);
TENON_TRANSPOSE_BENCHMARK(nhwc2nchw, Sizes{112, 112, 64}, Sizes{2, 0, 1}, 4);
TENON_TRANSPOSE_BENCHMARK(image2nchw, Sizes{224, 224, 3}, Sizes{2, 0, 1}, 4);
TENON_TRANSPOSE_BENCHMARK(reverse_32, Sizes{32, 32, 32, 32}, Sizes{3, 2, 1, 0}, 4);
TENON_TRANSPOSE_BENCHMARK(shuffle, Sizes{2, 58, 28 * 28}, Sizes{1, 0, 2}, 4);

void SliceStep2(benchmark::State& state) {
  const size_t shape[] = {1024, 512};
  const ptrdiff_t src[] = {1024, 2}, dst[] = {512, 1};
  RunPlan(state, *kernels::MakeCopyPlan(shape, src, dst, 4), 4 << 20, 2 << 20);
}
BENCHMARK(SliceStep2)->Unit(benchmark::kMicrosecond);

void ConcatLast(benchmark::State& state) {
  const size_t shape[] = {1024, 512};
  const ptrdiff_t src[] = {512, 1}, dst[] = {1024, 1};
  RunPlan(state, *kernels::MakeCopyPlan(shape, src, dst, 4), 2 << 20, 4 << 20);
}
BENCHMARK(ConcatLast)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tenon::bench
