#include <algorithm>
#include <array>
#include <utility>

#include "kernels/gemm/gemm_int8_tile.h"

#if defined(__x86_64__)
#include "kernels/gemm/requantize_avx512.h"
#include "kernels/gemm/sum_lanes_avx512.h"
#endif

namespace tenon::kernels {

#if defined(__x86_64__)

namespace {

#define TENON_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,bmi2")))

// The instruction can broadcast four bytes of A from memory, so 14 x 2 sums and two vectors of B
// fill 30 registers.
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

// One whole group of rows: 32 columns of four rows each, element by element, and their sums.
TENON_VNNI void PackGroup(const __m256i (&rows)[4], uint8_t* out, __m256i (&sums)[4]) {
  const __m256i low01 = _mm256_unpacklo_epi8(rows[0], rows[1]);
  const __m256i high01 = _mm256_unpackhi_epi8(rows[0], rows[1]);
  const __m256i low23 = _mm256_unpacklo_epi8(rows[2], rows[3]);
  const __m256i high23 = _mm256_unpackhi_epi8(rows[2], rows[3]);
  // Columns 0-3 and 16-19, 4-7 and 20-23, ...
  const __m256i fours[4] = {
      _mm256_unpacklo_epi16(low01, low23), _mm256_unpackhi_epi16(low01, low23),
      _mm256_unpacklo_epi16(high01, high23), _mm256_unpackhi_epi16(high01, high23)};
  const __m256i packed[4] = {_mm256_permute2x128_si256(fours[0], fours[1], 0x20),
                             _mm256_permute2x128_si256(fours[2], fours[3], 0x20),
                             _mm256_permute2x128_si256(fours[0], fours[1], 0x31),
                             _mm256_permute2x128_si256(fours[2], fours[3], 0x31)};
  const __m256i ones = _mm256_set1_epi8(1);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out) + i, packed[i]);
    sums[i] = _mm256_dpbusd_epi32(sums[i], packed[i], ones);
  }
}

// One row of a matrix with neighbouring elements, and its sum.
TENON_VNNI int32_t PackWholeRow(const uint8_t* row, bool is_signed, size_t k, size_t depth,
                                int8_t* out) {
  // Subtracting 128 from bytes in [0, 255] flips their highest bit.
  const __m512i flip = _mm512_set1_epi8(is_signed ? 0 : static_cast<char>(0x80));
  const __m512i ones = _mm512_set1_epi8(1);
  __m512i sum = _mm512_setzero_si512();
  for (size_t p = 0; p < depth; p += 64) {
    const auto first = [p](size_t n) {
      return n >= p + 64 ? ~uint64_t{0} : n <= p ? 0 : (uint64_t{1} << (n - p)) - 1;
    };
    const __mmask64 read = first(k), written = first(depth);
    const __m512i bytes =
        _mm512_maskz_mov_epi8(read, _mm512_xor_si512(_mm512_maskz_loadu_epi8(read, row + p), flip));
    sum = _mm512_dpbusd_epi32(sum, ones, bytes);
    _mm512_mask_storeu_epi8(out + p, written, bytes);
  }
  return SumOfLanes(sum);
}

void PackWholeRows(const Int8Matrix& a, size_t rows, size_t k, size_t depth, void* out,
                   int32_t* row_sums) {
  for (size_t i = 0; i < rows; ++i) {
    row_sums[i] = PackWholeRow(a.data + i * a.row_stride, a.is_signed, k, depth,
                               static_cast<int8_t*>(out) + i * depth);
  }
}

TENON_VNNI void PackWholePanel(const Int8Matrix& b, size_t k, uint8_t* out, int32_t* column_sums) {
  const __m256i flip = _mm256_set1_epi8(b.is_signed ? static_cast<char>(0x80) : 0);
  __m256i sums[4] = {};
  for (size_t p = 0; p < k; p += 4, out += 128) {
    __m256i rows[4] = {};
#pragma GCC unroll 4
    for (size_t g = 0; g < 4; ++g) {
      if (p + g >= k) continue;
      const auto* row = reinterpret_cast<const __m256i*>(b.data + (p + g) * b.row_stride);
      rows[g] = _mm256_xor_si256(_mm256_loadu_si256(row), flip);
    }
    PackGroup(rows, out, sums);
  }
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(column_sums) + i, sums[i]);
  }
}

