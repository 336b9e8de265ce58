// Whether what a run is fed fits the declarations of the model.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/block_pool.h"
#include "base/status.h"
#include "ir/type.h"
#include "tensor/value.h"

namespace tenon {

// Serves one run: all uses of one symbolic dimension have the same size.
class FeedCheck {
 public:
  // `name` is that of the input. Error: kInvalidArgument for another kind, type or shape.
  Status Check(const std::string& name, const ValueType& declared, const Value& feed);

 private:
  // Symbolic dimensions and the sizes that feeds gave them.
  PooledVector<std::pair<std::string_view, int64_t>> symbols_;
};

}  // namespace tenon
