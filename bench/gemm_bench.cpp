// GFLOP/s of the matrix product, and its share of the machine's peak.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/gemm/gemm.h"
#include "peak.h"

namespace tenon::bench {
namespace {

using kernels::GemmArgs;
using kernels::GemmSizes;

// Floats at an address that is a multiple of 64.
class Buffer {
 public:
  explicit Buffer(size_t count) : size_(count), storage_(count + 16) {
    const auto address = reinterpret_cast<uintptr_t>(storage_.data());
    data_ = storage_.data() + (64 - address % 64) % 64 / sizeof(float);
    uint32_t state = 1;
    for (size_t i = 0; i < count; ++i) {
      state = state * 1664525 + 1013904223;
      data_[i] = static_cast<float>(state >> 8) / (1 << 23) - 1;
    }
  }
  float* data() { return data_; }
  size_t size() const { return size_; }

 private:
  size_t size_;
  std::vector<float> storage_;
  float* data_;
};

struct Operands {
  explicit Operands(const GemmSizes& s, bool packed)
      : a(s.m * s.k),
        b(s.k * s.n),
        c(s.m * s.n),
        packed_b(packed ? kernels::PackedGemmBSize(s.n, s.k) / sizeof(float) : 0),
        scratch(kernels::GemmScratchSize(s, packed) / sizeof(float)) {
    args.sizes = s;
    args.a = kernels::RowMajor(a.data(), s.k);
    args.b = kernels::RowMajor(b.data(), s.n);
    args.c = c.data();
    args.ldc = s.n;
    if (packed) {
      kernels::PackGemmB(args.b, s.n, s.k, packed_b.data());
      args.packed_b = packed_b.data();
    }
  }

