#include <cstring>

#include "kernels/dispatch.h"
#include "kernels/gemm/gemv_nbits_form.h"

namespace tenon::kernels {
namespace {

size_t PaddedBlocks(const NBitsMatrix& w) { return (w.blocks() + 15) / 16 * 16; }

template <class Byte>
NBitsByteVector VectorIn(const NBitsMatrix& w, NBitsParts parts, Byte* arranged) {
  auto* bytes = reinterpret_cast<int8_t*>(const_cast<std::byte*>(arranged));
  const size_t part_bytes = NBitsUnits(w) * kNBitsUnit;
  auto* floats = reinterpret_cast<float*>(bytes + static_cast<size_t>(parts) * part_bytes);
  float* scales = floats + PaddedBlocks(w);
  return {bytes, part_bytes, floats, scales,
          reinterpret_cast<int32_t*>(scales + NBitsUnits(w) * kNBitsUnitSums)};
}

// Null if there is none.
const NBitsGemmForm* ActiveNBitsGemm() {
#if defined(__x86_64__)
  switch (ActiveTarget()) {
    case Target::kAvx512:
      if (__builtin_cpu_supports("avx512vnni")) return &kVnniNBitsGemm;
      [[fallthrough]];
    case Target::kAvx2:
      return &kAvx2NBitsGemm;
    default:
      break;
  }
#endif
  return nullptr;
}

}  // namespace

float NBitsZeroPointSum(const NBitsMatrix& w, const NBitsByteVector& x, size_t row) {
  const size_t blocks = w.blocks();
  float sum = 0;
  for (size_t b = 0; b < blocks; ++b) sum += w.ZeroPoint(row, b) * w.Scale(row, b) * x.sums[b];
  return sum;
}

bool HasInt8NBitsGemm(const NBitsMatrix& w) {
  return w.bits == 4 && w.block_size >= 32 && ActiveNBitsGemm() != nullptr;
}

size_t MostInt8NBitsVectors(NBitsParts parts) {
  const NBitsGemmForm* form = ActiveNBitsGemm();
  if (form == nullptr) return 0;
  return parts == NBitsParts::kOne ? form->most_vectors_of_one : form->most_vectors_of_three;
}

size_t ArrangedNBitsBytes(const NBitsMatrix& w, NBitsParts parts) {
  return static_cast<size_t>(parts) * NBitsUnits(w) * kNBitsUnit +
         (PaddedBlocks(w) + 2 * NBitsUnits(w) * kNBitsUnitSums) * sizeof(float);
}

void ArrangeNBitsBytes(const NBitsMatrix& w, NBitsParts parts, const float* x,
                       std::byte* arranged) {
  std::memset(arranged, 0, ArrangedNBitsBytes(w, parts));
  ActiveNBitsGemm()->arrange(w, parts, x, VectorIn(w, parts, arranged));
}

void RunInt8NBitsGemm(const NBitsMatrix& w, NBitsParts parts, const std::byte* arranged, size_t m,
                      const float* bias, size_t first, size_t count, float* y, size_t n) {
  const NBitsGemmForm& form = *ActiveNBitsGemm();
  const size_t bytes = ArrangedNBitsBytes(w, parts);
  for (size_t i = 0; i < m;) {
    NBitsByteVector x[kMostNBitsVectors];
    const size_t vectors = m - i >= kMostNBitsVectors ? kMostNBitsVectors : 1;
    for (size_t v = 0; v < vectors; ++v) x[v] = VectorIn(w, parts, arranged + (i + v) * bytes);
    form.run(w, parts, x, vectors, first, count, y + i * n, n);
    i += vectors;
  }
  if (bias == nullptr) return;
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = first; j < first + count; ++j) y[i * n + j] += bias[j];
  }
}

}  // namespace tenon::kernels
