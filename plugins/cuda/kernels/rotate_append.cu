// A step of a decoder before its attention: queries and keys are turned by their positions' angles,
// the keys and values come behind those that the caches have. A thread does two elements of a head:
// of the queries, then of the keys, then of the values.
//
// The new elements are [batch, heads, length, DEPTH] with strides for batch, head and position; the
// turned queries become [batch, length, heads, DEPTH]; the caches are [batch, kv_heads, all,
// DEPTH]. Each batch has lengths[batch] + 1 positions then.
//
// Defined before: ELEMENT, DEPTH (even), ROTATED (elements of a head that are turned; 0: none),
// INTERLEAVED (1: pairs are neighbours; 0: halves apart).

#if ROTATED
#define CACHES const element *cosines, const element *sines,
#else
#define CACHES
#endif

extern "C" __global__ void __launch_bounds__(256)
    rotate_append(const element* q, const element* k, const element* v, const int* lengths,
                  CACHES element* present_k, element* present_v, element* q_out, int count,
                  int heads, int kv_heads, int length, int all, long q_batch, long q_head,
                  long q_position, long k_batch, long k_head, long k_position, long v_batch,
                  long v_head, long v_position) {
  const int item = blockIdx.x * 256 + threadIdx.x;
  if (item >= count) return;
  const int all_heads = heads + 2 * kv_heads;
  const int pair = item % (DEPTH / 2), head = item / (DEPTH / 2) % all_heads;
  const int place = item / (DEPTH / 2) / all_heads % length;
  const int batch = item / (DEPTH / 2) / all_heads / length;
  const long position = max(0, lengths[batch] + 1 - length) + place;
  const element* from;
  element* to;
  if (head < heads) {
    from = q + batch * q_batch + head * q_head + place * q_position;
    to = q_out + (((long)batch * length + place) * heads + head) * DEPTH;
  } else {
    if (position >= all) return;  // no room
    const int kv_head = (head - heads) % kv_heads;
    const bool is_key = head < heads + kv_heads;
    from = is_key ? k + batch * k_batch + kv_head * k_head + place * k_position
                  : v + batch * v_batch + kv_head * v_head + place * v_position;
    to = (is_key ? present_k : present_v) +
         (((long)batch * kv_heads + kv_head) * all + position) * DEPTH;
  }
#if ROTATED
  if (head < heads + kv_heads && pair < ROTATED / 2) {
    const float cosine = to_float(cosines[position * (ROTATED / 2) + pair]);
    const float sine = to_float(sines[position * (ROTATED / 2) + pair]);
    const int i = INTERLEAVED ? 2 * pair : pair;
    const int j = INTERLEAVED ? 2 * pair + 1 : pair + ROTATED / 2;
    const float a = to_float(from[i]), b = to_float(from[j]);
    to[i] = to_element(a * cosine - b * sine);
    to[j] = to_element(b * cosine + a * sine);
    return;
  }
#endif
  to[2 * pair] = from[2 * pair];
  to[2 * pair + 1] = from[2 * pair + 1];
}

// The positions that the last caches have, for caches in other memory. A thread copies 16 bytes of
// both.
extern "C" __global__ void __launch_bounds__(256)
    copy_cache(const element* past_k, const element* past_v, const int* lengths, element* present_k,
               element* present_v, int count, int kv_heads, int length, int past_length, int all) {
  const int item = blockIdx.x * 256 + threadIdx.x;
  if (item >= count) return;
  const int column = item % (DEPTH / 8) * 8, position = item / (DEPTH / 8) % past_length;
  const int pair = item / (DEPTH / 8) / past_length;
  if (position >= max(0, lengths[pair / kv_heads] + 1 - length)) return;
  const long from = ((long)pair * past_length + position) * DEPTH + column;
  const long to = ((long)pair * all + position) * DEPTH + column;
  *(uint4*)(present_k + to) = *(const uint4*)(past_k + from);
  *(uint4*)(present_v + to) = *(const uint4*)(past_v + from);
}
