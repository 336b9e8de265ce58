// The cache of keys or of values after a step: [batch, heads, all, depth], where the positions that
// the last cache has are copied, unless it is the same memory, and the new ones come behind them.
// How many there are then: lengths[batch] + 1. A thread copies 16 bytes.
//
// Defined before: ELEMENT (1 or 2), DEPTH (a multiple of 8), HAS_PAST.

#if HAS_PAST
#define PAST const element *past,
#else
#define PAST
#endif

extern "C" __global__ void __launch_bounds__(256)
    append_cache(const element* fresh, PAST const int* lengths, element* present, int count,
                 int heads, int length, int past_length, int all, long fresh_batch, long fresh_head,
                 long fresh_position) {
  const int item = blockIdx.x * 256 + threadIdx.x;
  if (item >= count) return;
  const int column = item % (DEPTH / 8) * 8, position = item / (DEPTH / 8) % all;
  const int pair = item / (DEPTH / 8) / all, batch = pair / heads, head = pair % heads;
  const int before = max(0, lengths[batch] + 1 - length);
  element* to = present + ((long)pair * all + position) * DEPTH + column;
  if (position >= before && position < before + length) {
    *(uint4*)to = *(const uint4*)(fresh + batch * fresh_batch + head * fresh_head +
                                  (position - before) * fresh_position + column);
    return;
  }
#if HAS_PAST
  if (position < before && position < past_length && past != present) {
    *(uint4*)to = *(const uint4*)(past + ((long)pair * past_length + position) * DEPTH + column);
  }
#endif
}
