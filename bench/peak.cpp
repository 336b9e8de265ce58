#include "peak.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "peak.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <vector>

#include "kernels/dispatch.h"

#ifndef TENON_BENCH_PEAK_CPP_
#define TENON_BENCH_PEAK_CPP_
namespace tenon::bench {
struct PeakTable {
  // Runs `rounds` rounds of multiply-adds; returns their FLOP and writes their sum to `sink`.
  double (*run)(int rounds, float* sink);
};
}  // namespace tenon::bench
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::bench {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

double RunMultiplyAdds(int rounds, float* sink) {
  constexpr int kChains = 12;  // more than latency x units on every core that we know
  const hn::ScalableTag<float> d;
  const auto factor = hn::Set(d, 0.5f), addend = hn::Set(d, 0.25f);
  hn::Vec<decltype(d)> sums[kChains];
#pragma GCC unroll 16
  for (int i = 0; i < kChains; ++i) sums[i] = hn::Set(d, static_cast<float>(i));
  for (int round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) sums[i] = hn::MulAdd(sums[i], factor, addend);
  }
  auto total = sums[0];
#pragma GCC unroll 16
  for (int i = 1; i < kChains; ++i) total = hn::Add(total, sums[i]);
  *sink = hn::GetLane(total);
  return 2.0 * kChains * rounds * static_cast<double>(hn::Lanes(d));
}

const PeakTable kPeakTable = {&RunMultiplyAdds};

}  // namespace HWY_NAMESPACE
}  // namespace tenon::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::bench {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsOf(FunctionRef<void()> work) {
  const Clock::time_point start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// FLOP per second in bursts of some 50 us on every thread.
double PeakNow(ThreadPool* pool) {
  constexpr int kRounds = 15'000;
  const PeakTable& table = TENON_SELECT_TABLE(PeakTable, kPeakTable);
  const auto burst = [&] {
    float sink;
    const double flop = table.run(kRounds, &sink);
    benchmark::DoNotOptimize(sink);
    return flop;
  };
  if (pool == nullptr) {
    double flop = 0;
    const double seconds = SecondsOf([&] { flop = burst(); });
    return flop / seconds;
  }
  // Several blocks per thread, so that a thread that wakes late takes fewer.
  const size_t bursts = 4 * static_cast<size_t>(pool->threads());
  std::atomic<double> flop = 0;
  const double seconds = SecondsOf([&] {
    pool->ParallelFor(bursts, 1, [&](size_t begin, size_t end) {
      for (; begin < end; ++begin) flop.fetch_add(burst());
    });
  });
  return flop / seconds;
}

double Median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

void MeasureAgainstPeak(benchmark::State& state, double flop, FunctionRef<void()> work,
                        ThreadPool* pool) {
  // Work that is too short for the clock is repeated.
  constexpr double kLeastSeconds = 1e-4;
  const double once = SecondsOf(work);
  const auto repeats = static_cast<int>(std::max(1.0, kLeastSeconds / once));
  std::vector<double> rates, peaks, shares;
  for (auto _ : state) {
    const double peak = PeakNow(pool);
    const double seconds = SecondsOf([&] {
                             for (int i = 0; i < repeats; ++i) work();
                           }) /
                           repeats;
    state.SetIterationTime(seconds);
    rates.push_back(flop / seconds / 1e9);
    peaks.push_back(peak / 1e9);
    shares.push_back(100 * flop / seconds / peak);
  }
  state.counters["GFLOP/s"] = Median(rates);
  state.counters["peak"] = Median(peaks);
  state.counters["%peak"] = Median(shares);
}

}  // namespace tenon::bench
#endif
