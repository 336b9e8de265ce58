#include <algorithm>

#include "kernels/conv/conv_int8_depthwise.h"

#if defined(__x86_64__)
#include "kernels/gemm/requantize_avx512.h"
#endif

namespace tenon::kernels {

#if defined(__x86_64__)

namespace {

#define TENON_VBMI \
  __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx512vbmi")))

// One permutation of 64 bytes puts the input bytes of 16 outputs at four neighbouring taps next to
// each other, and one instruction adds up their products.
TENON_VBMI void RunRow(const Int8RowConv& conv, const uint8_t* in, size_t n, void* out) {
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

// Loads only lanes of the plane's rows: memory outside the plane is not read.
TENON_VBMI __m512i LoadWindow(const Int8WindowConv& conv, const uint8_t* in, size_t out_row) {
  const auto row = static_cast<ptrdiff_t>(out_row * conv.stride) - static_cast<ptrdiff_t>(conv.pad);
  const ptrdiff_t end = std::min(static_cast<ptrdiff_t>(conv.in_rows) - row,
                                 static_cast<ptrdiff_t>(conv.window_rows));
  const auto columns = static_cast<ptrdiff_t>(conv.in_columns);
  const ptrdiff_t before = std::min(std::max<ptrdiff_t>(0, -row), std::max<ptrdiff_t>(0, end));
  const __mmask64 to_end = end <= 0 ? 0 : (__mmask64{1} << end * columns) - 1;
  const __mmask64 from_begin = ~__mmask64{0} << before * columns;
  const __m512i pads = _mm512_set1_epi8(static_cast<char>(conv.zero ^ conv.flip));
  const __m512i window = _mm512_mask_loadu_epi8(pads, to_end & from_begin, in + row * columns);
  return _mm512_xor_si512(window, _mm512_set1_epi8(static_cast<char>(conv.flip)));
}

TENON_VBMI void RunWindows(const Int8WindowConv& conv, const uint8_t* in, uint8_t* out) {
  const __m512i start = _mm512_set1_epi32(conv.start);
  const __m512 scale = _mm512_set1_ps(conv.scale);
  const ByteRounding rounding = MakeByteRounding(conv.zero_point, conv.is_signed);
  for (size_t row = 0; row < conv.out_rows; row += conv.rows) {
    const __m512i window = LoadWindow(conv, in, row);
    const size_t n = std::min(conv.rows, conv.out_rows - row) * conv.out_columns;
    const auto* order = conv.orders;
    for (size_t i = 0; i < n; i += Int8WindowConv::kOutputs) {
      __m512i sums = start;
      for (size_t q = 0; q < conv.quads; ++q) {
        const __m512i taps =
            _mm512_maskz_permutexvar_epi8(~__mmask64{0}, _mm512_loadu_si512(*order++), window);
        sums = _mm512_dpbusd_epi32(sums, taps, _mm512_set1_epi32(conv.weights[q]));
      }
      const __mmask16 written = static_cast<__mmask16>(n - i >= 16 ? 0xffff : (1u << (n - i)) - 1);
      _mm_mask_storeu_epi8(out + i, written, RoundToBytes(sums, scale, rounding));
    }
    out += n;
  }
}

#undef TENON_VBMI

bool HasInt8Dots() {
  return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vbmi");
}

}  // namespace

Int8RowFunction FindInt8Row() { return HasInt8Dots() ? &RunRow : nullptr; }
Int8WindowFunction FindInt8Window() { return HasInt8Dots() ? &RunWindows : nullptr; }

#else

Int8RowFunction FindInt8Row() { return nullptr; }
Int8WindowFunction FindInt8Window() { return nullptr; }

#endif

}  // namespace tenon::kernels
