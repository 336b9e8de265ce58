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

struct Bf16Grid {
  size_t row_tasks, column_tasks;
};

Bf16Grid GridOf(const GemmSizes& s) {
  constexpr double kTaskCost = 16e6;  // multiply-adds
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

// ---- A ----

// The first and the second part of 32 elements of a row; false if some are not finite.
struct RowParts {
  __m512i first, second, finite;
};
TENON_BF16 RowParts SplitRow(__m512 low, __m512 high) {
  RowParts parts;
  parts.first = RoundToBf16(low, high);
  const __m256i low_half = _mm512_maskz_extracti64x4_epi64(0xff, parts.first, 0);
  const __m256i high_half = _mm512_maskz_extracti64x4_epi64(0xff, parts.first, 1);
  parts.second =
      RoundToBf16(Rest(low, ToHighHalves(_mm512_maskz_cvtepu16_epi32(kAllLanes, low_half))),
                  Rest(high, ToHighHalves(_mm512_maskz_cvtepu16_epi32(kAllLanes, high_half))));
  parts.finite = _mm512_maskz_mov_epi16(_knot_mask32(NotFinite(parts.first)), parts.first);
  return parts;
}

// Loads `count` <= 16 elements, `stride` apart.
TENON_BF16 __m512 LoadElements(const float* from, size_t stride, size_t count) {
  if (stride == 1) return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), from);
  alignas(64) float elements[16] = {};
  for (size_t i = 0; i < count; ++i) std::memcpy(elements + i, from + i * stride, sizeof(float));
  return _mm512_load_ps(elements);
}

TENON_BF16 void WriteGroup(const GemmMatrix& a, size_t rows, size_t k, Bf16Parts parts,
                           uint16_t* group) {
  const size_t part_size = Steps(k) * kTile;
  uint16_t* const first = group + kHeaderElements;
  __mmask32 not_finite = 0;
  std::memset(group, 0, GroupElements(k, parts) * sizeof(*group) * (rows < kTileRows));
  for (size_t r = 0; r < rows; ++r) {
    const float* from = a.data + r * a.row_stride;
    uint16_t* to = first + r * kStep;
    for (size_t d = 0; d < k; d += kStep, from += kStep * a.column_stride, to += kTile) {
      const size_t low_count = std::min<size_t>(16, k - d);
      const size_t high_count = std::min<size_t>(16, k - d - low_count);
      const __m512 low = LoadElements(from, a.column_stride, low_count);
      const __m512 high = LoadElements(from + 16 * a.column_stride, a.column_stride, high_count);
      if (parts == Bf16Parts::kOne) {
        _mm512_storeu_si512(to, RoundToBf16(low, high));
        continue;
      }
      const RowParts row = SplitRow(low, high);
      _mm512_storeu_si512(to, row.first);
      _mm512_storeu_si512(to + part_size, row.second);
      _mm512_storeu_si512(to + 2 * part_size, row.finite);
      not_finite |= NotFinite(row.first);
    }
  }
  group[0] = not_finite == 0;
}

// ---- B ----

// Copies up to 32 x 32 elements of B to `block`, whose other elements are zero.
void CopyToBlock(const GemmMatrix& b, size_t depth, size_t columns, float (&block)[kStep][kPanel]) {
  if (depth < kStep || columns < kPanel) std::memset(block, 0, sizeof(block));
  if (b.column_stride == 1) {
    for (size_t i = 0; i < depth; ++i) {
      std::memcpy(block[i], static_cast<const void*>(b.data + i * b.row_stride),
                  columns * sizeof(float));
    }
    return;
  }
  for (size_t j = 0; j < columns; ++j) {
    const float* column = b.data + j * b.column_stride;
    for (size_t i = 0; i < depth; ++i) {
      std::memcpy(&block[i][j], static_cast<const void*>(column + i * b.row_stride), sizeof(float));
    }
  }
}

