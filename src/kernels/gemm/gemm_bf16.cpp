#include "kernels/gemm/gemm_bf16.h"

#include <cstdint>
#include <cstring>

#include "base/stop_signal.h"
#include "kernels/dispatch.h"
#include "kernels/gemm/gemm_grid.h"
#include "kernels/gemm/gemm_store.h"

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>

#include "kernels/bf16_avx512.h"
#include "kernels/transpose_avx512.h"
#endif

namespace tenon::kernels {
namespace {

// Both forms are sequences of tiles, in the order in which a product reads them: 16 rows of A with
// 32 elements of the depth each, or 16 columns of B with 32 elements of the depth, two of which are
// next to each other. A panel of B has two tiles for each step of the depth, whose lines alternate,
// so that it is read in one stream; a group of A's rows has one. All is padded with zeros.
constexpr size_t kTileRows = 16, kStep = 32, kPanel = 32;
constexpr size_t kTile = kTileRows * kStep;  // elements

// Groups in a block of A, which stays in the L2 cache while panels of B pass by.
constexpr size_t kBlockGroups = 8;
constexpr size_t kGroupsPerRowsTask = 4;

size_t Steps(size_t k) { return DivideUp(k, kStep); }
size_t Groups(size_t m) { return DivideUp(m, kTileRows); }
size_t Count(Bf16Parts parts) { return static_cast<size_t>(parts); }

size_t PanelElements(size_t k, Bf16Parts parts) { return Count(parts) * Steps(k) * 2 * kTile; }

// A group has a line of 64 bytes, whose first byte says whether all its numbers are finite, and its
// parts. A group of two parts has room for a third one: the first with zeros for what is not
// finite. Infinity times the second part of B, which may be zero, would not be a number.
constexpr size_t kHeaderElements = 32;
size_t GroupElements(size_t k, Bf16Parts parts) {
  const size_t forms = parts == Bf16Parts::kTwo ? 3 : 1;
  return kHeaderElements + forms * Steps(k) * kTile;
}

// Panels that a task packs: some, so that it reads long pieces of B's rows, but not all.
size_t PanelsPerTask(size_t n) { return std::clamp<size_t>(n / kPanel / 4, 1, 8); }

struct Bf16Grid {
  size_t row_tasks, column_tasks;
};

Bf16Grid GridOf(const GemmSizes& s) {
  constexpr double kTaskCost = 2e6;  // multiply-adds, some 20 microseconds
  const size_t groups = Groups(s.m), panels = DivideUp(s.n, kPanel);
  const double cost =
      static_cast<double>(groups * kTileRows) * static_cast<double>(s.n) * static_cast<double>(s.k);
  const auto wanted = static_cast<size_t>(std::clamp(cost / kTaskCost, 1.0, 32.0));
  const size_t row_tasks = DivideUp(groups, kBlockGroups);
  if (row_tasks == 0) return {0, 0};
  return {row_tasks, std::clamp(DivideUp(wanted, row_tasks), std::min<size_t>(1, panels), panels)};
}

}  // namespace

#if defined(__x86_64__) && defined(__linux__)

namespace {

#define TENON_AMX __attribute__((target("amx-tile,amx-bf16")))

constexpr size_t kLine = 32;  // elements of a tile's line

// GCC 12 warns that the intrinsics without a mask read something uninitialised.
constexpr __mmask16 kAllLanes = 0xffff;

// Clang 14's __builtin_cpu_supports does not know the tiles.
bool HasTiles() {
  static const bool has = [] {
    constexpr uint32_t kBf16 = 1u << 22, kTile = 1u << 24;
    uint32_t a = 7, b, c = 0, d;
    asm volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
    if ((d & kBf16) == 0 || (d & kTile) == 0) return false;
    // The system gives a process the tiles' registers when it asks for them.
    constexpr long kRequestPermission = 0x1023, kTileData = 18;
    return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  }();
  return has;
}

bool HasDotProducts() {
  static const bool has = __builtin_cpu_supports("avx512bf16");
  return ActiveTarget() == Target::kAvx512 && has;
}

// The lanes of bfloat16 numbers that are infinite or not a number.
TENON_BF16 __mmask32 NotFinite(__m512i numbers) {
  const __m512i exponent = _mm512_set1_epi16(0x7f80);
  return _mm512_cmpeq_epi16_mask(_mm512_and_si512(numbers, exponent), exponent);
}

// A bfloat16 number is the high half of a float's bits.
TENON_BF16 __m512i ToHighHalves(__m512i lanes) {
  return _mm512_maskz_slli_epi32(kAllLanes, lanes, 16);
}

// What is left of `x` beside its first part; zero where that is not finite.
TENON_BF16 __m512 Rest(__m512 x, __m512i first_as_float) {
  const __m512 first = _mm512_castsi512_ps(first_as_float);
  return _mm512_maskz_sub_ps(_knot_mask16(_mm512_fpclass_ps_mask(first, 0x99)), x, first);
}

// ---- Tiles ----

// The bfloat16 numbers of 16 lines with 32 elements of the depth each: number i of line l is in
// half i % 2 of lane i / 2 of vector l, or after a transposition in that half of lane l of vector i
// / 2.
struct Lines {
  __m512i first[16], second[16];
};

// Rounds the floats of one line, or of two elements of the depth; `second` is not set if there is
// one part.
TENON_BF16 void Split(__m512 low, __m512 high, Bf16Parts parts, __m512i& first, __m512i& second) {
  first = RoundToBf16(low, high);
  if (parts == Bf16Parts::kOne) return;
  const __m256i low_half = _mm512_maskz_extracti64x4_epi64(0xff, first, 0);
  const __m256i high_half = _mm512_maskz_extracti64x4_epi64(0xff, first, 1);
  second = RoundToBf16(Rest(low, ToHighHalves(_mm512_maskz_cvtepu16_epi32(kAllLanes, low_half))),
                       Rest(high, ToHighHalves(_mm512_maskz_cvtepu16_epi32(kAllLanes, high_half))));
}

constexpr __mmask16 FirstLanes(size_t count) {
  return static_cast<__mmask16>((1u << std::min<size_t>(count, 16)) - 1);
}

// 32 or fewer elements one after the other.
TENON_BF16 void LoadLine(const Bf16Matrix& m, size_t at, size_t count, Bf16Parts parts,
                         __m512i& first, __m512i& second) {
  if (m.is_bf16) {
    const auto mask = static_cast<__mmask32>((uint64_t{1} << count) - 1);
    first = _mm512_maskz_loadu_epi16(mask, static_cast<const uint16_t*>(m.data) + at);
    second = _mm512_setzero_si512();
    return;
  }
  const float* from = static_cast<const float*>(m.data) + at;
  const __m512 low = _mm512_maskz_loadu_ps(FirstLanes(count), from);
  const size_t rest = count - std::min<size_t>(count, 16);
  const __m512 high = rest ? _mm512_maskz_loadu_ps(FirstLanes(rest), from + 16) : __m512{};
  Split(low, high, parts, first, second);
}

// 16 or fewer elements one after the other, and those `stride` further on if `has_two`, which go
// next to them.
TENON_BF16 void LoadPairs(const Bf16Matrix& m, size_t at, size_t stride, bool has_two, size_t count,
                          Bf16Parts parts, __m512i& first, __m512i& second) {
  const __mmask16 mask = FirstLanes(count);
  if (m.is_bf16) {
    const uint16_t* from = static_cast<const uint16_t*>(m.data) + at;
    const __m512i even =
        _mm512_maskz_cvtepu16_epi32(kAllLanes, _mm256_maskz_loadu_epi16(mask, from));
    __m512i odd = _mm512_setzero_si512();
    if (has_two) {
      odd = _mm512_maskz_cvtepu16_epi32(kAllLanes, _mm256_maskz_loadu_epi16(mask, from + stride));
    }
    first = _mm512_or_si512(even, ToHighHalves(odd));
    second = _mm512_setzero_si512();
    return;
  }
  const float* from = static_cast<const float*>(m.data) + at;
  const __m512 even = _mm512_maskz_loadu_ps(mask, from);
  const __m512 odd = has_two ? _mm512_maskz_loadu_ps(mask, from + stride) : __m512{};
  Split(even, odd, parts, first, second);
  first = NextToEachOther(first);
  if (parts == Bf16Parts::kTwo) second = NextToEachOther(second);
}

// Elements of `m` on its way into tiles; element (line, d) is number line * line_stride + d *
// stride.
struct TileSource {
  const Bf16Matrix& m;
  size_t line_stride, stride;
};

// Copies elements that are next to each other in neither way to `copy`, [16][32].
template <class T>
void Gather(const TileSource& source, size_t at, size_t lines, size_t depth, T* copy) {
  const T* from = static_cast<const T*>(source.m.data) + at;
  for (size_t l = 0; l < lines; ++l) {
    for (size_t d = 0; d < depth; ++d) {
      std::memcpy(copy + l * kStep + d,
                  static_cast<const void*>(from + l * source.line_stride + d * source.stride),
                  sizeof(T));
    }
  }
}

// Fetches what the step after the next one reads. A processor does not foresee so many streams.
void PrefetchAfter(const TileSource& source, size_t at, size_t pieces, size_t piece_stride,
                   size_t step) {
  const size_t size = source.m.is_bf16 ? sizeof(uint16_t) : sizeof(float);
  const char* from = static_cast<const char*>(source.m.data) + (at + 2 * step) * size;
  for (size_t i = 0; i < pieces; ++i) {
    _mm_prefetch(from + i * piece_stride * size, _MM_HINT_T0);
    if (source.stride == 1) _mm_prefetch(from + i * piece_stride * size + 64, _MM_HINT_T0);
  }
}

// Loads up to 16 lines with up to 32 elements of the depth from element `at` on; all others are
// zero. Each vector is a line's if `by_line`, else a pair of the depth's.
TENON_BF16 void LoadLines(const TileSource& source, size_t at, size_t lines, size_t depth,
                          bool by_line, Bf16Parts parts, Lines& to) {
  const bool is_dense = source.stride == 1 || source.line_stride == 1;
  alignas(64) float copy[kTileRows * kStep];
  if (!is_dense) {
    Bf16Matrix gathered = source.m;
    gathered.data = copy;
    source.m.is_bf16 ? Gather(source, at, lines, depth, reinterpret_cast<uint16_t*>(copy))
                     : Gather(source, at, lines, depth, copy);
    return LoadLines({gathered, kStep, 1}, 0, lines, depth, by_line, parts, to);
  }
  const bool is_by_line = source.stride == 1;
  PrefetchAfter(source, at, is_by_line ? lines : depth,
                is_by_line ? source.line_stride : source.stride, kStep * source.stride);
  for (size_t i = 0; i < 16; ++i) {
    to.first[i] = to.second[i] = _mm512_setzero_si512();
    if (is_by_line ? i >= lines : 2 * i >= depth) continue;
    if (is_by_line) {
      LoadLine(source.m, at + i * source.line_stride, depth, parts, to.first[i], to.second[i]);
    } else {
      LoadPairs(source.m, at + 2 * i * source.stride, source.stride, 2 * i + 1 < depth, lines,
                parts, to.first[i], to.second[i]);
    }
  }
  if (is_by_line == by_line) return;
  TransposeLanes(to.first);
  if (parts == Bf16Parts::kTwo) TransposeLanes(to.second);
}

TENON_BF16 void WriteGroup(const Bf16Matrix& a, size_t row, size_t rows, size_t k, Bf16Parts parts,
                           uint16_t* group) {
  const size_t part_size = Steps(k) * kTile;
  uint16_t* to = group + kHeaderElements;
  __mmask32 not_finite = 0;
  Lines lines;
  for (size_t d = 0; d < k; d += kStep, to += kTile) {
    LoadLines({a, a.row_stride, a.column_stride}, row * a.row_stride + d * a.column_stride, rows,
              std::min(kStep, k - d), true, parts, lines);
    for (size_t r = 0; r < kTileRows; ++r) {
      const __m512i first = lines.first[r];
      _mm512_storeu_si512(to + r * kStep, first);
      if (parts == Bf16Parts::kOne) continue;
      const __mmask32 odd = NotFinite(first);
      _mm512_storeu_si512(to + r * kStep + part_size, lines.second[r]);
      _mm512_storeu_si512(to + r * kStep + 2 * part_size,
                          _mm512_maskz_mov_epi16(_knot_mask32(odd), first));
      not_finite |= odd;
    }
  }
  std::memset(group, 0, kHeaderElements * sizeof(*group));
  group[0] = not_finite == 0;
}

// Columns [16 half, 16 half + 16) of B from depth d on.
TENON_BF16 void PackTile(const Bf16Matrix& b, size_t half, size_t d, size_t n, size_t k,
                         Bf16Parts parts, uint16_t* packed) {
  const size_t part_size = Steps(k) * 2 * kTile;
  const size_t column = std::min(n, half * 16);
  Lines lines;
  LoadLines({b, b.column_stride, b.row_stride}, column * b.column_stride + d * b.row_stride,
            std::min<size_t>(16, n - column), std::min(kStep, k - d), false, parts, lines);
  uint16_t* to = packed + half / 2 * PanelElements(k, parts) + d / kStep * 2 * kTile;
  for (size_t pair = 0; pair < 16; ++pair) {
    uint16_t* line = to + 2 * pair * kPanel + half % 2 * kLine;
    _mm512_storeu_si512(line, lines.first[pair]);
    if (parts == Bf16Parts::kTwo) _mm512_storeu_si512(line + part_size, lines.second[pair]);
  }
}

// Reads B in the order in which it lies in memory, as far as that goes.
void PackPanels(const Bf16Matrix& b, GemmRange panels, size_t n, size_t k, Bf16Parts parts,
                uint16_t* packed) {
  const size_t begin = 2 * panels.begin, end = 2 * panels.end;
  if (b.row_stride == 1) {
    for (size_t half = begin; half < end; ++half) {
      for (size_t d = 0; d < k; d += kStep) PackTile(b, half, d, n, k, parts, packed);
    }
    return;
  }
  for (size_t d = 0; d < k; d += kStep) {
    for (size_t half = begin; half < end; ++half) PackTile(b, half, d, n, k, parts, packed);
  }
}

// ---- C ----

// The most sums that are stored at once.
constexpr size_t kMostSums = 2 * kTileRows * kPanel;

// Adds the addend's elements from (row, column) on to rows x columns `sums`, `ld` apart.
TENON_BF16 void Add(const Bf16Addend& addend, size_t row, size_t column, size_t rows,
                    size_t columns, float* sums, size_t ld) {
  const __m512 scale = _mm512_set1_ps(addend.scale);
  for (size_t i = 0; i < rows; ++i) {
    const uint16_t* from =
        addend.data + (row + i) * addend.row_stride + column * addend.column_stride;
    for (size_t j = 0; j < columns; j += 16) {
      const __mmask16 mask = FirstLanes(columns - j);
      const __m256i numbers = addend.column_stride == 1
                                  ? _mm256_maskz_loadu_epi16(mask, from + j)
                                  : _mm256_set1_epi16(static_cast<int16_t>(*from));
      const __m512 floats =
          _mm512_castsi512_ps(ToHighHalves(_mm512_maskz_cvtepu16_epi32(kAllLanes, numbers)));
      float* to = sums + i * ld + j;
      const __m512 before = _mm512_maskz_loadu_ps(mask, to);
      _mm512_mask_storeu_ps(to, mask, _mm512_fmadd_ps(floats, scale, before));
    }
  }
}

// Elements of a C that is not sure to be in the L2 cache.
constexpr size_t kLargeC = 64 << 10;

// Fetches the lines of C that will be written, while the sums are computed.
void PrefetchC(const GemmArgs& args, const Bf16Output* output, size_t row, size_t column,
               size_t rows, size_t columns) {
  if (args.sizes.m * args.sizes.n < kLargeC) return;
  const size_t size = output ? sizeof(uint16_t) : sizeof(float);
  const char* c =
      output ? reinterpret_cast<const char*>(output->c) : reinterpret_cast<const char*>(args.c);
  for (size_t i = 0; i < rows; ++i) {
    const char* line = c + ((row + i) * args.ldc + column) * size;
    for (size_t byte = 0; byte < columns * size; byte += 64) __builtin_prefetch(line + byte, 1);
  }
}

// As StoreGemmSums, with sums that may be overwritten.
TENON_BF16 void StoreSums(const GemmArgs& args, const Bf16Output* output,
                          const Activation& activation, size_t row, size_t column, size_t rows,
                          size_t columns, float* sums, size_t ld) {
  if (output == nullptr) {
    return StoreGemmSums(args, activation, row, column, rows, columns, sums, ld);
  }
  alignas(64) float floats[kMostSums], addends[kMostSums];
  GemmArgs own;
  own.sizes = args.sizes;
  own.alpha = args.alpha;
  own.c = floats;
  own.ldc = ld;
  own.epilogue.activation = args.epilogue.activation;
  for (const Bf16Addend& addend : output->addends) {
    if (addend.data == nullptr) continue;
    if (own.epilogue.residual == nullptr) std::memset(addends, 0, rows * ld * sizeof(float));
    own.epilogue.residual = addends;
    own.epilogue.ldr = ld;
    Add(addend, row, column, rows, columns, addends, ld);
  }
  StoreGemmSums(own, activation, 0, 0, rows, columns, sums, ld);
  for (size_t i = 0; i < rows; ++i) {
    uint16_t* to = output->c + (row + i) * args.ldc + column;
    for (size_t j = 0; j < columns; j += 32) {
      const size_t count = std::min<size_t>(32, columns - j);
      const float* from = floats + i * ld + j;
      const __m512 low = _mm512_maskz_loadu_ps(FirstLanes(count), from);
      const __m512 high =
          count > 16 ? _mm512_maskz_loadu_ps(FirstLanes(count - 16), from + 16) : __m512{};
      const auto mask = static_cast<__mmask32>((uint64_t{1} << count) - 1);
      _mm512_mask_storeu_epi16(to + j, mask, RoundToBf16(low, high));
    }
  }
}

// ---- Sums ----

// One part of A's rows times one of B's panel. `group_stride` leads from a group to the next.
struct Pass {
  const uint16_t *a, *next_a, *b;
};
struct Passes {
  Pass pass[3];
  size_t count;
};

// The passes of the groups at `a` and after it, the smallest sums first.
Passes PassesOf(const uint16_t* a, const uint16_t* next, const uint16_t* b, size_t k,
                Bf16Parts parts) {
  const size_t part = Steps(k) * kTile;
  const auto first = [](const uint16_t* group) { return group + kHeaderElements; };
  const auto finite = [&](const uint16_t* group) {
    return first(group) + (group[0] ? 0 : 2 * part);
  };
  if (parts == Bf16Parts::kOne) return {{{first(a), first(next), b}}, 1};
  return {{{first(a) + part, first(next) + part, b},
           {finite(a), finite(next), b + 2 * part},
           {first(a), first(next), b}},
          3};
}

struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t unused[15] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

// sums: [16 kGroups][32].
template <size_t kGroups>
TENON_AMX void SumInTiles(const Passes& passes, size_t steps, float* sums) {
  constexpr size_t kLineBytes = kLine * sizeof(uint16_t);
  _tile_zero(0);
  _tile_zero(1);
  if constexpr (kGroups == 2) {
    _tile_zero(2);
    _tile_zero(3);
  }
  for (size_t p = 0; p < passes.count; ++p) {
    const uint16_t *a = passes.pass[p].a, *next_a = passes.pass[p].next_a, *b = passes.pass[p].b;
    for (size_t s = 0; s < steps; ++s, a += kTile, next_a += kTile, b += 2 * kTile) {
      _tile_loadd(4, a, kLineBytes);
      _tile_loadd(6, b, 2 * kLineBytes);
      _tile_loadd(7, b + kLine, 2 * kLineBytes);
      _tile_dpbf16ps(0, 4, 6);
      _tile_dpbf16ps(1, 4, 7);
      if constexpr (kGroups == 2) {
        _tile_loadd(5, next_a, kLineBytes);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
      }
    }
  }
  constexpr size_t kRowBytes = kPanel * sizeof(float);
  _tile_stored(0, sums, kRowBytes);
  _tile_stored(1, sums + 16, kRowBytes);
  if constexpr (kGroups == 2) {
    _tile_stored(2, sums + 16 * kPanel, kRowBytes);
    _tile_stored(3, sums + 16 * kPanel + 16, kRowBytes);
  }
}

// 8 rows at once, so that 16 sums and two vectors of B stay in registers.
TENON_BF16 void SumRows(const uint16_t* a, const uint16_t* b, size_t steps, __m512 (&sums)[8][2]) {
  for (size_t s = 0; s < steps; ++s, a += kTile, b += 2 * kTile) {
    for (size_t i = 0; i < kStep; i += 2) {
      const auto b0 = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + i * kPanel));
      const auto b1 = reinterpret_cast<__m512bh>(_mm512_loadu_si512(b + i * kPanel + kLine));
#pragma GCC unroll 8
      for (size_t r = 0; r < 8; ++r) {
        int32_t two;
        std::memcpy(&two, a + r * kStep + i, sizeof(two));
        const auto pair = reinterpret_cast<__m512bh>(_mm512_set1_epi32(two));
        sums[r][0] = _mm512_dpbf16_ps(sums[r][0], pair, b0);
        sums[r][1] = _mm512_dpbf16_ps(sums[r][1], pair, b1);
      }
    }
  }
}

