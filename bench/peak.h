// Times work in turns with what the machine can do at best, for benchmarks to report its share.
#pragma once

#include <benchmark/benchmark.h>

#include "base/function_ref.h"
#include "base/thread_pool.h"

namespace tenon::bench {

// Times `work`, which does `flop` multiplications and additions, for a benchmark with
// UseManualTime. Between any two times, every thread of `pool` (null: the calling one) runs
// multiply-adds on registers alone, with the widest instructions of kernels::ActiveTarget(): a
// machine that slows down for a while slows both. Reports the medians: GFLOP/s of the work and of
// the peak, and the share (%peak) of the former in the latter beside it.
void MeasureAgainstPeak(benchmark::State& state, double flop, FunctionRef<void()> work,
                        ThreadPool* pool = nullptr);

}  // namespace tenon::bench
