// softmax(q k' * scale + mask) v, without the matrix of scores: each block goes through the keys
// once, a tile at a time, with the greatest score and the sum of each row so far.
//
// q is [batch, heads, queries, DEPTH], k and v are [batch, heads / group, keys, DEPTH], all with
// strides for batch, head and position in elements, DEPTH elements side by side. The rows of a
// block are queries of the heads of one group, WARPS * 16 of them: row r is query r % queries of
// head r / queries of the group. With SPLITS the keys are divided over blocks, which leave their
// part of each row in `partial`; combine_attention adds the parts up.
//
// Defined before: ELEMENT (1 or 2), DEPTH (a multiple of 8), WARPS, SPLITS (0 or 1), CAUSAL,
// HAS_LENGTHS, MASK (0: none; 1: of the element type, 2: float, both are added; 3: bytes, 0 has the
// score `masked`).

#define HEAD ((DEPTH + 15) / 16 * 16)
#define STEPS (HEAD / 16)
#define TILE 64
#define PITCH (HEAD + 8)  // elements: rows lie in different banks
#define THREADS (WARPS * 32)

__device__ __forceinline__ void load_tile(element* shared, const element* from, long stride,
                                          int start, int end) {
  for (int i = threadIdx.x; i < TILE * (HEAD / 8); i += THREADS) {
    const int row = i / (HEAD / 8), column = i % (HEAD / 8) * 8;
    element* to = shared + row * PITCH + column;
    if (start + row < end && column < DEPTH) {
      copy_async(to, from + (start + row) * stride + column);
    } else {
      *(uint4*)to = make_uint4(0, 0, 0, 0);
    }
  }
}

#if MASK == 1
#define MASK_TYPE element
#define MASK_VALUE(x) to_float(x)
#elif MASK == 2
#define MASK_TYPE float
#define MASK_VALUE(x) (x)
#elif MASK == 3
#define MASK_TYPE uchar
#define MASK_VALUE(x) (float)(x)
#endif
#if MASK
#define MASK_INPUT const MASK_TYPE *mask,
#else
#define MASK_INPUT
#endif
#if HAS_LENGTHS
#define LENGTHS_INPUT const int *lengths,
#else
#define LENGTHS_INPUT
#endif
#if SPLITS
#define PARTIAL_OUTPUT float *partial,
#else
#define PARTIAL_OUTPUT
#endif

