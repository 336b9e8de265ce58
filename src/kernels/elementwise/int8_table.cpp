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
  void (*look_up)(const uint8_t* table, const uint8_t* x, size_t n, uint8_t* y);
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
void LookUp(const uint8_t* table, const uint8_t* x, size_t n, uint8_t* y) {
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

}  // namespace

const Int8TableTable kInt8TableTable = {&LookUp};

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::kernels {

void LookUpInt8(const uint8_t* table, const uint8_t* x, size_t n, uint8_t* y) {
  TENON_SELECT_TABLE(Int8TableTable, kInt8TableTable).look_up(table, x, n, y);
}

}  // namespace tenon::kernels
#endif
