// Shared by com.microsoft's operators whose query heads share keys and values: inputs 0 to 2 are
// query, key and value. Key and value may be packed after the query's heads.
#pragma once

#include "ops/attention/head_rows.h"

namespace tenon {

struct GroupedHeads {
  int64_t heads = 1;     // of queries
  int64_t kv_heads = 1;  // of keys, and of values
};

// Checks that there are heads, and equally many query heads for each key head.
Status CheckGroups(const GroupedHeads& groups);

// The heads in a row of the query, with those of keys and values if these are packed into it.
// Error: more than there can be.
Result<int64_t> HeadsInQuery(const GroupedHeads& groups, const ShapeContext& context);

// The size of a head of the query `q`, [batch, length, all heads]; checks that key and value fit.
Result<Dim> GroupedHeadSize(const GroupedHeads& groups, const SymbolicShape& q,
                            const ShapeContext& context);

// Checks that inputs `cos` and the next one are tables of angles, [positions, angles], that rotate
// at most `most` elements of a head.
Status CheckAngleTables(const ShapeContext& context, size_t cos, const Dim& most);

// The rotation by these tables.
Rotation RotationOf(const KernelContext& context, size_t cos, bool interleaved);

// Query, key and value of [batch, length, all heads], whose shapes have passed GroupedHeadSize.
struct GroupedSources {
  HeadSource q, k, v;
  size_t size = 0;  // of a head
};
GroupedSources GroupedSourcesOf(const GroupedHeads& groups, const KernelContext& context);

}  // namespace tenon
