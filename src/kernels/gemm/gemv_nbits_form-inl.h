// Included by each form of gemv_nbits_form.h in its own namespace, for its instruction set,
// TENON_NBITS_TARGET, and its RoundBlock and SplitBlock.

// Rounds x, block by block, in its order, with the sums and scales of the blocks.
TENON_NBITS_TARGET inline void RoundBlocks(const NBitsMatrix& w, NBitsParts parts, const float* x,
                                           const NBitsByteVector& v) {
  const size_t count = static_cast<size_t>(parts);
  for (size_t block = 0; block < w.blocks(); ++block) {
    const size_t first = block * w.block_size, n = std::min(w.block_size, w.k - first);
    int8_t* bytes = v.bytes + first;
    const float scale = parts == NBitsParts::kOne ? RoundBlock(x + first, n, bytes)
                                                  : SplitBlock(x + first, n, bytes, v.part_bytes);
    int64_t sum = 0;
    for (size_t part = 0; part < count; ++part, bytes += v.part_bytes) {
      int32_t of_part = 0;
      for (size_t i = 0; i < w.block_size; ++i) of_part += bytes[i];
      sum = (sum << kNBitsPartBits) + of_part;
    }
    v.sums[block] = scale * static_cast<float>(sum);
    std::fill_n(v.scales + first / 8, w.block_size / 8, scale);
  }
}

// Rows [first, first + count) of the matrix times kVectors vectors, kRows at once.
template <NBitsParts kParts, size_t kRows, size_t kVectors>
void RunVectors(const NBitsMatrix& w, const NBitsByteVector* x, size_t first, size_t count,
                float* y, size_t stride) {
  size_t row = first;
  const auto run = ChooseRows<kParts, kRows, kVectors>(w);
  for (; row + kRows <= first + count; row += kRows) run(w, x, row, y + row, stride);
  const auto run_one = ChooseRows<kParts, 1, kVectors>(w);
  for (; row < first + count; ++row) run_one(w, x, row, y + row, stride);
}
