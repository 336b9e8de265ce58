// Times work in turns with the machine's peak rate, so that benchmarks can report their share of
// it.
#pragma once

#include <benchmark/benchmark.h>

#include "base/function_ref.h"
#include "base/thread_pool.h"

namespace tenon::bench {

// Times `work`, which does `flop` multiplications and additions, for a benchmark with
// UseManualTime. Between any two measurements, every thread of `pool` (null: the calling one) runs
// multiply-adds in registers, with the widest instructions of kernels::ActiveTarget(), so that a
// machine that slows down for a while slows both. Reports the medians: the GFLOP/s of the work and
// of the peak, and the share (%peak) of the work in the adjacent peak.
void MeasureAgainstPeak(benchmark::State& state, double flop, FunctionRef<void()> work,
                        ThreadPool* pool = nullptr);

}  // namespace tenon::bench
