// a x b' for few rows of a: [rows, k] times [n, k]. A warp computes COLUMNS columns of the result;
// its lanes read eight elements of each row of b at a time. Then what follows: times alpha, plus
// the bias [n], plus the residual [rows, n], the activation.
//
// Defined before: ELEMENT (1 or 2), ROWS (of a, that a block handles together), COLUMNS, HAS_BIAS,
// HAS_RESIDUAL, ACTIVATION (0: none, 1: ReLU, 2: GELU by tanh). k is a multiple of 8.

#define WARPS 8
#define AHEAD 4  // loads of a lane that are under way, of each column

#if HAS_BIAS
#define BIAS_INPUT const element *bias,
#else
#define BIAS_INPUT
#endif
#if HAS_RESIDUAL
#define RESIDUAL_INPUT const element *residual,
#else
#define RESIDUAL_INPUT
#endif

__device__ __forceinline__ void widen(uint4 packed, float (&x)[8]) {
  const uint words[4] = {packed.x, packed.y, packed.z, packed.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    x[2 * i] = to_float((element)(words[i] & 0xffff));
    x[2 * i + 1] = to_float((element)(words[i] >> 16));
  }
}

extern "C" __global__ void __launch_bounds__(WARPS * 32)
    few_rows(const element* a, const element* b, BIAS_INPUT RESIDUAL_INPUT element* out, int rows,
             int n, int k, float alpha, long a_stride, long b_stride) {
  extern __shared__ __align__(16) uint4 a_parts[];  // [ROWS][k / 8]
  const int parts = k / 8;
  const int row0 = blockIdx.y * ROWS;
  const int column0 = (blockIdx.x * WARPS + threadIdx.x / 32) * COLUMNS;
  const int lane = threadIdx.x % 32;
  // The first loads of b are under way while the block reads a.
  const uint4* b_rows[COLUMNS];
  uint4 ahead[AHEAD][COLUMNS];
#pragma unroll
  for (int c = 0; c < COLUMNS; ++c) {
    b_rows[c] = (const uint4*)(b + min(column0 + c, n - 1) * b_stride);
#pragma unroll
    for (int i = 0; i < AHEAD; ++i) {
      const int part = lane + 32 * i;
      ahead[i][c] = part < parts ? b_rows[c][part] : make_uint4(0, 0, 0, 0);
    }
  }
  for (int i = threadIdx.x; i < ROWS * parts; i += WARPS * 32) {
    const int row = row0 + i / parts;
    a_parts[i] =
        row < rows ? *(const uint4*)(a + row * a_stride + i % parts * 8) : make_uint4(0, 0, 0, 0);
  }
  __syncthreads();
  if (column0 >= n) return;
  float sums[COLUMNS][ROWS];
  for (int c = 0; c < COLUMNS; ++c)
    for (int r = 0; r < ROWS; ++r) sums[c][r] = 0;
  for (int start = lane; start < parts; start += 32 * AHEAD) {
#pragma unroll
    for (int i = 0; i < AHEAD; ++i) {
      const int part = start + 32 * i;
      const int later = part + 32 * AHEAD;
      float x[COLUMNS][8];
#pragma unroll
      for (int c = 0; c < COLUMNS; ++c) {
        widen(ahead[i][c], x[c]);
        if (later < parts) ahead[i][c] = b_rows[c][later];
      }
      if (part >= parts) continue;
#pragma unroll
      for (int r = 0; r < ROWS; ++r) {
        float y[8];
        widen(a_parts[r * parts + part], y);
#pragma unroll
        for (int c = 0; c < COLUMNS; ++c) {
#pragma unroll
          for (int j = 0; j < 8; ++j) sums[c][r] += x[c][j] * y[j];
        }
      }
    }
  }
#pragma unroll
  for (int c = 0; c < COLUMNS; ++c) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      for (int offset = 16; offset > 0; offset /= 2) {
        sums[c][r] += __shfl_xor_sync(0xffffffff, sums[c][r], offset);
      }
      if (lane != 0 || row0 + r >= rows || column0 + c >= n) continue;
      const long place = (long)(row0 + r) * n + column0 + c;
      float y = sums[c][r] * alpha;
#if HAS_BIAS
      y += to_float(bias[column0 + c]);
#endif
#if HAS_RESIDUAL
      y += to_float(residual[place]);
#endif
#if ACTIVATION == 1
      y = y < 0 ? 0 : y;
#elif ACTIVATION == 2
      y = 0.5f * y * (1 + tanhf(0.7978845608028654f * (y + 0.044715f * y * y * y)));
#endif
      out[place] = to_element(y);
    }
  }
}
