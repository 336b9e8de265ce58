// Products of int8 and uint8 matrices with AVX2: bytes of A are brought to [0, 255], those of B to
// [-128, 127], and multiplied as bytes where their sums of two cannot saturate.
#include "kernels/gemm/gemm_int8_tile.h"

#if defined(__x86_64__)

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "kernels/gemm/rests_avx2.h"

namespace tenon::kernels {
namespace {

constexpr size_t kRows = 6;
constexpr size_t kColumns = 2 * kRestColumns;
constexpr size_t kGroup = 4;
constexpr size_t kQuadBytes = kGroup * kColumns;
static_assert(kRows <= kMaxInt8TileRows && kColumns <= kMaxInt8TileColumns);

// After a panel: the sums of its columns, and the rests of its two vectors.
constexpr size_t SumsBytes() { return kColumns * sizeof(int32_t); }
const std::byte* RestMemory(const uint8_t* panel, size_t depth) {
  return reinterpret_cast<const std::byte*>(panel + depth * kColumns + SumsBytes());
}
std::array<Rests, 2> RestsOf(const uint8_t* panel, size_t depth) {
  const std::byte* const rests = RestMemory(panel, depth);
  const size_t quads = depth / kGroup;
  return {Rests(rests, quads), Rests(rests + Rests::Bytes(quads), quads)};
}

template <size_t kTileRows>
TENON_AVX2 void StoreSums(const __m256i (&acc)[kTileRows][2], int32_t* sums) {
#pragma GCC unroll 6
  for (size_t r = 0; r < kTileRows; ++r) {
    auto* const into = reinterpret_cast<__m256i*>(sums + r * kColumns);
    _mm256_storeu_si256(into, acc[r][0]);
    _mm256_storeu_si256(into + 1, acc[r][1]);
  }
}

template <size_t kTileRows>
TENON_AVX2 void RunBytes(const uint8_t* a, const uint8_t* panel, size_t depth, int32_t* sums) {
  __m256i acc[kTileRows][2];
#pragma GCC unroll 6
  for (size_t r = 0; r < kTileRows; ++r) acc[r][0] = acc[r][1] = _mm256_setzero_si256();
  const std::array<Rests, 2> rests = RestsOf(panel, depth);
  const uint8_t* quads = panel;
  size_t p = 0;
  if (rests[0].allow_pairs() && rests[1].allow_pairs()) {
    for (; p + 2 * kGroup <= depth; p += 2 * kGroup, quads += 2 * kQuadBytes) {
#pragma GCC unroll 6
      for (size_t r = 0; r < kTileRows; ++r) {
        const __m256i first = BroadcastQuad(a + r * depth + p);
        const __m256i second = BroadcastQuad(a + r * depth + p + kGroup);
#pragma GCC unroll 2
        for (size_t v = 0; v < 2; ++v) {
          const uint8_t* const at = quads + v * kRestVector;
          acc[r][v] =
              AddTwoQuads(acc[r][v], first, LoadVector(at), second, LoadVector(at + kQuadBytes));
        }
      }
    }
  }
  for (; p < depth; p += kGroup, quads += kQuadBytes) {
#pragma GCC unroll 6
    for (size_t r = 0; r < kTileRows; ++r) {
      const __m256i quad = BroadcastQuad(a + r * depth + p);
      acc[r][0] = AddQuads(acc[r][0], quad, LoadVector(quads));
      acc[r][1] = AddQuads(acc[r][1], quad, LoadVector(quads + kRestVector));
    }
  }
#pragma GCC unroll 2
  for (size_t v = 0; v < 2; ++v) {
    for (size_t i = 0; i < rests[v].count(); ++i) {
      const uint8_t* const at = a + rests[v].quad(i) * kGroup;
      const __m256i rest = LoadVector(rests[v].weights(i));
#pragma GCC unroll 6
      for (size_t r = 0; r < kTileRows; ++r) {
        acc[r][v] = AddQuads(acc[r][v], BroadcastQuad(at + r * depth), rest);
      }
    }
  }
  StoreSums(acc, sums);
}

// The same for rows of words and panels with too many rests, whose pairs are joined.
template <size_t kTileRows>
TENON_AVX2 void RunWords(const int16_t* a, const uint8_t* panel, size_t depth, int32_t* sums) {
  __m256i acc[kTileRows][2];
#pragma GCC unroll 6
  for (size_t r = 0; r < kTileRows; ++r) acc[r][0] = acc[r][1] = _mm256_setzero_si256();
  for (size_t p = 0; p < depth; p += 2, panel += 2 * kColumns) {
    const __m256i low = WordsAt(panel), high = WordsAt(panel + kColumns);
#pragma GCC unroll 6
    for (size_t r = 0; r < kTileRows; ++r) {
      const __m256i pair = BroadcastQuad(a + r * depth + p);
      acc[r][0] = _mm256_add_epi32(acc[r][0], _mm256_madd_epi16(pair, low));
      acc[r][1] = _mm256_add_epi32(acc[r][1], _mm256_madd_epi16(pair, high));
    }
  }
  StoreSums(acc, sums);
}

bool ReadsWords(const uint8_t* panel, size_t depth) {
  return RestsOf(panel, depth)[0].are_too_many();
}

template <size_t... kTileRows>
void RunTileOf(std::index_sequence<kTileRows...>, const void* a, const uint8_t* panel, size_t depth,
               size_t rows, int32_t* sums) {
  static constexpr std::array kBytes = {&RunBytes<kTileRows + 1>...};
  static constexpr std::array kWords = {&RunWords<kTileRows + 1>...};
  if (ReadsWords(panel, depth)) {
    kWords[rows - 1](static_cast<const int16_t*>(a), panel, depth, sums);
  } else {
    kBytes[rows - 1](static_cast<const uint8_t*>(a), panel, depth, sums);
  }
}

void RunTile(const void* a, const uint8_t* panel, size_t depth, size_t rows, int32_t* sums) {
  RunTileOf(std::make_index_sequence<kRows>(), a, panel, depth, rows, sums);
}

void WidenRows(const void* a, size_t count, void* words) {
  WidenBytes(static_cast<const uint8_t*>(a), count, static_cast<int16_t*>(words));
}

TENON_AVX2 int32_t PackRow(const uint8_t* from, size_t k, uint8_t flip_byte, uint8_t* out) {
  const __m256i flip = _mm256_set1_epi8(static_cast<char>(flip_byte));
  __m256i sums = _mm256_setzero_si256();
  size_t p = 0;
  for (; p + 32 <= k; p += 32) {
    const __m256i bytes = _mm256_xor_si256(LoadVector(from + p), flip);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + p), bytes);
    sums = _mm256_add_epi64(sums, _mm256_sad_epu8(bytes, _mm256_setzero_si256()));
  }
  int64_t parts[4];
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(parts), sums);
  int64_t sum = parts[0] + parts[1] + parts[2] + parts[3];
  for (; p < k; ++p) sum += out[p] = from[p] ^ flip_byte;
  return static_cast<int32_t>(sum);
}

