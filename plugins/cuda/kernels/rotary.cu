// Rotary position embedding: pairs of the first `rotated` of DEPTH elements are turned by angles
// whose cosines and sines stand in rows of the caches, one row for each position. A thread does a
// pair; the rest is copied.
//
// x and out are [batch, heads, positions, DEPTH] with strides for batch, head and position.
//
// Defined before: ELEMENT, DEPTH (even), INTERLEAVED (1: pairs are neighbours; 0: halves apart),
// POSITIONS (0: the last of lengths[batch] + 1; 1: each is given; 2: the first is given).

#if POSITIONS == 0
#define PLACES const int* lengths
#else
#define PLACES const long* positions
#endif

extern "C" __global__ void __launch_bounds__(256)
    rotary(const element* x, const element* cosines, const element* sines, PLACES, element* out,
           int count, int heads, int length, int rotated, long x_batch, long x_head,
           long x_position, long out_batch, long out_head, long out_position) {
  const int item = blockIdx.x * 256 + threadIdx.x;
  if (item >= count) return;
  const int pair = item % (DEPTH / 2), place = item / (DEPTH / 2) % length;
  const int head = item / (DEPTH / 2) / length % heads, batch = item / (DEPTH / 2) / length / heads;
  const element* from = x + batch * x_batch + head * x_head + place * x_position;
  element* to = out + batch * out_batch + head * out_head + place * out_position;
  const int half = rotated / 2;
  if (pair >= half) {
    const int i = rotated + 2 * (pair - half);
    to[i] = from[i];
    to[i + 1] = from[i + 1];
    return;
  }
#if POSITIONS == 0
  const long position = max(0, lengths[batch] + 1 - length) + place;
#elif POSITIONS == 1
  const long position = positions[(long)batch * length + place];
#else
  const long position = positions[0] + place;
#endif
  const float cosine = to_float(cosines[position * half + pair]);
  const float sine = to_float(sines[position * half + pair]);
  const int i = INTERLEAVED ? 2 * pair : pair;
  const int j = INTERLEAVED ? 2 * pair + 1 : pair + half;
  const float a = to_float(from[i]), b = to_float(from[j]);
  to[i] = to_element(a * cosine - b * sine);
  to[j] = to_element(b * cosine + a * sine);
}