// `rows` of the group are in use; the sums of the others are not written.
TENON_BF16 void SumGroup(const Passes& passes, bool is_next, size_t rows, size_t steps,
                         float* sums) {
  for (size_t half = 0; half * 8 < rows; ++half) {
    __m512 acc[8][2];
#pragma GCC unroll 8
    for (auto& row : acc) row[0] = row[1] = _mm512_setzero_ps();
    for (size_t p = 0; p < passes.count; ++p) {
      const uint16_t* a = is_next ? passes.pass[p].next_a : passes.pass[p].a;
      SumRows(a + half * 8 * kStep, passes.pass[p].b, steps, acc);
    }
#pragma GCC unroll 8
    for (size_t r = 0; r < 8; ++r) {
      _mm512_storeu_ps(sums + (half * 8 + r) * kPanel, acc[r][0]);
      _mm512_storeu_ps(sums + (half * 8 + r) * kPanel + 16, acc[r][1]);
    }
  }
}

// The first rows of a group with several panels at once, so that no sum waits for the one before.
// Each is added up as in SumRows. sums: [kRows][32 kPanels].
template <size_t kRows, size_t kPanels>
TENON_BF16 void SumFewRows(const uint16_t* a, const uint16_t* b, size_t panel_elements,
                           size_t steps, float* sums) {
  __m512 acc[kRows][2 * kPanels];
#pragma GCC unroll 4
  for (auto& row : acc) {
#pragma GCC unroll 8
    for (auto& sum : row) sum = _mm512_setzero_ps();
  }
  for (size_t s = 0; s < steps; ++s, a += kTile, b += 2 * kTile) {
    for (size_t i = 0; i < kStep; i += 2) {
      __m512bh pairs[kRows];
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) {
        int32_t two;
        std::memcpy(&two, a + r * kStep + i, sizeof(two));
        pairs[r] = reinterpret_cast<__m512bh>(_mm512_set1_epi32(two));
      }
#pragma GCC unroll 8
      for (size_t v = 0; v < 2 * kPanels; ++v) {
        const auto column = reinterpret_cast<__m512bh>(
            _mm512_loadu_si512(b + v / 2 * panel_elements + i * kPanel + v % 2 * kLine));
#pragma GCC unroll 4
        for (size_t r = 0; r < kRows; ++r)
          acc[r][v] = _mm512_dpbf16_ps(acc[r][v], pairs[r], column);
      }
    }
  }
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (size_t v = 0; v < 2 * kPanels; ++v) {
      _mm512_storeu_ps(sums + (r * 2 * kPanels + v) * 16, acc[r][v]);
    }
  }
}

