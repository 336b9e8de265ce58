// The transpose of a matrix, the core of copies between layouts of different order.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::kernels {

// dst[c, r] = src[r, c]. Rows of src and of dst are dense; strides between them are in bytes.
struct TransposeSizes {
  size_t rows;     // of src
  size_t columns;  // of src
  ptrdiff_t src_stride;
  ptrdiff_t dst_stride;
};
// Elements are of 1, 2, 4, 8 or 16 bytes; no alignment is needed.
void TransposeTiles(const TransposeSizes& sizes, size_t element_size, const uint8_t* src,
                    uint8_t* dst);

}  // namespace tenon::kernels