// Adds four rows of B, times four elements of A, to the sums of 64 columns, and the rows themselves
// to the column sums. Lane l of vector i has the columns 16 l + 4 i on, four of them.
TENON_VNNI inline void AddGroup(const __m512i (&rows)[4], __m512i quad, __m512i (&sums)[4],
                                __m512i (&column_sums)[4]) {
  const __m512i low01 = _mm512_unpacklo_epi8(rows[0], rows[1]);
  const __m512i high01 = _mm512_unpackhi_epi8(rows[0], rows[1]);
  const __m512i low23 = _mm512_unpacklo_epi8(rows[2], rows[3]);
  const __m512i high23 = _mm512_unpackhi_epi8(rows[2], rows[3]);
  const __m512i fours[4] = {
      _mm512_unpacklo_epi16(low01, low23), _mm512_unpackhi_epi16(low01, low23),
      _mm512_unpacklo_epi16(high01, high23), _mm512_unpackhi_epi16(high01, high23)};
  const __m512i ones = _mm512_set1_epi8(1);
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    sums[i] = _mm512_dpbusd_epi32(sums[i], fours[i], quad);
    column_sums[i] = _mm512_dpbusd_epi32(column_sums[i], fours[i], ones);
  }
}

// Adds up to kRows rows. A full number of them asks for as many that come next: the memory of B is
// the limit.
template <size_t kRows>
TENON_VNNI void AddRows(const int8_t* a, const Int8Matrix& b, size_t rows, size_t columns,
                        int32_t* sums, int32_t* column_sums) {
  const __m512i flip = _mm512_set1_epi8(b.is_signed ? static_cast<char>(0x80) : 0);
  __m512i quads[kRows / 4];
#pragma GCC unroll 2
  for (size_t q = 0; q < kRows / 4; ++q) {
    int32_t four;
    __builtin_memcpy(&four, a + 4 * q, sizeof(four));
    quads[q] = _mm512_set1_epi32(four);
  }
  for (size_t j = 0; j < columns; j += 64, sums += 64, column_sums += 64) {
    __m512i products[4], totals[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      products[i] = _mm512_loadu_si512(sums + i * 16);
      totals[i] = _mm512_loadu_si512(column_sums + i * 16);
    }
#pragma GCC unroll 2
    for (size_t q = 0; q < kRows / 4; ++q) {
      __m512i group[4];
#pragma GCC unroll 4
      for (size_t g = 0; g < 4; ++g) {
        const uint8_t* row = b.data + (4 * q + g) * b.row_stride + j;
        if (kRows == 4 && g >= rows) {
          group[g] = _mm512_setzero_si512();
          continue;
        }
        if (kRows > 4) _mm_prefetch(row + kRows * b.row_stride, _MM_HINT_T0);
        group[g] = _mm512_xor_si512(_mm512_loadu_si512(row), flip);
      }
      AddGroup(group, quads[q], products, totals);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      _mm512_storeu_si512(sums + i * 16, products[i]);
      _mm512_storeu_si512(column_sums + i * 16, totals[i]);
    }
  }
}

// Puts the lanes of AddGroup's vectors in order.
void OrderLanes(int32_t* sums) {
  int32_t lanes[64];
  __builtin_memcpy(lanes, sums, sizeof(lanes));
  for (int i = 0; i < 4; ++i) {
    for (int lane = 0; lane < 4; ++lane) {
      __builtin_memcpy(sums + lane * 16 + i * 4, lanes + i * 16 + lane * 4, 4 * sizeof(int32_t));
    }
  }
}

void SumRowInPlace(const void* row, const Int8Matrix& b, size_t k, size_t columns, int32_t* sums,
                   int32_t* column_sums) {
  constexpr size_t kRows = 8;
  const auto* a = static_cast<const int8_t*>(row);
  std::fill_n(sums, columns, 0);
  std::fill_n(column_sums, columns, 0);
  Int8Matrix rest = b;
  size_t p = 0;
  for (; p + kRows <= k; p += kRows, rest.data += kRows * b.row_stride) {
    AddRows<kRows>(a + p, rest, kRows, columns, sums, column_sums);
  }
  for (; p < k; p += 4, rest.data += 4 * b.row_stride) {
    AddRows<4>(a + p, rest, std::min<size_t>(4, k - p), columns, sums, column_sums);
  }
  for (size_t j = 0; j < columns; j += 64) {
    OrderLanes(sums + j);
    OrderLanes(column_sums + j);
  }
}

