// Numbers of four bits as elements: [n, k] from [n, k / BLOCK, BLOCK / 2] bytes, low halves first.
// A thread makes eight.
//
// Defined before: ELEMENT, BLOCK (a multiple of 16), ZEROS (as in nbits_product.cu).

#if ZEROS == 1
#define ZERO_POINTS const uchar *zeros,
#elif ZEROS == 2
#define ZERO_POINTS const element *zeros,
#else
#define ZERO_POINTS
#endif

extern "C" __global__ void __launch_bounds__(256)
    nbits_dequantize(const uint* b, const element* scales, ZERO_POINTS element* out, int n, int k) {
  const int blocks = (k + BLOCK - 1) / BLOCK;
  const int words = blocks * (BLOCK / 8);  // of a row
  const long item = (long)blockIdx.x * 256 + threadIdx.x;
  if (item >= (long)n * words) return;
  const int row = (int)(item / words), start = (int)(item % words) * 8;
  const int block = start / BLOCK;
  const float scale = to_float(scales[(long)row * blocks + block]);
  float zero = 8;
#if ZEROS == 1
  zero = (float)(zeros[(long)row * ((blocks + 1) / 2) + block / 2] >> (block % 2 * 4) & 15);
#elif ZEROS == 2
  zero = to_float(zeros[(long)row * blocks + block]);
#endif
  const uint word = b[item];
  float x[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) x[i] = ((float)(word >> (4 * i) & 15) - zero) * scale;
  element* to = out + (long)row * k + start;
#if ELEMENT != 3
  if (k % 8 == 0 && start < k) {
    *(uint4*)to =
        make_uint4(pack(x[0], x[1]), pack(x[2], x[3]), pack(x[4], x[5]), pack(x[6], x[7]));
    return;
  }
#endif
  for (int i = 0; i < 8 && start + i < k; ++i) to[i] = to_element(x[i]);
}