TENON_BF16 void PackPanel(const GemmMatrix& b, size_t columns, size_t k, Bf16Parts parts,
                          uint16_t* out) {
  const size_t part_size = Steps(k) * 2 * kTile;
  alignas(64) float block[kStep][kPanel];
  for (size_t d = 0; d < k; d += kStep, out += 2 * kTile) {
    const GemmMatrix corner = {b.data + d * b.row_stride, b.row_stride, b.column_stride};
    CopyToBlock(corner, std::min(kStep, k - d), columns, block);
    for (size_t half = 0; half < 2; ++half) {
      for (size_t i = 0; i < kStep; i += 2) {
        uint16_t* to = out + i * kPanel + half * kLine;
        const __m512 even = _mm512_load_ps(block[i] + 16 * half);
        const __m512 odd = _mm512_load_ps(block[i + 1] + 16 * half);
        const __m512i first = RoundToBf16Pairs(even, odd);
        _mm512_storeu_si512(to, first);
        if (parts == Bf16Parts::kOne) continue;
        const __m512i odd_bits = _mm512_set1_epi32(static_cast<int32_t>(0xffff0000u));
        _mm512_storeu_si512(to + part_size,
                            RoundToBf16Pairs(Rest(even, ToHighHalves(first)),
                                             Rest(odd, _mm512_and_si512(first, odd_bits))));
      }
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
void MultiplyFewRows(const GemmArgs& args, const Activation& activation, const uint16_t* a,
                     const uint16_t* packed_b, GemmRange panels) {
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
    StoreGemmSums(args, activation, 0, column, m, std::min(count * kPanel, n - column), sums,
                  count * kPanel);
    p += count;
  }
}

}  // namespace

bool IsBf16GemmFast(Bf16Parts parts) {
  return HasDotProducts() && (parts == Bf16Parts::kOne || HasTiles());
}

void RunPackBf16GemmBTask(const GemmMatrix& b, size_t n, size_t k, Bf16Parts parts, size_t task,
                          void* packed) {
  const size_t column = task * kPanel;
  const GemmMatrix corner = {b.data + column * b.column_stride, b.row_stride, b.column_stride};
  PackPanel(corner, std::min(kPanel, n - column), k, parts,
            static_cast<uint16_t*>(packed) + task * PanelElements(k, parts));
}

void RunBf16GemmRowsTask(const GemmMatrix& a, const GemmSizes& sizes, Bf16Parts parts, size_t task,
                         void* rows) {
  const size_t group_size = GroupElements(sizes.k, parts);
  const size_t end = std::min(Groups(sizes.m), (task + 1) * kGroupsPerRowsTask);
  for (size_t group = task * kGroupsPerRowsTask; group < end; ++group) {
    const size_t row = group * kTileRows;
    const GemmMatrix corner = {a.data + row * a.row_stride, a.row_stride, a.column_stride};
    WriteGroup(corner, std::min(kTileRows, sizes.m - row), sizes.k, parts,
               static_cast<uint16_t*>(rows) + group * group_size);
  }
}

void RunBf16GemmTask(const GemmArgs& args, Bf16Parts parts, const void* rows, const void* packed_b,
                     size_t task) {
  const auto [m, n, k] = args.sizes;
  const Bf16Grid grid = GridOf(args.sizes);
  const GemmRange groups = GemmPart(Groups(m), grid.row_tasks, task % grid.row_tasks);
  const GemmRange panels = GemmPart(DivideUp(n, kPanel), grid.column_tasks, task / grid.row_tasks);
  const Activation activation(args.epilogue.activation);
  const TileScope tiles;
  if (!tiles.has() && m <= kFewRows) {
    const auto* a = static_cast<const uint16_t*>(rows) + kHeaderElements;
    const auto* b = static_cast<const uint16_t*>(packed_b);
    if (m == 1) return MultiplyFewRows<1>(args, activation, a, b, panels);
    if (m == 2) return MultiplyFewRows<2>(args, activation, a, b, panels);
    return MultiplyFewRows<kFewRows>(args, activation, a, b, panels);
  }
  alignas(64) float sums[2 * kTileRows * kPanel];
  const size_t group_size = GroupElements(k, parts);
  for (size_t p = panels.begin; p < panels.end && !StopSignal::CutsCurrent(); ++p) {
    const auto* b = static_cast<const uint16_t*>(packed_b) + p * PanelElements(k, parts);
    const size_t column = p * kPanel;
    for (size_t g = groups.begin; g < groups.end; g += 2) {
      const auto* a = static_cast<const uint16_t*>(rows) + g * group_size;
      const size_t count = std::min<size_t>(2, groups.end - g);
      const size_t row = g * kTileRows;
      const size_t used = std::min(count * kTileRows, m - row);
      tiles.Sum(PassesOf(a, a + (count - 1) * group_size, b, k, parts), used, Steps(k), sums);
      StoreGemmSums(args, activation, row, column, used, std::min(kPanel, n - column), sums,
                    kPanel);
    }
  }
}

#else

bool IsBf16GemmFast(Bf16Parts) { return false; }
void RunPackBf16GemmBTask(const GemmMatrix&, size_t, size_t, Bf16Parts, size_t, void*) {}
void RunBf16GemmRowsTask(const GemmMatrix&, const GemmSizes&, Bf16Parts, size_t, void*) {}
void RunBf16GemmTask(const GemmArgs&, Bf16Parts, const void*, const void*, size_t) {}

#endif

size_t PackedBf16GemmBSize(size_t n, size_t k, Bf16Parts parts) {
  return DivideUp(n, kPanel) * PanelElements(k, parts) * sizeof(uint16_t);
}

size_t PackBf16GemmBTaskCount(size_t n) { return DivideUp(n, kPanel); }

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
