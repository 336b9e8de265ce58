// a x b' where b has four bits a number: for few rows of a, as when tokens are generated one by
// one. A warp computes one column of the result: its lanes read 32 numbers of b at a time, 16
// bytes.
//
// a is [rows, k], b is [n, k / 32] of 16 bytes, low halves of bytes first; a block of BLOCK numbers
// has a scale [n, k / BLOCK] and perhaps a zero point, else 8.
//
// Defined before: ELEMENT, BLOCK (a multiple of 32), ROWS (of a, that a block handles together),
// ZEROS (0: none; 1: four bits each, rows of b begin in new bytes; 2: of the element type).

#define WARPS 8
#define CHUNK 32  // numbers of a lane's load
#define PITCH 36  // floats of a chunk of a: lanes read different banks

// The numbers at places i and i + 4 of the eight in a word, less a zero point, as floats: 1024 + x
// has the bits of x in the last places of a float16. `base` is 1024 and the zero point, twice.
__device__ __forceinline__ void unpack(uint word, int i, uint base, float& low, float& high) {
  uint halves = (word >> (4 * i) & 0x000f000f) | 0x64006400;
#if ZEROS != 2
  asm("sub.f16x2 %0, %0, %1;" : "+r"(halves) : "r"(base));
#endif
  asm("{ .reg .f16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h; }"
      : "=f"(low), "=f"(high)
      : "r"(halves));
}

#if ZEROS == 1
#define ZERO_POINTS const uchar *zeros,
#elif ZEROS == 2
#define ZERO_POINTS const element *zeros,
#else
#define ZERO_POINTS
#endif

extern "C" __global__ void __launch_bounds__(WARPS * 32)
    nbits_product(const element* a, const uint4* b, const element* scales, ZERO_POINTS element* out,
                  int rows, int n, int k) {
  extern __shared__ __align__(16) float a_chunks[];  // [ROWS][k / CHUNK][PITCH]
  const int chunks = k / CHUNK;
  const int row0 = blockIdx.y * ROWS;
  for (int r = 0; r < ROWS; ++r) {
    for (int i = threadIdx.x; i < k; i += WARPS * 32) {
      a_chunks[(r * chunks + i / CHUNK) * PITCH + i % CHUNK] =
          row0 + r < rows ? to_float(a[(long)(row0 + r) * k + i]) : 0;
    }
  }
  __syncthreads();
  const int column0 = (blockIdx.x * WARPS + threadIdx.x / 32) * COLUMNS;
  const int lane = threadIdx.x % 32;
  if (column0 >= n) return;
  const int blocks = k / BLOCK;
  float sums[COLUMNS][ROWS];
  for (int c = 0; c < COLUMNS; ++c)
    for (int r = 0; r < ROWS; ++r) sums[c][r] = 0;
#pragma unroll 2
  for (int chunk = lane; chunk < chunks; chunk += 32) {
    const int block = chunk / (BLOCK / CHUNK);
    uint4 packed[COLUMNS];
    float scale[COLUMNS];
    uint base[COLUMNS];
#if ZEROS == 2
    float zero[COLUMNS];
#endif
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c) {
      const long column = min(column0 + c, n - 1);
      packed[c] = b[column * chunks + chunk];
      scale[c] = to_float(scales[column * blocks + block]);
#if ZEROS == 1
      const uint point = zeros[column * ((blocks + 1) / 2) + block / 2] >> (block % 2 * 4) & 15;
      base[c] = (0x6400 + point) * 0x10001;
#elif ZEROS == 2
      zero[c] = 1024 + to_float(zeros[column * blocks + block]);
      base[c] = 0;
#else
      base[c] = 0x64086408;
#endif
    }
#pragma unroll
    for (int c = 0; c < COLUMNS; ++c) {
      const uint words[4] = {packed[c].x, packed[c].y, packed[c].z, packed[c].w};
      float part[ROWS];
      for (int r = 0; r < ROWS; ++r) part[r] = 0;
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        float x[8];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          unpack(words[w], i, base[c], x[i], x[i + 4]);
#if ZEROS == 2
          x[i] -= zero[c];
          x[i + 4] -= zero[c];
#endif
        }
#pragma unroll
        for (int r = 0; r < ROWS; ++r) {
          const float4* from = (const float4*)(a_chunks + (r * chunks + chunk) * PITCH + w * 8);
          const float4 y = from[0], z = from[1];
          part[r] += x[0] * y.x + x[1] * y.y + x[2] * y.z + x[3] * y.w + x[4] * z.x + x[5] * z.y +
                     x[6] * z.z + x[7] * z.w;
        }
      }
      for (int r = 0; r < ROWS; ++r) sums[c][r] += part[r] * scale[c];
    }
  }
#pragma unroll
  for (int c = 0; c < COLUMNS; ++c) {
#pragma unroll
    for (int r = 0; r < ROWS; ++r) {
      for (int offset = 16; offset > 0; offset /= 2) {
        sums[c][r] += __shfl_xor_sync(0xffffffff, sums[c][r], offset);
      }
      if (lane == 0 && row0 + r < rows && column0 + c < n) {
        out[(long)(row0 + r) * n + column0 + c] = to_element(sums[c][r]);
      }
    }
  }
}