extern "C" __global__ void __launch_bounds__(THREADS)
    flash_attention(const element* q, const element* k, const element* v,
                    MASK_INPUT LENGTHS_INPUT element* out, PARTIAL_OUTPUT int queries, int all_keys,
                    int group, float scale, float masked, int splits, int length_offset, int window,
                    float softcap, long q_batch, long q_head, long q_position, long k_batch,
                    long k_head, long k_position, long v_batch, long v_head, long v_position,
                    long out_batch, long out_head, long out_position, long mask_batch,
                    long mask_head, long mask_query, long mask_key) {
  extern __shared__ __align__(16) element tiles[];  // [2][TILE][PITCH] of k, then of v
  element* k_tiles = tiles;
  element* v_tiles = tiles + 2 * TILE * PITCH;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int batch = blockIdx.z, kv_head = blockIdx.y;
  const int rows = group * queries;
  const int row_tiles = (rows + WARPS * 16 - 1) / (WARPS * 16);
  const int split = blockIdx.x / row_tiles;
  const int row0 = blockIdx.x % row_tiles * (WARPS * 16);
  int keys = all_keys;
#if HAS_LENGTHS
  keys = min(keys, lengths[batch] + length_offset);
#endif
  const int past = max(0, keys - queries);  // the position of the first query
  k += batch * k_batch + kv_head * k_head;
  v += batch * v_batch + kv_head * v_head;

  // Keys that a row of this block may see.
  int first = 0, last = keys;
#if CAUSAL
  const int row_end = min(rows, row0 + WARPS * 16) - 1;
  if (row0 / queries == row_end / queries) {  // of one head
    last = min(last, row_end % queries + past + 1);
    if (window > 0) first = max(0, row0 % queries + past + 1 - window);
  } else if (window > 0) {
    first = max(0, past + 1 - window);
  }
#endif
  if (SPLITS) {
    const int share = ((last - first + splits - 1) / splits + TILE - 1) / TILE * TILE;
    first += split * share;
    last = min(last, first + share);
  }

  // The two rows of this lane, and its queries as the left side of products.
  int query[2];
  int head[2];
  bool is_row[2];
  uint q_parts[STEPS][4];
#if MASK
  const MASK_TYPE* mask_rows[2];
#endif
  for (int half = 0; half < 2; ++half) {
    const int row = row0 + warp * 16 + half * 8 + lane / 4;
    is_row[half] = row < rows;
    query[half] = is_row[half] ? row % queries : 0;
    head[half] = kv_head * group + (is_row[half] ? row / queries : 0);
#if MASK
    mask_rows[half] = mask + batch * mask_batch + head[half] * mask_head + query[half] * mask_query;
#endif
    const element* from =
        q + batch * q_batch + head[half] * q_head + query[half] * q_position + lane % 4 * 2;
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
      for (int part = 0; part < 2; ++part) {
        const int column = step * 16 + part * 8;
        q_parts[step][part * 2 + half] =
            is_row[half] && column < DEPTH ? *(const uint*)(from + column) : 0;
      }
    }
  }

  float sums[STEPS * 2][4];
  for (int i = 0; i < STEPS * 2; ++i)
    for (int j = 0; j < 4; ++j) sums[i][j] = 0;
  float peak[2] = {-INFINITY, -INFINITY};
  float total[2] = {0, 0};

  if (first < last) {
    load_tile(k_tiles, k, k_position, first, last);
    load_tile(v_tiles, v, v_position, first, last);
  }
  copy_commit();
  int stage = 0;
  for (int start = first; start < last; start += TILE, stage ^= 1) {
    if (start + TILE < last) {
      load_tile(k_tiles + (stage ^ 1) * TILE * PITCH, k, k_position, start + TILE, last);
      load_tile(v_tiles + (stage ^ 1) * TILE * PITCH, v, v_position, start + TILE, last);
    }
    copy_commit();
    copy_wait<1>();
    __syncthreads();
    const element* k_tile = k_tiles + stage * TILE * PITCH;
    const element* v_tile = v_tiles + stage * TILE * PITCH;

    float scores[TILE / 8][4];
#pragma unroll
    for (int i = 0; i < TILE / 8; ++i)
      for (int j = 0; j < 4; ++j) scores[i][j] = 0;
#pragma unroll
    for (int step = 0; step < STEPS; ++step) {
#pragma unroll
      for (int i = 0; i < TILE / 8; i += 2) {
        uint b[4];
        load_matrices(
            b, k_tile + ((i + lane / 16) * 8 + lane % 8) * PITCH + step * 16 + lane / 8 % 2 * 8);
        multiply(scores[i], q_parts[step], b[0], b[1]);
        multiply(scores[i + 1], q_parts[step], b[2], b[3]);
      }
    }

#if MASK
    // All loads before the first use, none in a branch.
    float added[TILE / 8][4];
#pragma unroll
    for (int i = 0; i < TILE / 8; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int key = min(start + i * 8 + lane % 4 * 2 + j % 2, last - 1);
        added[i][j] = MASK_VALUE(mask_rows[j / 2][key * mask_key]);
      }
    }
#endif
    float greatest[2] = {peak[0], peak[1]};
#pragma unroll
    for (int i = 0; i < TILE / 8; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int half = j / 2;
        const int key = start + i * 8 + lane % 4 * 2 + j % 2;
        float score = scores[i][j] * scale;
        if (softcap > 0) score = softcap * tanhf(score / softcap);
#if MASK == 3
        score = added[i][j] != 0 ? score : masked;
#elif MASK
        score += added[i][j];
#endif
        bool is_seen = key < last && is_row[half];
#if CAUSAL
        const int position = query[half] + past;
        is_seen = is_seen && key <= position && (window <= 0 || key > position - window);
#endif
        score = is_seen ? score * LOG2_E : -INFINITY;
        scores[i][j] = score;
        greatest[half] = fmaxf(greatest[half], score);
      }
    }
    float shrink[2];
    float base[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      greatest[half] = fmaxf(greatest[half], __shfl_xor_sync(0xffffffff, greatest[half], 1));
      greatest[half] = fmaxf(greatest[half], __shfl_xor_sync(0xffffffff, greatest[half], 2));
      base[half] = greatest[half] == -INFINITY ? 0 : greatest[half];
      shrink[half] = exp2f(peak[half] - base[half]);
      peak[half] = greatest[half];
      total[half] *= shrink[half];
    }
