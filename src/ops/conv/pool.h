// Attributes and shapes of pools, for NCHW and the blocked layout.
#pragma once

#include "ir/shape_context.h"
#include "ops/conv/window.h"

namespace tenon {

// MaxPool-12.
struct MaxPoolAttrs : WindowAttrs {
  bool ceil_mode = false;
  bool storage_order = false;  // of the indices: true counts the first spatial dimension fastest
  static constexpr auto Fields() {
    using A = MaxPoolAttrs;
    return std::tuple_cat(
        WindowAttrs::Fields(),
        std::tuple(Field("ceil_mode", &A::ceil_mode), Field("storage_order", &A::storage_order)));
  }
};

// AveragePool-19.
struct AveragePoolAttrs : WindowAttrs {
  bool ceil_mode = false;
  bool count_include_pad = false;
  static constexpr auto Fields() {
    using A = AveragePoolAttrs;
    return std::tuple_cat(WindowAttrs::Fields(),
                          std::tuple(Field("ceil_mode", &A::ceil_mode),
                                     Field("count_include_pad", &A::count_include_pad)));
  }
};

// [N, C, spatial...] of a pool of `x`, [N, C, spatial...], with `most` spatial axes at most.
Result<SymbolicShape> PoolOutput(const WindowAttrs& attrs, bool ceil_mode, const SymbolicShape& x,
                                 size_t most = kMaxWindowRank);

}  // namespace tenon
