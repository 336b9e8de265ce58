#include "kernels/copy.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/transpose_tiles.h"

namespace tenon::kernels {
namespace {

constexpr size_t kUnitBytes = 64 << 10;
constexpr size_t kTaskBytes = 128 << 10;

using Axis = CopyPlan::Axis;

// Axes in the order of dst's memory, without those of size 1; neighbours are merged if one stride
// is enough for both on both sides.
size_t SimplifyAxes(std::span<Axis> axes) {
  // Insertion sort, because std::stable_sort allocates and there are few axes.
  for (size_t i = 1; i < axes.size(); ++i) {
    const Axis axis = axes[i];
    size_t at = i;
    for (; at > 0 && std::abs(axes[at - 1].dst) < std::abs(axis.dst); --at) axes[at] = axes[at - 1];
    axes[at] = axis;
  }
  size_t rank = 0;
  for (const Axis& axis : axes) {
    if (axis.size == 1) continue;
    const auto size = static_cast<ptrdiff_t>(axis.size);
    if (rank > 0 && axes[rank - 1].src == axis.src * size &&
        axes[rank - 1].dst == axis.dst * size) {
      axes[rank - 1] = {axes[rank - 1].size * axis.size, axis.src, axis.dst};
    } else {
      axes[rank++] = axis;
    }
  }
  return rank;
}

bool IsElementSize(size_t bytes) { return std::has_single_bit(bytes) && bytes <= 16; }

// The outer axis along which src is dense, or `rank` if there is none.
size_t FindDenseSource(const CopyPlan& plan) {
  for (size_t i = 0; i < plan.rank; ++i) {
    if (plan.outer[i].src == static_cast<ptrdiff_t>(plan.element)) return i;
  }
  return plan.rank;
}

// Takes as many of the innermost axes as a unit can have for a block, if one of them repeats runs
// so short that a longer copy of what they made is faster.
void ChooseBlocks(CopyPlan& plan) {
  constexpr size_t kShortRun = 512;
  size_t bytes = plan.element, first = plan.rank;
  bool has_repeats = false;
  while (first > 0 && plan.outer[first - 1].dst == static_cast<ptrdiff_t>(bytes) &&
         bytes * plan.outer[first - 1].size <= kUnitBytes) {
    --first;
    bytes *= plan.outer[first].size;
    has_repeats |= plan.outer[first].src == 0;
  }
  if (plan.element > kShortRun || !has_repeats) return;
  plan.method = CopyPlan::Method::kBlocks;
  plan.block_rank = plan.rank - first;
  plan.rank = first;
  plan.piece = bytes;
}

void ChooseMethod(CopyPlan& plan) {
  // A dense innermost axis is part of the run.
  while (plan.rank > 0 && plan.outer[plan.rank - 1].src == static_cast<ptrdiff_t>(plan.element) &&
         plan.outer[plan.rank - 1].dst == static_cast<ptrdiff_t>(plan.element)) {
    plan.element *= plan.outer[--plan.rank].size;
  }
  plan.piece = plan.element;
  if (plan.rank == 0 || !IsElementSize(plan.element)) {
    plan.method = CopyPlan::Method::kRuns;
    if (plan.element >= 2 * kUnitBytes) plan.piece = kUnitBytes;
    plan.pieces = (plan.element + plan.piece - 1) / plan.piece;
    ChooseBlocks(plan);
    return;
  }
  plan.method = CopyPlan::Method::kElements;
  plan.inner = plan.outer[--plan.rank];
  plan.piece = plan.inner.size;
  const size_t dense = FindDenseSource(plan);
  if (dense < plan.rank && plan.inner.dst == static_cast<ptrdiff_t>(plan.element)) {
    plan.method = CopyPlan::Method::kTiles;
    plan.across = plan.outer[dense];
    std::copy(plan.outer.begin() + dense + 1, plan.outer.begin() + plan.rank,
              plan.outer.begin() + dense);
    --plan.rank;
    // Whole cache lines of src, some of them.
    const size_t line = 64 / plan.element;
    const size_t strip = kUnitBytes / plan.element / std::max<size_t>(plan.inner.size, 1);
    plan.piece = std::max(line, strip / line * line);
    plan.pieces = (plan.across.size + plan.piece - 1) / plan.piece;
  } else if (plan.inner.size * plan.element >= 2 * kUnitBytes) {
    plan.piece = kUnitBytes / plan.element;
    plan.pieces = (plan.inner.size + plan.piece - 1) / plan.piece;
  }
}

// To dense elements from those kStep elements apart, which the compiler vectorises.
template <class T, ptrdiff_t kStep>
void CopyByStep(const uint8_t* src, uint8_t* dst, size_t n) {
  constexpr auto kSize = static_cast<ptrdiff_t>(sizeof(T));
  for (ptrdiff_t i = 0; i < static_cast<ptrdiff_t>(n); ++i) {
    std::memcpy(dst + i * kSize, src + i * kStep * kSize, sizeof(T));
  }
}

template <class T>
void CopyElements(const uint8_t* src, uint8_t* dst, const Axis& axis, size_t n) {
  constexpr auto kSize = static_cast<ptrdiff_t>(sizeof(T));
  if (axis.dst == kSize) {
    if (axis.src == 0) return Fill(src, sizeof(T), dst, n);
    if (axis.src == -kSize) return CopyByStep<T, -1>(src, dst, n);
    if (axis.src == 2 * kSize) return CopyByStep<T, 2>(src, dst, n);
  }
  for (size_t i = 0; i < n; ++i) {
    std::memcpy(dst + static_cast<ptrdiff_t>(i) * axis.dst,
                src + static_cast<ptrdiff_t>(i) * axis.src, sizeof(T));
  }
}

struct Bytes16 {
  uint64_t low, high;
};

void CopyInner(const CopyPlan& plan, const uint8_t* src, uint8_t* dst, size_t n) {
  switch (plan.element) {
    case 1:
      return CopyElements<uint8_t>(src, dst, plan.inner, n);
    case 2:
      return CopyElements<uint16_t>(src, dst, plan.inner, n);
    case 4:
      return CopyElements<uint32_t>(src, dst, plan.inner, n);
    case 8:
      return CopyElements<uint64_t>(src, dst, plan.inner, n);
    default:
      return CopyElements<Bytes16>(src, dst, plan.inner, n);
  }
}

// Copies a block's axes, those at `axis` and after it, and returns their bytes.
size_t CopyBlock(const CopyPlan& plan, size_t axis, const uint8_t* src, uint8_t* dst) {
  if (axis == plan.rank + plan.block_rank) {
    std::memcpy(dst, src, plan.element);
    return plan.element;
  }
  const Axis& loop = plan.outer[axis];
  if (loop.src != 0) {
    for (size_t i = 0; i < loop.size; ++i, src += loop.src, dst += loop.dst) {
      CopyBlock(plan, axis + 1, src, dst);
    }
    return loop.size * static_cast<size_t>(loop.dst);
  }
  const size_t first = CopyBlock(plan, axis + 1, src, dst), whole = loop.size * first;
  for (size_t bytes = first; bytes < whole; bytes *= 2) {
    std::memcpy(dst + bytes, dst, std::min(bytes, whole - bytes));
  }
  return whole;
}

void RunUnit(const CopyPlan& plan, const uint8_t* src, uint8_t* dst, size_t piece) {
  const size_t begin = piece * plan.piece;
  const auto step = static_cast<ptrdiff_t>(begin);
  switch (plan.method) {
    case CopyPlan::Method::kRuns:
      std::memcpy(dst + begin, src + begin, std::min(plan.piece, plan.element - begin));
      return;
    case CopyPlan::Method::kBlocks:
      CopyBlock(plan, plan.rank, src, dst);
      return;
    case CopyPlan::Method::kElements:
      return CopyInner(plan, src + step * plan.inner.src, dst + step * plan.inner.dst,
                       std::min(plan.piece, plan.inner.size - begin));
    case CopyPlan::Method::kTiles:
      return TransposeTiles({.rows = plan.inner.size,
                             .columns = std::min(plan.piece, plan.across.size - begin),
                             .src_stride = plan.inner.src,
                             .dst_stride = plan.across.dst},
                            plan.element, src + begin * plan.element, dst + step * plan.across.dst);
  }
}

template <class T>
void FillAs(const void* element, void* dst, size_t n) {
  T value;
  std::memcpy(&value, element, sizeof(T));
  auto* bytes = static_cast<uint8_t*>(dst);
  for (size_t i = 0; i < n; ++i) std::memcpy(bytes + i * sizeof(T), &value, sizeof(T));
}

}  // namespace

Result<CopyPlan> MakeCopyPlan(std::span<const size_t> shape, std::span<const ptrdiff_t> src_strides,
                              std::span<const ptrdiff_t> dst_strides, size_t element_size) {
  if (shape.size() > kMaxCopyRank) {
    return InvalidArgument("expected a rank of at most {}, got {}", kMaxCopyRank, shape.size());
  }
  CopyPlan plan;
  plan.element = element_size;
  const auto bytes = static_cast<ptrdiff_t>(element_size);
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return plan;  // no units
    plan.outer[i] = {shape[i], src_strides[i] * bytes, dst_strides[i] * bytes};
  }
  plan.rank = SimplifyAxes(std::span(plan.outer).first(shape.size()));
  ChooseMethod(plan);
  size_t steps = 1;
  for (size_t i = 0; i < plan.rank; ++i) steps *= plan.outer[i].size;
  plan.units = steps * plan.pieces;
  size_t unit_bytes = plan.piece;
  if (plan.method == CopyPlan::Method::kElements) unit_bytes *= plan.element;
  if (plan.method == CopyPlan::Method::kTiles) unit_bytes *= plan.element * plan.inner.size;
  plan.grain = std::max<size_t>(1, kTaskBytes / unit_bytes);
  return plan;
}