constexpr size_t kFewRows = 4;

// Holds the tiles of this thread while a task runs.
class TileScope {
 public:
  TENON_AMX TileScope() : has_(HasTiles()) {
    static constexpr TileConfig kConfig;  // in memory: GCC 12 does not know that it is read
    if (has_) _tile_loadconfig(&kConfig);
  }
  TENON_AMX ~TileScope() {
    if (has_) _tile_release();
  }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;

  bool has() const { return has_; }

  // `rows` of one group or two.
  void Sum(const Passes& passes, size_t rows, size_t steps, float* sums) const {
    const size_t first = std::min(rows, kTileRows);
    if (has_) {
      rows > first ? SumInTiles<2>(passes, steps, sums) : SumInTiles<1>(passes, steps, sums);
    } else {
      SumGroup(passes, false, first, steps, sums);
      if (rows > first) SumGroup(passes, true, rows - first, steps, sums + kTileRows * kPanel);
    }
  }

 private:
  const bool has_;
};

#undef TENON_AMX

// Columns of a product of at most kRows rows, of one part each. a: the first group's rows.
template <size_t kRows>
void MultiplyFewRows(const GemmArgs& args, const Bf16Output* output, const Activation& activation,
                     const uint16_t* a, const uint16_t* packed_b, GemmRange panels) {
  // A cache gives several streams faster than one, memory does not.
  constexpr size_t kPanels = 4 / kRows, kElementsInCache = 512 << 10;
  const auto [m, n, k] = args.sizes;
  const size_t at_once = n * k <= kElementsInCache ? kPanels : 1;
  const size_t panel_elements = PanelElements(k, Bf16Parts::kOne);
  alignas(64) float sums[kRows * kPanels * kPanel];
  for (size_t p = panels.begin; p < panels.end && !StopSignal::CutsCurrent();) {
    const size_t count = panels.end - p >= at_once ? at_once : 1;
    const uint16_t* const b = packed_b + p * panel_elements;
    count == 1 ? SumFewRows<kRows, 1>(a, b, panel_elements, Steps(k), sums)
               : SumFewRows<kRows, kPanels>(a, b, panel_elements, Steps(k), sums);
    const size_t column = p * kPanel;
    StoreSums(args, output, activation, 0, column, m, std::min(count * kPanel, n - column), sums,
              count * kPanel);
    p += count;
  }
}

}  // namespace

