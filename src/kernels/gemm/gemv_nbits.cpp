#include "kernels/gemm/gemv_nbits.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/gemv_nbits.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/dispatch.h"

#ifndef TENON_KERNELS_GEMV_NBITS_TABLE
#define TENON_KERNELS_GEMV_NBITS_TABLE
namespace tenon::kernels {

// A vector is arranged in units for `lanes` bytes of the matrix: first the elements that meet the
// lowest bits of these bytes, then those of the next bits. After all units follow, for each block,
// the sums of its elements in `lanes` lanes.
struct NBitsGemvTable {
  // For blocks of that many bytes.
  size_t (*lanes)(size_t block_bytes);
  void (*run)(const NBitsMatrix& w, const float* arranged, const float* bias, size_t first,
              size_t count, float* y);
  void (*unpack)(const NBitsMatrix& w, size_t row, float* out);
};

}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// The highest number of lanes that works for any block of at least four bytes.
constexpr size_t kMostLanes = std::min<size_t>(16, HWY_MAX_BYTES / sizeof(float));

size_t LanesFor(size_t block_bytes) { return std::min(kMostLanes, block_bytes); }

// Adds up the products of one unit: the elements of one byte in each lane.
template <size_t kBits, size_t kPart = 0, class D, class V, class Bytes>
HWY_INLINE V AddUnit(D d, Bytes bytes, const float* HWY_RESTRICT x, V sum) {
  const hn::RebindToSigned<D> di;
  if constexpr (kPart * kBits == 8) {
    return sum;
  } else {
    auto element = hn::ShiftRight<kPart * kBits>(bytes);
    if constexpr ((kPart + 1) * kBits < 8) {
      element = hn::And(element, hn::Set(di, (1 << kBits) - 1));
    }
    sum = hn::MulAdd(hn::ConvertTo(d, element), hn::LoadU(d, x + kPart * hn::Lanes(d)), sum);
    return AddUnit<kBits, kPart + 1>(d, bytes, x, sum);
  }
}

// kRows rows of the matrix at once share the loads of x and hide the latency of the sums.
template <size_t kBits, size_t kLanes, size_t kRows>
void RunRows(const NBitsMatrix& w, const float* HWY_RESTRICT arranged, size_t row, float* y) {
  const hn::CappedTag<float, kLanes> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<uint8_t, decltype(d)> db;
  using V = hn::Vec<decltype(d)>;
  const size_t blocks = w.blocks(), block_bytes = w.block_size * kBits / 8;
  const size_t row_bytes = blocks * block_bytes;
  const float* HWY_RESTRICT block_sums = arranged + blocks * w.block_size;
  const uint8_t* HWY_RESTRICT bytes = w.data + row * row_bytes;
  V total[kRows];
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) total[r] = hn::Zero(d);
  for (size_t block = 0; block < blocks; ++block) {
    const V x_sum = hn::LoadU(d, block_sums + block * kLanes);
    V sum[kRows];
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
      sum[r] = hn::Mul(x_sum, hn::Set(d, -w.ZeroPoint(row + r, block)));
    }
    for (size_t i = 0; i < block_bytes; i += kLanes) {
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) {
        const auto unit = hn::PromoteTo(di, hn::LoadU(db, bytes + r * row_bytes + i));
        sum[r] = AddUnit<kBits>(d, unit, arranged + i * (8 / kBits), sum[r]);
      }
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
      const auto scale = hn::Set(d, w.Scale(row + r, block));
      total[r] = hn::MulAdd(sum[r], scale, total[r]);
    }
    bytes += block_bytes;
    arranged += w.block_size;
  }
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) y[r] = hn::GetLane(hn::SumOfLanes(d, total[r]));
}

template <size_t kBits, size_t kLanes>
void RunRange(const NBitsMatrix& w, const float* arranged, const float* bias, size_t first,
              size_t count, float* y) {
  constexpr size_t kRows = 4;
  size_t row = first;
  for (; row + kRows <= first + count; row += kRows) {
    RunRows<kBits, kLanes, kRows>(w, arranged, row, y + row);
  }
  for (; row < first + count; ++row) RunRows<kBits, kLanes, 1>(w, arranged, row, y + row);
  for (size_t j = first; bias && j < first + count; ++j) y[j] += bias[j];
}

template <size_t kLanes>
void RunBits(const NBitsMatrix& w, const float* arranged, const float* bias, size_t first,
             size_t count, float* y) {
  switch (w.bits) {
    case 2:
      return RunRange<2, kLanes>(w, arranged, bias, first, count, y);
    case 4:
      return RunRange<4, kLanes>(w, arranged, bias, first, count, y);
    default:
      return RunRange<8, kLanes>(w, arranged, bias, first, count, y);
  }
}