void PackRows(const Int8TileShape& shape, const Int8Matrix& a, size_t rows, size_t k, void* into,
              int32_t* row_sums) {
  const size_t depth = shape.Depth(k);
  const uint8_t flip = a.is_signed ? 0x80 : 0;
  auto* out = static_cast<uint8_t*>(into);
  for (size_t i = 0; i < rows; ++i, out += depth) {
    const uint8_t* const from = a.data + i * a.row_stride;
    if (a.column_stride == 1) {
      row_sums[i] = PackRow(from, k, flip, out);
    } else {
      for (size_t p = 0; p < k; ++p) out[p] = from[p * a.column_stride];
      row_sums[i] = PackRow(out, k, flip, out);
    }
    std::fill(out + k, out + depth, uint8_t{0});
  }
}

// Four rows of 16 columns.
using QuadRows = uint8_t[kGroup][kColumns];

// Rows p to p + 3 of B, signed; zeros beyond the matrix.
void GatherQuad(const Int8Matrix& b, size_t columns, size_t k, size_t p, QuadRows& rows) {
  const uint8_t flip = b.is_signed ? 0 : 0x80;
  const uint8_t* const from = b.data + p * b.row_stride;
  std::memset(rows, 0, sizeof(rows));
  for (size_t g = 0; g < std::min(kGroup, k - p); ++g) {
    const uint8_t* const row = from + g * b.row_stride;
    for (size_t j = 0; j < columns; ++j) rows[g][j] = row[j * b.column_stride] ^ flip;
  }
}