TENON_VNNI void StoreTile(const Int8TileOutput& output) {
  const __m512i columns[2] = {_mm512_loadu_si512(output.column_terms),
                              _mm512_loadu_si512(output.column_terms + 16)};
  const ByteRounding rounding = MakeByteRounding(output.zero_point, output.is_signed);
  const bool has_factors = output.row_factors != nullptr;
  const __m512i zeros = _mm512_setzero_si512();
  const __m512i factors[2] = {has_factors ? _mm512_loadu_si512(output.column_factors) : zeros,
                              has_factors ? _mm512_loadu_si512(output.column_factors + 16) : zeros};
  const bool has_scales = output.column_scales != nullptr;
  const __m512 ones = _mm512_set1_ps(1);
  const __m512 scales[2] = {has_scales ? _mm512_loadu_ps(output.column_scales) : ones,
                            has_scales ? _mm512_loadu_ps(output.column_scales + 16) : ones};
  const uint32_t written =
      output.columns >= 32 ? ~uint32_t{0} : (uint32_t{1} << output.columns) - 1;
  auto* c = static_cast<uint8_t*>(output.c);
  for (size_t i = 0; i < output.rows; ++i, c += output.ldc) {
    const __m512i row_term = _mm512_set1_epi32(output.row_terms[i]);
    const __m512i row_factor = _mm512_set1_epi32(has_factors ? output.row_factors[i] : 0);
    const __m512 row_scale = _mm512_set1_ps(output.row_scales[i]);
    __m128i bytes[2];
#pragma GCC unroll 2
    for (size_t half = 0; half < 2; ++half) {
      const __m512i raw = _mm512_loadu_si512(output.sums + i * 32 + half * 16);
      __m512i sums = _mm512_add_epi32(_mm512_add_epi32(raw, columns[half]), row_term);
      if (has_factors) {
        sums = _mm512_add_epi32(sums, _mm512_mullo_epi32(row_factor, factors[half]));
      }
      bytes[half] = RoundToBytes(sums, _mm512_mul_ps(row_scale, scales[half]), rounding);
    }
    const __m256i row = _mm256_inserti128_si256(_mm256_castsi128_si256(bytes[0]), bytes[1], 1);
    if (output.columns >= 32) {  // faster than with a mask
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(c), row);
    } else {
      _mm256_mask_storeu_epi8(c, written, row);
    }
  }
}

// Loads the columns of a piece; the other columns come from `row`. Masked loads do not access
// masked elements.
template <size_t kStride>
TENON_VNNI __m256i LoadPiece(const BytePiece& piece, const uint8_t* plane, __m256i row) {
  const uint8_t* from = plane + piece.from;
  if constexpr (kStride == 1) return _mm256_mask_loadu_epi8(row, piece.columns, from);
  const uint64_t spread = _pdep_u64(piece.columns, 0x5555555555555555);
  const __m512i both = _mm512_maskz_loadu_epi8(spread, from);
  return _mm256_mask_mov_epi8(row, piece.columns, _mm512_maskz_cvtepi16_epi8(~__mmask32{0}, both));
}

template <size_t kStride>
TENON_VNNI void PackPixelsOf(const Int8Pixels& pixels, uint8_t* out, int32_t* column_sums) {
  const __m256i flip = _mm256_set1_epi8(pixels.is_signed ? static_cast<char>(0x80) : 0);
  const __m256i zero = _mm256_set1_epi8(static_cast<char>(pixels.zero));
  __m256i sums[4] = {};
  __m256i rows[4] = {};
  size_t filled = 0;
  const uint8_t* plane = pixels.planes;
  for (size_t channel = 0; channel < pixels.channels; ++channel, plane += pixels.plane_size) {
    const BytePiece* piece = pixels.pieces;
    for (size_t tap = 0; tap < pixels.taps; ++tap) {
      __m256i row = zero;
      for (size_t i = 0; i < pixels.pieces_per_tap; ++i, ++piece) {
        row = LoadPiece<kStride>(*piece, plane, row);
      }
      rows[filled++] = _mm256_xor_si256(row, flip);
      if (filled < 4) continue;
      PackGroup(rows, out, sums);
      out += 128;
      filled = 0;
    }
  }
  if (filled > 0) {
    for (; filled < 4; ++filled) rows[filled] = _mm256_setzero_si256();
    PackGroup(rows, out, sums);
  }
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(column_sums) + i, sums[i]);
  }
}

void PackPixels(const Int8Pixels& pixels, uint8_t* out, int32_t* column_sums) {
  const auto pack = pixels.stride == 1 ? &PackPixelsOf<1> : &PackPixelsOf<2>;
  pack(pixels, out, column_sums);
}

#undef TENON_VNNI

template <size_t... kRows>
constexpr auto TileFunctions(std::index_sequence<kRows...>) {
  return std::array{&RunTile<kRows + 1>...};
}

void RunAnyTile(const void* a, const uint8_t* panel, size_t depth, size_t rows, int32_t* sums) {
  static constexpr auto kFunctions = TileFunctions(std::make_index_sequence<kMaxInt8TileRows>());
  kFunctions[rows - 1](static_cast<const int8_t*>(a), panel, depth, sums);
}

}  // namespace

VnniFunctions FindVnni(Int8TileShape* shape) {
  if (!__builtin_cpu_supports("avx512vnni") || !__builtin_cpu_supports("bmi2")) return {};
  *shape = {.mr = kMaxInt8TileRows, .nr = 32, .group = 4, .a_bytes = 1};
  return {&RunAnyTile, &PackWholeRows, &PackWholePanel, &SumRowInPlace, &StoreTile, &PackPixels};
}

#else

VnniFunctions FindVnni(Int8TileShape*) { return {}; }

#endif

}  // namespace tenon::kernels
