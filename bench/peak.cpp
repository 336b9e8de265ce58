#include "peak.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "peak.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <chrono>

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

double PeakGflops() {
  static const double peak = [] {
    const PeakTable& table = TENON_SELECT_TABLE(PeakTable, kPeakTable);
    using Clock = std::chrono::steady_clock;
    double best = 0;
    volatile float observed;
    for (int attempt = 0; attempt < 25; ++attempt) {
      float sink;
      const Clock::time_point start = Clock::now();
      const double flop = table.run(500'000 / 4, &sink);
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      observed = sink;
      best = std::max(best, flop / seconds / 1e9);
    }
    static_cast<void>(observed);
    return best;
  }();
  return peak;
}

}  // namespace tenon::bench
#endif