bool IsBf16GemmFast(Bf16Parts parts) {
  return HasDotProducts() && (parts == Bf16Parts::kOne || HasTiles());
}

void RunPackBf16GemmBTask(const Bf16Matrix& b, size_t n, size_t k, Bf16Parts parts, size_t task,
                          void* packed) {
  const size_t first = task * PanelsPerTask(n);
  PackPanels(b, {first, std::min(first + PanelsPerTask(n), DivideUp(n, kPanel))}, n, k, parts,
             static_cast<uint16_t*>(packed));
}

void RunBf16GemmRowsTask(const Bf16Matrix& a, const GemmSizes& sizes, Bf16Parts parts, size_t task,
                         void* rows) {
  const size_t group_size = GroupElements(sizes.k, parts);
  const size_t end = std::min(Groups(sizes.m), (task + 1) * kGroupsPerRowsTask);
  for (size_t group = task * kGroupsPerRowsTask; group < end; ++group) {
    const size_t row = group * kTileRows;
    WriteGroup(a, row, std::min(kTileRows, sizes.m - row), sizes.k, parts,
               static_cast<uint16_t*>(rows) + group * group_size);
  }
}

void RunBf16GemmTask(const GemmArgs& args, Bf16Parts parts, const void* rows, const void* packed_b,
                     size_t task, const Bf16Output* output) {
  const auto [m, n, k] = args.sizes;
  const Bf16Grid grid = GridOf(args.sizes);
  const GemmRange groups = GemmPart(Groups(m), grid.row_tasks, task % grid.row_tasks);
  const GemmRange panels = GemmPart(DivideUp(n, kPanel), grid.column_tasks, task / grid.row_tasks);
  const Activation activation(args.epilogue.activation);
  const TileScope tiles;
  if (!tiles.has() && parts == Bf16Parts::kOne && m <= kFewRows) {
    const auto* a = static_cast<const uint16_t*>(rows) + kHeaderElements;
    const auto* b = static_cast<const uint16_t*>(packed_b);
    if (m == 1) return MultiplyFewRows<1>(args, output, activation, a, b, panels);
    if (m == 2) return MultiplyFewRows<2>(args, output, activation, a, b, panels);
    return MultiplyFewRows<kFewRows>(args, output, activation, a, b, panels);
  }
  alignas(64) float sums[kMostSums];
  const size_t group_size = GroupElements(k, parts);
  for (size_t p = panels.begin; p < panels.end && !StopSignal::CutsCurrent(); ++p) {
    const auto* b = static_cast<const uint16_t*>(packed_b) + p * PanelElements(k, parts);
    const size_t column = p * kPanel;
    for (size_t g = groups.begin; g < groups.end; g += 2) {
      const auto* a = static_cast<const uint16_t*>(rows) + g * group_size;
      const size_t count = std::min<size_t>(2, groups.end - g);
      const size_t row = g * kTileRows;
      const size_t used = std::min(count * kTileRows, m - row);
      const size_t columns = std::min(kPanel, n - column);
      PrefetchC(args, output, row, column, used, columns);
      tiles.Sum(PassesOf(a, a + (count - 1) * group_size, b, k, parts), used, Steps(k), sums);
      StoreSums(args, output, activation, row, column, used, columns, sums, kPanel);
    }
  }
}

