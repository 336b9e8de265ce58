#include "base/denormals.h"

#include <cstdint>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace tenon {

#if defined(__SSE2__)

bool SetDenormalsAsZero(bool on) {
  constexpr unsigned kFlushResults = 0x8000;
  constexpr unsigned kInputsAreZero = 0x0040;
  constexpr unsigned kBoth = kFlushResults | kInputsAreZero;
  const unsigned control = _mm_getcsr();
  _mm_setcsr(on ? control | kBoth : control & ~kBoth);
  return true;
}

#elif defined(__aarch64__)

bool SetDenormalsAsZero(bool on) {
  constexpr uint64_t kFlushToZero = uint64_t{1} << 24;  // FPCR.FZ: inputs and results
  uint64_t control;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  control = on ? control | kFlushToZero : control & ~kFlushToZero;
  asm volatile("msr fpcr, %0" ::"r"(control));
  return true;
}

#else

bool SetDenormalsAsZero(bool /*on*/) { return false; }

#endif

}  // namespace tenon
