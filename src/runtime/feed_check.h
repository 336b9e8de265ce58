// Whether what a run is fed fits the declarations of the model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/block_pool.h"
#include "base/status.h"
#include "ir/type.h"
#include "tensor/value.h"

namespace tenon {

// For each axis of a tensor's declared type the number of its symbol, or kNoSymbol.
using AxisSymbols = PooledVector<size_t>;
inline constexpr size_t kNoSymbol = SIZE_MAX;

// Gives the symbols of declared types numbers from 0 on, so that runs compare no names. The types
// outlive it.
class SymbolNumbers {
 public:
  // `has_any`: otherwise no axis has a symbol.
  explicit SymbolNumbers(bool has_any = true) : has_any_(has_any) {}

  AxisSymbols Of(const ValueType& declared);

 private:
  bool has_any_;
  std::unordered_map<std::string_view, size_t, std::hash<std::string_view>, std::equal_to<>,
                     PoolAllocator<std::pair<const std::string_view, size_t>>>
      numbers_;
};

// Serves one run: all uses of one symbol have the same size.
class FeedCheck {
 public:
  // `is_only_input`: the graph has one input, whose name texts need not tell.
  explicit FeedCheck(bool is_only_input) : is_only_input_(is_only_input) {}

  // `name` is that of the input, `symbols` are those of `declared`. A scalar may come with any
  // number of axes of size 1. Error: kInvalidArgument for another kind, type or shape.
  Status Check(const std::string& name, const ValueType& declared, const AxisSymbols& symbols,
               const Value& feed);
  // Whether Check failed because two uses of a symbol differ.
  bool has_unequal_names() const { return has_unequal_names_; }

 private:
  // The size that the symbol had first: `size` if it had none.
  int64_t FirstSizeOf(size_t symbol, int64_t size);

  const bool is_only_input_;
  PooledVector<int64_t> sizes_;  // that feeds gave the symbols; -1: none yet
  bool has_unequal_names_ = false;
};

}  // namespace tenon