#else

bool IsBf16GemmFast(Bf16Parts) { return false; }
void RunPackBf16GemmBTask(const Bf16Matrix&, size_t, size_t, Bf16Parts, size_t, void*) {}
void RunBf16GemmRowsTask(const Bf16Matrix&, const GemmSizes&, Bf16Parts, size_t, void*) {}
void RunBf16GemmTask(const GemmArgs&, Bf16Parts, const void*, const void*, size_t,
                     const Bf16Output*) {}

#endif

size_t PackedBf16GemmBSize(size_t n, size_t k, Bf16Parts parts) {
  return DivideUp(n, kPanel) * PanelElements(k, parts) * sizeof(uint16_t);
}

size_t PackBf16GemmBTaskCount(size_t n) { return DivideUp(n, kPanel * PanelsPerTask(n)); }

size_t Bf16GemmRowsSize(const GemmSizes& sizes, Bf16Parts parts) {
  return Groups(sizes.m) * GroupElements(sizes.k, parts) * sizeof(uint16_t);
}

size_t Bf16GemmRowsTaskCount(const GemmSizes& sizes) {
  return DivideUp(Groups(sizes.m), kGroupsPerRowsTask);
}

size_t Bf16GemmTaskCount(const GemmSizes& sizes) {
  const Bf16Grid grid = GridOf(sizes);
  return grid.row_tasks * grid.column_tasks;
}

}  // namespace tenon::kernels
