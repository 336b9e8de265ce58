#include "kernels/conv_bytes_depthwise.h"

#if defined(__x86_64__)
#include "kernels/requantize_avx512.h"
#endif

namespace tenon::kernels {

#if defined(__x86_64__)

namespace {

#define TENON_VBMI \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx512vbmi")))

// The bytes that 16 outputs meet at four neighbouring taps are brought next to each other by one
// permutation of 64 bytes, and added up by one instruction.
TENON_VBMI void RunRow(const ByteRowConv& conv, const uint8_t* in, size_t n, void* out) {
  const __m512i order = _mm512_loadu_si512(conv.order);
  const __m512i start = _mm512_set1_epi32(conv.start);
  const __m512 scale = _mm512_set1_ps(conv.scale);
  const ByteRounding rounding = MakeByteRounding(conv.zero_point, conv.is_signed);
  for (size_t i = 0; i < n; i += 16, in += 16 * conv.stride) {
    __m512i sums = start;
    for (size_t q = 0; q < conv.quads; ++q) {
      const __m512i bytes = _mm512_maskz_permutexvar_epi8(~__mmask64{0}, order,
                                                          _mm512_loadu_si512(in + conv.offsets[q]));
      sums = _mm512_dpbusd_epi32(sums, bytes, _mm512_set1_epi32(conv.weights[q]));
    }
    const __mmask16 written = static_cast<__mmask16>(n - i >= 16 ? 0xffff : (1u << (n - i)) - 1);
    _mm_mask_storeu_epi8(static_cast<uint8_t*>(out) + i, written,
                         RoundToBytes(sums, scale, rounding));
  }
}

#undef TENON_VBMI

}  // namespace

ByteRowFunction FindByteRow() {
  const bool has_all = __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vbmi");
  return has_all ? &RunRow : nullptr;
}

#else

ByteRowFunction FindByteRow() { return nullptr; }

#endif

}  // namespace tenon::kernels
