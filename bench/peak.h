// What the machine can do at best, for benchmarks to report their share of.
#pragma once

namespace tenon::bench {

// Multiply-add operations (2 each) of one thread in GFLOP/s, on registers alone, with the widest
// instructions of kernels::ActiveTarget(). Measured once per process, in some 50 ms.
double PeakGflops();

}  // namespace tenon::bench