#pragma unroll
    for (int i = 0; i < TILE / 8; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        scores[i][j] = exp2f(scores[i][j] - base[j / 2]);
        total[j / 2] += scores[i][j];
      }
    }
#pragma unroll
    for (int i = 0; i < STEPS * 2; ++i)
      for (int j = 0; j < 4; ++j) sums[i][j] *= shrink[j / 2];
#pragma unroll
    for (int step = 0; step < TILE / 16; ++step) {
      const uint a[4] = {pack(scores[step * 2][0], scores[step * 2][1]),
                         pack(scores[step * 2][2], scores[step * 2][3]),
                         pack(scores[step * 2 + 1][0], scores[step * 2 + 1][1]),
                         pack(scores[step * 2 + 1][2], scores[step * 2 + 1][3])};
#pragma unroll
      for (int i = 0; i < STEPS * 2; i += 2) {
        uint b[4];
        load_matrices_transposed(
            b, v_tile + (step * 16 + lane / 8 % 2 * 8 + lane % 8) * PITCH + (i + lane / 16) * 8);
        multiply(sums[i], a, b[0], b[1]);
        multiply(sums[i + 1], a, b[2], b[3]);
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int half = 0; half < 2; ++half) {
    total[half] += __shfl_xor_sync(0xffffffff, total[half], 1);
    total[half] += __shfl_xor_sync(0xffffffff, total[half], 2);
    if (!is_row[half]) continue;
#if SPLITS
    const int row = row0 + warp * 16 + half * 8 + lane / 4;
    const long place = (((long)batch * gridDim.y + kv_head) * rows + row) * splits + split;
    float* part = partial + place * (DEPTH + 2);
    if (lane % 4 == 0) {
      part[DEPTH] = peak[half];
      part[DEPTH + 1] = total[half];
    }
#else
    element* to = out + batch * out_batch + head[half] * out_head + query[half] * out_position;
    const float factor = 1 / total[half];
#endif
#pragma unroll
    for (int i = 0; i < STEPS * 2; ++i) {
      const int column = i * 8 + lane % 4 * 2;
      if (i * 8 >= DEPTH) break;
#if SPLITS
      part[column] = sums[i][half * 2];
      part[column + 1] = sums[i][half * 2 + 1];
#else
      *(uint*)(to + column) = pack(sums[i][half * 2] * factor, sums[i][half * 2 + 1] * factor);
#endif
    }
  }
}

#if SPLITS
// One block of DEPTH threads for each row.
extern "C" __global__ void __launch_bounds__(DEPTH)
    combine_attention(const float* partial, element* out, int queries, int group, int splits,
                      long out_batch, long out_head, long out_position) {
  const int rows = group * queries;
  const int row = blockIdx.x, kv_head = blockIdx.y, batch = blockIdx.z;
  const float* parts =
      partial + (((long)batch * gridDim.y + kv_head) * rows + row) * splits * (DEPTH + 2);
  float peak = -INFINITY;
  for (int i = 0; i < splits; ++i) peak = fmaxf(peak, parts[i * (DEPTH + 2) + DEPTH]);
  const float base = peak == -INFINITY ? 0 : peak;
  float total = 0, sum = 0;
  for (int i = 0; i < splits; ++i) {
    const float* part = parts + i * (DEPTH + 2);
    const float factor = exp2f(part[DEPTH] - base);
    total += part[DEPTH + 1] * factor;
    sum += part[threadIdx.x] * factor;
  }
  out[batch * out_batch + (kv_head * group + row / queries) * out_head +
      row % queries * out_position + threadIdx.x] = to_element(sum / total);
}
#endif
