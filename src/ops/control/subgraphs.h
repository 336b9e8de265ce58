// Shared by the operators with subgraphs.
#pragma once

#include <string_view>
#include <vector>

#include "runtime/kernel_context.h"

namespace tenon {

// The index in Node::Subgraphs() of the attribute's graph. Error: kInvalidArgument if it is
// missing.
Result<size_t> SubgraphIndex(const Node& node, std::string_view attribute);

// The one bool in a tensor.
Result<bool> ConditionOf(const Tensor& condition);

// The type without known shapes, also those of contained elements.
ValueType WithoutShapes(const ValueType& type);

// The type of output `output`, which comes from one place as `a` or from another as `b`; shapes may
// differ. Error: kInvalidArgument if their elements are known to have different types.
Result<ValueType> JoinTypes(const ValueType& a, const ValueType& b, size_t output);

// Copies `count` elements of `from`, from `from_first` on, to those of `into`, of the same type,
// from `first` on. Packed elements too.
void CopyElements(const Tensor& from, int64_t from_first, int64_t count, Tensor& into,
                  int64_t first);
// The same of all of `from`.
void CopyElements(const Tensor& from, int64_t first, Tensor& into);

// The elements of `from` from `first` on, as many as `shape` has: a view that keeps the memory, or
// a copy of packed ones that begin within a byte. Error: out of memory.
Result<Tensor> ElementsFrom(const Tensor& from, int64_t first, const Shape& shape);

// Error: kInvalidArgument unless `part` is a tensor like `first`, which is from an earlier
// iteration.
Status CheckSameAs(const Tensor& first, const Value& part, size_t output);

// The shape of output `i` without any iteration: 0 along `axis`, and where it is unknown.
Shape EmptyShape(const ValueType& type, size_t axis);

}  // namespace tenon
