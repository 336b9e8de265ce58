#include <array>
#include <utility>

#include "kernels/gemm_bytes_tile.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tenon::kernels {

#if defined(__x86_64__)

namespace {

#define TENON_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))

// Broadcasts of four bytes of A are an operand of the instruction in memory, so 14 x 2 sums and two
// vectors of B fill 30 registers.
template <size_t kRows>
TENON_VNNI void RunTile(const int8_t* a, const uint8_t* panel, size_t depth, int32_t* sums) {
  __m512i acc[kRows][2];
#pragma GCC unroll 14
  for (size_t r = 0; r < kRows; ++r) acc[r][0] = acc[r][1] = _mm512_setzero_si512();
  for (size_t p = 0; p < depth; p += 4, panel += 128) {
    const __m512i b0 = _mm512_loadu_si512(panel);
    const __m512i b1 = _mm512_loadu_si512(panel + 64);
#pragma GCC unroll 14
    for (size_t r = 0; r < kRows; ++r) {
      int32_t four;
      __builtin_memcpy(&four, a + r * depth + p, sizeof(four));
      const __m512i quad = _mm512_set1_epi32(four);
      acc[r][0] = _mm512_dpbusd_epi32(acc[r][0], b0, quad);
      acc[r][1] = _mm512_dpbusd_epi32(acc[r][1], b1, quad);
    }
  }
#pragma GCC unroll 14
  for (size_t r = 0; r < kRows; ++r) {
    _mm512_storeu_si512(sums + r * 32, acc[r][0]);
    _mm512_storeu_si512(sums + r * 32 + 16, acc[r][1]);
  }
}

#undef TENON_VNNI

template <size_t... kRows>
constexpr auto TileFunctions(std::index_sequence<kRows...>) {
  return std::array{&RunTile<kRows + 1>...};
}

void RunAnyTile(const void* a, const uint8_t* panel, size_t depth, size_t rows, int32_t* sums) {
  static constexpr auto kFunctions = TileFunctions(std::make_index_sequence<kMaxByteTileRows>());
  kFunctions[rows - 1](static_cast<const int8_t*>(a), panel, depth, sums);
}

}  // namespace

RunByteTile FindVnniTile(ByteTileShape* shape) {
  if (!__builtin_cpu_supports("avx512vnni")) return nullptr;
  *shape = {.mr = kMaxByteTileRows, .nr = 32, .group = 4, .a_bytes = 1};
  return &RunAnyTile;
}

#else

RunByteTile FindVnniTile(ByteTileShape*) { return nullptr; }

#endif

}  // namespace tenon::kernels
