#include "kernels/elementwise/int8_table.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/int8_table.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/dispatch.h"

#ifndef TENON_KERNELS_INT8_TABLE_ONCE
#define TENON_KERNELS_INT8_TABLE_ONCE
namespace tenon::kernels {
struct Int8TableTable {
  void (*look_up)(const uint8_t* table, const uint8_t* x, size_t x_stride, size_t rows, size_t n,
                  uint8_t* y, size_t y_stride);
};
}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// An instruction looks up 16 elements of the table by four bits; the other four choose among the
// results of 16 of them.
void LookUpRow(const uint8_t* table, const uint8_t* x, size_t n, uint8_t* y) {
  constexpr size_t kPart = 16;
  const hn::ScalableTag<uint8_t> d;
  const size_t lanes = hn::Lanes(d);
  const auto low_bits = hn::Set(d, kPart - 1);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto v = hn::LoadU(d, x + i);
    const auto low = hn::And(v, low_bits), high = hn::AndNot(low_bits, v);
    auto found = hn::TableLookupBytes(hn::LoadDup128(d, table), low);
    for (size_t part = kPart; part < 256; part += kPart) {
      const auto other = hn::TableLookupBytes(hn::LoadDup128(d, table + part), low);
      const auto is_here = hn::Eq(high, hn::Set(d, static_cast<uint8_t>(part)));
      found = hn::IfThenElse(is_here, other, found);
    }
    hn::StoreU(found, d, y + i);
  }
  for (; i < n; ++i) y[i] = table[x[i]];
}

void LookUp(const uint8_t* table, const uint8_t* x, size_t x_stride, size_t rows, size_t n,
            uint8_t* y, size_t y_stride) {
  for (size_t row = 0; row < rows; ++row, x += x_stride, y += y_stride) LookUpRow(table, x, n, y);
}

}  // namespace

const Int8TableTable kInt8TableTable = {&LookUp};

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tenon::kernels {
namespace {

#if defined(__x86_64__)

// Instructions that look up 64 elements in 128.
__attribute__((target("avx512f,avx512bw,avx512vbmi"))) void LookUpIn128(
    const uint8_t* table, const uint8_t* x, size_t x_stride, size_t rows, size_t n, uint8_t* y,
    size_t y_stride) {
  const __m512i t0 = _mm512_loadu_si512(table), t1 = _mm512_loadu_si512(table + 64);
  const __m512i t2 = _mm512_loadu_si512(table + 128), t3 = _mm512_loadu_si512(table + 192);
  for (size_t row = 0; row < rows; ++row, x += x_stride, y += y_stride) {
    for (size_t i = 0; i < n; i += 64) {
      const __mmask64 here = n - i >= 64 ? ~uint64_t{0} : (uint64_t{1} << (n - i)) - 1;
      const __m512i v = _mm512_maskz_loadu_epi8(here, x + i);
      const __m512i low = _mm512_permutex2var_epi8(t0, v, t1);
      const __m512i high = _mm512_permutex2var_epi8(t2, v, t3);
      _mm512_mask_storeu_epi8(y + i, here, _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(v), high));
    }
  }
}

bool HasLookUpIn128() {
  static const bool has = __builtin_cpu_supports("avx512vbmi");
  return has && ActiveTarget() == Target::kAvx512;
}

#else

void LookUpIn128(const uint8_t*, const uint8_t*, size_t, size_t, size_t, uint8_t*, size_t) {}
bool HasLookUpIn128() { return false; }

#endif

}  // namespace

void LookUpInt8(const uint8_t* table, const uint8_t* x, size_t n, uint8_t* y) {
  LookUpInt8Rows(table, x, n, 1, n, y, n);
}

void LookUpInt8Rows(const uint8_t* table, const uint8_t* x, size_t x_stride, size_t rows, size_t n,
                    uint8_t* y, size_t y_stride) {
  if (HasLookUpIn128()) return LookUpIn128(table, x, x_stride, rows, n, y, y_stride);
  TENON_SELECT_TABLE(Int8TableTable, kInt8TableTable)
      .look_up(table, x, x_stride, rows, n, y, y_stride);
}

}  // namespace tenon::kernels
#endif
