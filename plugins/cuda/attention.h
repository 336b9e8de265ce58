// Attention without the matrix of scores.
#pragma once

#include "device_call.h"

namespace cuda {

struct AttentionInputs {
  TensorRef q;        // [batch, heads, queries, depth]
  TensorRef k;        // [batch, heads / n, keys, depth]
  TensorRef v;        // as k
  TensorRef mask;     // broadcasts to [batch, heads, queries, keys]; may be null
  TensorRef lengths;  // int32 [batch]: keys of each batch, less length_offset; may be null: all
  float scale = 1;
  float masked = 0;  // the score where a mask of type bool is false; other masks are added
  bool is_causal = false;
  int window = 0;  // keys that a query sees; 0: all
  float softcap = 0;
  int length_offset = 0;
};

// Whether CanAttend's types and depth are those of the kernel: float16 or bfloat16, a multiple of 8
// up to 256.
bool CanAttend(DataType type, int64_t depth);

// softmax(q k' * scale + mask) v: deferred, of q's shape, in memory as [batch, queries, heads,
// depth].
Result<TensorRef> Attend(Planner& planner, const AttentionInputs& inputs);

}  // namespace cuda
