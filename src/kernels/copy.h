// Copies between strided layouts: the common part of Slice, Concat, Pad, Expand, Split and
// Transpose. A plan is made once for a shape and run for any memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"

namespace tenon::kernels {

inline constexpr size_t kMaxCopyRank = 32;

// dst[i0 d0 + i1 d1 + ...] = src[i0 s0 + i1 s1 + ...] over all indices of a shape, reduced to the
// fewest loops: axes that are dense on both sides are merged into runs of bytes.
struct CopyPlan {
  struct Axis {
    size_t size;
    ptrdiff_t src;  // bytes
    ptrdiff_t dst;
  };
  enum class Method : uint8_t {
    kRuns,      // memcpy of `element` bytes
    kBlocks,    // dense bytes of dst, among which runs, and what they make up, are repeated
    kElements,  // one loop over `inner`
    kTiles,     // two loops: src is dense along `across`, dst along `inner`
  };
  Method method = Method::kRuns;
  size_t element = 0;  // bytes of a run, or of an element: 1, 2, 4, 8 or 16
  Axis inner{1, 0, 0};
  Axis across{1, 0, 0};
  size_t rank = 0;        // of the loops around it, the last axis fastest
  size_t block_rank = 0;  // of the axes of a block, which follow those of the loops
  std::array<Axis, kMaxCopyRank> outer{};
  // A plan is divided into units that may be run in any order and by any threads: every step of
  // the outer loops times `pieces` of the inner ones.
  size_t pieces = 1;
  size_t piece = 0;  // bytes of a run or block, elements of `inner`, or elements of `across`
  size_t units = 0;
  size_t grain = 1;  // units that make a task of reasonable size
};

// Strides are in elements of `element_size` bytes (1, 2, 4, 8 or 16), and may be 0 (repeat) or
// negative for src. The elements of dst are distinct.
// errors   kInvalidArgument  rank above kMaxCopyRank
Result<CopyPlan> MakeCopyPlan(std::span<const size_t> shape, std::span<const ptrdiff_t> src_strides,
                              std::span<const ptrdiff_t> dst_strides, size_t element_size);

// Runs the units [begin, end) of plan.units. src and dst point to the elements of index 0 and do
// not overlap; no alignment is needed. May be called from several threads at once.
void RunCopy(const CopyPlan& plan, const void* src, void* dst, size_t begin, size_t end);

// Repeats an element of 1, 2, 4, 8 or 16 bytes n times: constant padding, Expand of a scalar.
void Fill(const void* element, size_t element_size, void* dst, size_t n);

}  // namespace tenon::kernels