void RunCopy(const CopyPlan& plan, const void* src, void* dst, size_t begin, size_t end) {
  const auto* from = static_cast<const uint8_t*>(src);
  auto* to = static_cast<uint8_t*>(dst);
  std::array<size_t, kMaxCopyRank> index{};
  size_t rest = begin / plan.pieces;
  size_t piece = begin % plan.pieces;
  for (size_t i = plan.rank; i-- > 0;) {
    index[i] = rest % plan.outer[i].size;
    rest /= plan.outer[i].size;
    from += static_cast<ptrdiff_t>(index[i]) * plan.outer[i].src;
    to += static_cast<ptrdiff_t>(index[i]) * plan.outer[i].dst;
  }
  for (size_t unit = begin; unit < end; ++unit) {
    RunUnit(plan, from, to, piece);
    if (++piece < plan.pieces) continue;
    piece = 0;
    for (size_t i = plan.rank; i-- > 0;) {
      const Axis& axis = plan.outer[i];
      from += axis.src;
      to += axis.dst;
      if (++index[i] < axis.size) break;
      index[i] = 0;
      from -= static_cast<ptrdiff_t>(axis.size) * axis.src;
      to -= static_cast<ptrdiff_t>(axis.size) * axis.dst;
    }
  }
}

void Fill(const void* element, size_t element_size, void* dst, size_t n) {
  switch (element_size) {
    case 1:
      return FillAs<uint8_t>(element, dst, n);
    case 2:
      return FillAs<uint16_t>(element, dst, n);
    case 4:
      return FillAs<uint32_t>(element, dst, n);
    case 8:
      return FillAs<uint64_t>(element, dst, n);
    default:
      return FillAs<Bytes16>(element, dst, n);
  }
}

}  // namespace tenon::kernels