struct QuadVectors {
  __m256i low, high;  // columns 0 to 7, and 8 to 15
};

TENON_AVX2 QuadVectors Interleave(__m128i r0, __m128i r1, __m128i r2, __m128i r3) {
  const __m128i low01 = _mm_unpacklo_epi8(r0, r1), high01 = _mm_unpackhi_epi8(r0, r1);
  const __m128i low23 = _mm_unpacklo_epi8(r2, r3), high23 = _mm_unpackhi_epi8(r2, r3);
  return {_mm256_set_m128i(_mm_unpackhi_epi16(low01, low23), _mm_unpacklo_epi16(low01, low23)),
          _mm256_set_m128i(_mm_unpackhi_epi16(high01, high23), _mm_unpacklo_epi16(high01, high23))};
}

TENON_AVX2 void PackPanel(const Int8TileShape& shape, const Int8Matrix& b, size_t columns, size_t k,
                          bool lasts, uint8_t* out, int32_t* column_sums) {
  const size_t depth = shape.Depth(k);
  const __m256i ones = _mm256_set1_epi8(1);
  const __m128i flip = _mm_set1_epi8(static_cast<char>(b.is_signed ? 0 : 0x80));
  const bool has_whole_rows = b.column_stride == 1 && columns == kColumns;
  __m256i sums[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
  for (size_t p = 0; p < k; p += kGroup) {
    QuadVectors quads;
    if (has_whole_rows && p + kGroup <= k) {
      const auto row = [&](size_t g) TENON_AVX2 __attribute__((always_inline)) {
        const uint8_t* const from = b.data + (p + g) * b.row_stride;
        return _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)), flip);
      };
      quads = Interleave(row(0), row(1), row(2), row(3));
    } else {
      alignas(16) QuadRows rows;
      GatherQuad(b, columns, k, p, rows);
      const auto* const row = reinterpret_cast<const __m128i*>(rows);
      quads = Interleave(row[0], row[1], row[2], row[3]);
    }
    sums[0] = AddQuads(sums[0], ones, quads.low);
    sums[1] = AddQuads(sums[1], ones, quads.high);
    auto* const into = reinterpret_cast<__m256i*>(out + p * kColumns);
    _mm256_storeu_si256(into, quads.low);
    _mm256_storeu_si256(into + 1, quads.high);
  }
  FitPanel(reinterpret_cast<int8_t*>(out), depth / kGroup, 2, RestMemory(out, depth), lasts);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(column_sums), sums[0]);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(column_sums) + 1, sums[1]);
}

size_t RestBytes(size_t depth) { return 2 * Rests::Bytes(depth / kGroup); }

}  // namespace

void UseAvx2Bytes(Int8GemmTable* table) {
  table->shape = {
      .mr = kRows, .nr = kColumns, .group = kGroup, .a_bytes = 1, .a_is_unsigned = true};
  table->run_tile = &RunTile;
  table->pack_rows = &PackRows;
  table->pack_panel = &PackPanel;
  table->pack_whole_panel = nullptr;
  table->rest_bytes = &RestBytes;
  table->reads_words = &ReadsWords;
  table->widen_rows = &WidenRows;
}

}  // namespace tenon::kernels

#endif
