#include <algorithm>

#include "kernels/dispatch.h"
#include "kernels/gemm/gemm_nbits.h"
#include "kernels/gemm/gemm_nbits_form.h"

namespace tenon::kernels {
namespace {

constexpr size_t kColumns = kNBitsPanelColumns;

size_t RoundUp64(size_t x) { return (x + 63) / 64 * 64; }
// An odd number of cache lines, so that the rows of a tile lie in different sets of the cache.
size_t RowStride(const NBitsMatrix& w, NBitsParts parts) {
  return (NBitsDepth(w) * static_cast<size_t>(parts) + 127) / 128 * 128 + 64;
}

#if defined(__x86_64__)

// Null if there is none.
const NBitsPanelForm* ActivePanels() {
  switch (ActiveTarget()) {
    case Target::kAvx512:
      if (__builtin_cpu_supports("avx512vnni")) return &kVnniNBitsPanels;
      [[fallthrough]];
    case Target::kAvx2:
      return &kAvx2NBitsPanels;
    default:
      return nullptr;
  }
}

// Fetches one of `parts` parts of `bytes` bytes. Inline, as GCC removes calls of functions that do
// nothing else.
inline __attribute__((always_inline)) void PrefetchPart(const void* data, size_t bytes, size_t part,
                                                        size_t parts) {
  const size_t end = bytes * (part + 1) / parts;
  for (size_t i = bytes * part / parts; i < end; i += 64) {
    __builtin_prefetch(static_cast<const char*>(data) + i, 0, 2);
  }
}

#endif

}  // namespace

size_t NBitsPanelBytes(const NBitsMatrix& w) {
  const size_t of_block = sizeof(float) + (w.zero_points ? sizeof(int32_t) : 0);
  return RoundUp64(kColumns * (NBitsDepth(w) + w.blocks() * of_block));
}

size_t Int8NBitsRows::Bytes(const NBitsMatrix& w, NBitsParts parts, size_t m) {
  const size_t of_block = sizeof(float) + static_cast<size_t>(parts) * sizeof(int32_t);
  return RoundUp64(m * (RowStride(w, parts) + w.blocks() * of_block));
}

Int8NBitsRows::Int8NBitsRows(const NBitsMatrix& w, NBitsParts parts, size_t m, std::byte* memory)
    : parts_(parts),
      count_(m),
      blocks_(w.blocks()),
      stride_(RowStride(w, parts)),
      bytes_(reinterpret_cast<int8_t*>(memory)),
      scales_(reinterpret_cast<float*>(memory + m * stride_)),
      starts_(reinterpret_cast<int32_t*>(scales_ + m * blocks_)) {}

#if defined(__x86_64__)

bool HasInt8NBitsPanels(const NBitsMatrix& w, NBitsParts parts) {
  const NBitsPanelForm* form = ActivePanels();
  if (form == nullptr || w.bits > form->most_bits || parts > form->most_parts) return false;
  // Sums of a block are less than 2^(7 + bits) times its elements before they are shifted.
  const size_t shift = parts == NBitsParts::kTwo ? 8 : parts == NBitsParts::kThree ? 14 : 0;
  if (parts != NBitsParts::kOne && w.block_size << (w.bits + 7 + shift) > size_t{1} << 31) {
    return false;
  }
  return w.float_zero_points == nullptr;
}

void Int8NBitsRows::Set(const NBitsMatrix& w, size_t i, const float* x) const {
  ActivePanels()->set_row(w, parts_, x, bytes_ + i * stride_, scales_ + i * blocks_,
                          starts_ + i * blocks_ * static_cast<size_t>(parts_));
}

void RunNBitsPanel(const NBitsMatrix& w, const Int8NBitsRows& rows, const float* bias, size_t first,
                   float* y, size_t n, std::byte* scratch) {
  const NBitsPanelForm& form = *ActivePanels();
  const size_t end = std::min(first + kColumns, n), m = rows.count();
  for (; first < end; first += form.columns) {
    const size_t count = std::min(form.columns, end - first);
    const NBitsPanel panel = form.unpack(w, first, count, scratch);
    // What the next panel reads comes from memory meanwhile.
    const size_t next = first + count, next_count = std::min(form.columns, n - next);
    const size_t row_bytes = NBitsDepth(w) * w.bits / 8;
    // Tiles of nearly equal numbers of rows.
    const size_t tiles = (m + form.most_rows - 1) / form.most_rows;
    for (size_t tile = 0, row = 0; tile < tiles; ++tile) {
      PrefetchPart(w.data + next * row_bytes, next_count * row_bytes, tile, tiles);
      PrefetchPart(w.scales + next * w.blocks(), next_count * w.blocks() * sizeof(float), tile,
                   tiles);
      const size_t tile_rows = (m - row + tiles - tile - 1) / (tiles - tile);
      alignas(64) float total[kMostNBitsTileRows * kColumns];
      form.run_tile(
          w, rows.parts(),
          {rows.bytes(row), rows.stride(), rows.scales(row), rows.starts(row), w.blocks()},
          tile_rows, panel, total);
      for (size_t r = 0; r < tile_rows; ++r, ++row) {
        form.store_row(total + r * form.columns, bias ? bias + first : nullptr, count,
                       y + row * n + first);
      }
    }
  }
}

#else

bool HasInt8NBitsPanels(const NBitsMatrix&, NBitsParts) { return false; }
void Int8NBitsRows::Set(const NBitsMatrix&, size_t, const float*) const {}
void RunNBitsPanel(const NBitsMatrix&, const Int8NBitsRows&, const float*, size_t, float*, size_t,
                   std::byte*) {}

#endif

}  // namespace tenon::kernels