  Buffer a, b, c, packed_b, scratch;
  GemmArgs args;
};

GemmSizes SizesOf(const benchmark::State& state) {
  return {static_cast<size_t>(state.range(0)), static_cast<size_t>(state.range(1)),
          static_cast<size_t>(state.range(2))};
}

void Measure(benchmark::State& state, const GemmSizes& s, FunctionRef<void()> multiply,
             ThreadPool* pool = nullptr) {
  const double flop =
      2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  MeasureAgainstPeak(state, flop, multiply, pool);
  const double bytes_of_b = 4.0 * static_cast<double>(s.n * s.k);
  state.counters["B_GB/s"] = bytes_of_b / flop * state.counters["GFLOP/s"];
}

void Measure(benchmark::State& state, Operands& operands) {
  Measure(state, operands.args.sizes, [&] {
    kernels::Gemm(operands.args, operands.scratch.data());
    benchmark::ClobberMemory();
  });
}

// Every thread keeps its own scratch memory, as in a session.
void PackedGemmOnTwoThreads(benchmark::State& state) {
  const GemmSizes sizes = SizesOf(state);
  Operands operands(sizes, true);
  ThreadPool pool({.threads = 2});
  const size_t tasks = kernels::GemmTaskCount(sizes, true);
  const size_t scratch_floats = kernels::GemmScratchSize(sizes, true) / sizeof(float);
  const auto multiply = [&] {
    pool.ParallelFor(tasks, 1, [&](size_t begin, size_t end) {
      thread_local Buffer scratch(0);
      if (scratch.size() < scratch_floats) scratch = Buffer(scratch_floats);
      for (size_t task = begin; task < end; ++task) {
        kernels::RunGemmTask(operands.args, task, scratch.data());
      }
    });
    benchmark::ClobberMemory();
  };
  Measure(state, sizes, multiply, &pool);
}

void PackedGemm(benchmark::State& state) {
  Operands operands(SizesOf(state), true);
  Measure(state, operands);
}

void UnpackedGemm(benchmark::State& state) {
  Operands operands(SizesOf(state), false);
  Measure(state, operands);
}

void UnpackedGemmTransposedB(benchmark::State& state) {
  Operands operands(SizesOf(state), false);
  operands.args.b = kernels::Transposed(operands.b.data(), operands.args.sizes.k);
  Measure(state, operands);
}

// As the gradient of a weight: both operands have the depth, the rows of a batch, as first
// dimension.
void UnpackedGemmTransposedA(benchmark::State& state) {
  Operands operands(SizesOf(state), false);
  operands.args.a = kernels::Transposed(operands.a.data(), operands.args.sizes.m);
  Measure(state, operands);
}

void PackedGemmTransposedA(benchmark::State& state) {
  Operands operands(SizesOf(state), true);
  operands.args.a = kernels::Transposed(operands.a.data(), operands.args.sizes.m);
  Measure(state, operands);
}

// Packs a transposed B, as of a linear layer of PyTorch: n, k.
void PackTransposedB(benchmark::State& state) {
  const auto n = static_cast<size_t>(state.range(0)), k = static_cast<size_t>(state.range(1));
  Buffer b(n * k), packed(kernels::PackedGemmBSize(n, k) / sizeof(float));
  for (auto _ : state) {
    kernels::PackGemmB(kernels::Transposed(b.data(), k), n, k, packed.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * n * k * sizeof(float)));
}

// Every product here also applies the bias and an activation when it writes the sums.
void PackedGemmEpilogue(benchmark::State& state) {
  const GemmSizes sizes = SizesOf(state);
  Operands operands(sizes, true);
  Buffer bias(sizes.n);
  operands.args.epilogue.bias_columns = bias.data();
  operands.args.epilogue.activation.op = static_cast<UnaryOp>(state.range(3));
  Measure(state, operands);
}

// m, n, k
BENCHMARK(PackedGemm)
    ->Args({64, 64, 64})
    ->Args({128, 128, 128})
    ->Args({256, 256, 256})
    ->Args({512, 512, 512})
    ->Args({1024, 1024, 1024})
    ->Args({2048, 2048, 2048})
    ->Args({128, 768, 768})
    ->Args({128, 3072, 768})
    ->Args({128, 768, 3072})
    ->Args({32, 768, 768})
    ->Args({197, 768, 768})
    ->Args({16, 3072, 768})
    ->Args({8, 3072, 768})
    ->Args({4, 3072, 768})
    ->Args({1, 3072, 768})
    ->Args({1, 2048, 2048})
    ->Args({1, 4096, 4096})
    ->Args({4, 4096, 4096})
    ->Args({8, 4096, 4096})
    ->Args({16, 4096, 4096})
    ->Args({32, 4096, 4096})
    ->Args({3136, 64, 64})
    ->Args({1, 1000, 1280})
    ->UseManualTime();
BENCHMARK(PackedGemmOnTwoThreads)
    ->Args({512, 512, 512})
    ->Args({1024, 1024, 1024})
    ->Args({2048, 2048, 2048})
    ->Args({128, 768, 768})
    ->Args({128, 3072, 768})
    ->Args({1, 4096, 4096})
    ->UseManualTime();
BENCHMARK(UnpackedGemm)
    ->Args({64, 64, 64})
    ->Args({512, 512, 512})
    ->Args({1024, 1024, 1024})
    ->Args({128, 64, 128})
    ->Args({512, 64, 512})
    ->Args({1, 64, 512})
    ->Args({1, 4096, 4096})
    ->Args({8, 4096, 4096})
    ->Args({64, 1024, 1024})
    ->Args({512, 256, 1024})
    ->UseManualTime();
BENCHMARK(UnpackedGemmTransposedB)
    ->Args({128, 128, 64})
    ->Args({512, 512, 64})
    ->Args({1, 512, 64})
    ->Args({512, 512, 512})
    ->Args({1, 4096, 4096})
    ->Args({64, 1024, 784})
    ->Args({64, 1024, 1024})
    ->Args({512, 1024, 256})
    ->UseManualTime();
BENCHMARK(UnpackedGemmTransposedA)
    ->Args({1024, 784, 64})
    ->Args({1024, 1024, 64})
    ->Args({1024, 256, 512})
    ->UseManualTime();
BENCHMARK(PackedGemmTransposedA)->UseManualTime()->Args({128, 768, 768})->Args({512, 512, 512});
BENCHMARK(PackTransposedB)->Args({256, 256})->Args({1024, 784})->Args({1024, 1024});
BENCHMARK(PackedGemmEpilogue)->UseManualTime()->Apply([](auto* bench) {
  using enum UnaryOp;
  for (const auto activation :
       {kIdentity, kRelu, kHardSwish, kSigmoid, kTanh, kGelu, kGeluTanh, kSwish}) {
    // A product of its usual depth, and one so flat that the epilogue weighs as much.
    for (const int64_t k : {768, 32}) bench->Args({128, 3072, k, static_cast<int64_t>(activation)});
  }
});

}  // namespace
}  // namespace tenon::bench
