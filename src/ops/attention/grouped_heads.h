// Shared by com.microsoft's operators whose query heads share keys and values: inputs 0 to 2 are
// query, key and value. Key and value may be packed after the query's heads.
#pragma once

#include <optional>

#include "ops/attention/head_rows.h"
#include "ops/framework/attributes.h"

namespace tenon {

// Attributes of all these operators.
struct GroupedAttrs {
  int64_t heads = 1;           // of queries
  int64_t kv_heads = 1;        // of keys, and of values
  std::optional<float> scale;  // of scores; 0 is none, too
  bool do_rotary = false, rotary_interleaved = false;
  static constexpr auto Fields() {
    using A = GroupedAttrs;
    return std::tuple(Field("num_heads", &A::heads), Field("kv_num_heads", &A::kv_heads),
                      Field("scale", &A::scale), Field("do_rotary", &A::do_rotary),
                      Field("rotary_interleaved", &A::rotary_interleaved));
  }
};

// Further ones of those with windows and normalization.
struct WindowedAttrs : GroupedAttrs {
  float softcap = 0;
  int64_t local_window = -1;  // keys that a query sees, its own included; negative: all before it
  float norm_epsilon = 1e-6f;
  static constexpr auto Fields() {
    using A = WindowedAttrs;
    return std::tuple_cat(
        GroupedAttrs::Fields(),
        std::tuple(Field("softcap", &A::softcap), Field("local_window_size", &A::local_window),
                   Field("qk_norm_epsilon", &A::norm_epsilon)));
  }
  // The first key that a query at `position` sees.
  size_t WindowBegin(size_t position) const {
    const bool is_local = local_window >= 0 && position + 1 > static_cast<size_t>(local_window);
    return is_local ? position + 1 - static_cast<size_t>(local_window) : 0;
  }
};

// Checks that there are heads, and equally many query heads for each key head.
Status CheckGroups(const GroupedAttrs& attrs);

// The heads in a row of the query, with those of keys and values if these are packed into it.
// Error: more than there can be.
Result<int64_t> HeadsInQuery(const GroupedAttrs& attrs, const ShapeContext& context);

// The size of a head of the query `q`, [batch, length, all heads]; checks that key and value fit,
// which have `keys` rows.
Result<Dim> GroupedHeadSize(const GroupedAttrs& attrs, const SymbolicShape& q, const Dim& keys,
                            const ShapeContext& context);

// Checks that inputs `cos` and the next one are tables of angles, [positions, angles], that rotate
// at most `most` elements of a head.
Status CheckAngleTables(const ShapeContext& context, size_t cos, const Dim& most);

// What a run of such an operator begins with.
class GroupedRun {
 protected:
  // The query is [batch, length, all heads], or [length, all heads] of one batch; the shapes have
  // been checked. `cos` and the next input are the tables of angles.
  GroupedRun(const GroupedAttrs& attrs, KernelContext& context, size_t cos);

  // Normalizes a row by the weights in input `norm`, if it is given.
  void Normalize(size_t norm, float epsilon, float* row) const;

  KernelContext& context_;
  const size_t heads_, kv_heads_;
  size_t batch_ = 1, queries_ = 0;
  size_t keys_ = 0;       // rows of key and value: as many as of the query, or none
  size_t size_ = 0;       // of a head
  HeadSource q_, k_, v_;  // v_ has no data if the operator has no values
  Rotation rotation_;     // if there is one
  float scale_ = 1;       // of scores
};

}  // namespace tenon