void Run(const NBitsMatrix& w, const float* arranged, const float* bias, size_t first, size_t count,
         float* y) {
  switch (LanesFor(w.block_size * w.bits / 8)) {
    case 4:
      return RunBits<4>(w, arranged, bias, first, count, y);
    case 8:
      return RunBits<std::min<size_t>(8, kMostLanes)>(w, arranged, bias, first, count, y);
    default:
      return RunBits<kMostLanes>(w, arranged, bias, first, count, y);
  }
}

template <size_t kBits, size_t kPart, class D, class Bytes>
HWY_INLINE hn::Vec<D> UnpackPart(D d, Bytes bytes, hn::Vec<D> zero, hn::Vec<D> scale) {
  const hn::RebindToSigned<D> di;
  const auto element = hn::And(hn::ShiftRight<kPart * kBits>(bytes), hn::Set(di, (1 << kBits) - 1));
  return hn::Mul(hn::Sub(hn::ConvertTo(d, element), zero), scale);
}

template <size_t kBits, size_t kLanes>
void UnpackRow(const NBitsMatrix& w, size_t row, float* HWY_RESTRICT out) {
  const hn::CappedTag<float, kLanes> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<uint8_t, decltype(d)> db;
  const size_t blocks = w.blocks(), block_bytes = w.block_size * kBits / 8;
  const uint8_t* HWY_RESTRICT bytes = w.data + row * blocks * block_bytes;
  for (size_t block = 0; block < blocks; ++block, bytes += block_bytes) {
    const auto zero = hn::Set(d, w.ZeroPoint(row, block));
    const auto scale = hn::Set(d, w.Scale(row, block));
    for (size_t i = 0; i < block_bytes; i += kLanes, out += kLanes * 8 / kBits) {
      const auto unit = hn::PromoteTo(di, hn::LoadU(db, bytes + i));
      const auto v0 = UnpackPart<kBits, 0>(d, unit, zero, scale);
      if constexpr (kBits == 8) {
        hn::StoreU(v0, d, out);
      } else if constexpr (kBits == 4) {
        hn::StoreInterleaved2(v0, UnpackPart<kBits, 1>(d, unit, zero, scale), d, out);
      } else {
        hn::StoreInterleaved4(v0, UnpackPart<kBits, 1>(d, unit, zero, scale),
                              UnpackPart<kBits, 2>(d, unit, zero, scale),
                              UnpackPart<kBits, 3>(d, unit, zero, scale), d, out);
      }
    }
  }
}

template <size_t kLanes>
void UnpackBits(const NBitsMatrix& w, size_t row, float* out) {
  switch (w.bits) {
    case 2:
      return UnpackRow<2, kLanes>(w, row, out);
    case 4:
      return UnpackRow<4, kLanes>(w, row, out);
    default:
      return UnpackRow<8, kLanes>(w, row, out);
  }
}

void Unpack(const NBitsMatrix& w, size_t row, float* out) {
  switch (LanesFor(w.block_size * w.bits / 8)) {
    case 4:
      return UnpackBits<4>(w, row, out);
    case 8:
      return UnpackBits<std::min<size_t>(8, kMostLanes)>(w, row, out);
    default:
      return UnpackBits<kMostLanes>(w, row, out);
  }
}

}  // namespace

const NBitsGemvTable kNBitsGemvTable = {&LanesFor, &Run, &Unpack};

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::kernels {
namespace {

const NBitsGemvTable& Active() { return TENON_SELECT_TABLE(NBitsGemvTable, kNBitsGemvTable); }

}  // namespace

size_t ArrangedNBitsSize(const NBitsMatrix& w) {
  return w.blocks() * (w.block_size + Active().lanes(w.block_size * w.bits / 8));
}

void ArrangeNBitsVector(const NBitsMatrix& w, const float* x, float* arranged) {
  const size_t parts = 8 / w.bits, lanes = Active().lanes(w.block_size * w.bits / 8);
  float* sums = arranged + w.blocks() * w.block_size;
  for (size_t block = 0; block < w.blocks(); ++block, sums += lanes) {
    std::fill_n(sums, lanes, 0.0f);
    const size_t end = std::min(w.k, (block + 1) * w.block_size);
    for (size_t unit = block * w.block_size; unit < (block + 1) * w.block_size;
         unit += parts * lanes) {
      for (size_t part = 0; part < parts; ++part, arranged += lanes) {
        for (size_t lane = 0; lane < lanes; ++lane) {
          const size_t at = unit + lane * parts + part;
          arranged[lane] = at < end ? x[at] : 0;
          sums[lane] += arranged[lane];
        }
      }
    }
  }
}

void RunNBitsGemv(const NBitsMatrix& w, const float* arranged, const float* bias, size_t first,
                  size_t count, float* y) {
  Active().run(w, arranged, bias, first, count, y);
}

void UnpackNBitsRow(const NBitsMatrix& w, size_t row, float* out) { Active().unpack(w, row, out); }

}  // namespace tenon::kernels
#endif
