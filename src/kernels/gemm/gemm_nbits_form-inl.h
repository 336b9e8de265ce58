// Included by each form of gemm_nbits_form.h in its own namespace, for its instruction set,
// TENON_NBITS_TARGET, and its RoundBlock, RoundBlockInParts, RowOrder and Arrange.

// Rounds a row and puts each part of a block in order. What a sum begins with, or is to be
// multiplied by a zero point, goes to starts: [blocks][parts].
TENON_NBITS_TARGET void SetRow(const NBitsMatrix& w, NBitsParts row_parts, const float* x,
                               int8_t* row, float* scales, int32_t* starts) {
  const auto order = RowOrder(w.bits);
  const auto parts = static_cast<size_t>(row_parts);
  const int32_t factor = w.zero_points ? -1 : -(1 << (w.bits - 1));
  const size_t blocks = w.blocks();
  int8_t* bytes = row;
  for (size_t block = 0; block < blocks; ++block, bytes += parts * w.block_size) {
    const size_t first = block * w.block_size, count = std::min(w.block_size, w.k - first);
    scales[block] = parts == 1 ? RoundBlock(x + first, count, bytes)
                               : RoundBlockInParts(x + first, count, parts, bytes, w.block_size);
    for (size_t part = 0; part < parts && count < w.block_size; ++part) {
      std::memset(bytes + part * w.block_size + count, 0, w.block_size - count);
    }
  }
  // Afterwards, as wide loads wait for narrow stores that are not yet done.
  for (size_t part = 0; part < blocks * parts; ++part) {
    starts[part] = factor * Arrange(row + part * w.block_size, w.block_size, order);
  }
}
