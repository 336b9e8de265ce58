// RemovePadding and RestorePadding of com.microsoft: remove and restore the padding after each
// sequence of a batch.
#include <algorithm>
#include <cstring>

#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// --- RemovePadding-1 ---

Status InferRemove(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.InputOfRank(0, 3));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape counts, context.InputOfRank(1, 1));
  if (counts[0].is_number() && x[0].is_number() && !(counts[0] == x[0])) {
    return InvalidArgument("input 1: expected [{}], got {}", x[0], counts);
  }
  Dim tokens = Dim::Unknown();
  if (const Tensor* data = context.InputData(1); data && x[1].is_number()) {
    int64_t total = 0;
    for (int64_t b = 0; b < data->size(); ++b) {
      const int32_t count = data->data<int32_t>()[b];
      if (count < 0 || count > x[1].value()) {
        return InvalidArgument("input 1: expected counts in [0, {}], got {}", x[1], count);
      }
      total += count;
    }
    tokens = Dim(total);
  }
  TENON_RETURN_IF_ERROR(context.SetOutput(1, {x[0], x[1]}, DataType::kInt32));
  TENON_RETURN_IF_ERROR(context.SetOutput(2, {x[0] + Dim(1)}, DataType::kInt32));
  TENON_RETURN_IF_ERROR(context.SetOutput(3, {Dim(1)}, DataType::kInt32));
  return context.SetOutput(0, {tokens, x[2]});
}

Status RunRemove(const NoAttrs&, KernelContext& context) {
  const Tensor& x = context.Input(0);
  const int64_t batch = x.shape()[0], length = x.shape()[1];
  const auto row_bytes = static_cast<size_t>(x.shape()[2]) * (DataTypeBits(x.type()) / 8);
  const int32_t* counts = context.Input(1).data<int32_t>();
  auto* into = static_cast<std::byte*>(context.Output(0).raw());
  int32_t* offsets = context.Output(1).data<int32_t>();
  int32_t* sums = context.Output(2).data<int32_t>();
  int32_t longest = 0;
  sums[0] = 0;
  for (int64_t b = 0; b < batch; ++b) {
    const auto bytes = static_cast<size_t>(counts[b]) * row_bytes;
    const auto* from = static_cast<const std::byte*>(x.raw());
    if (bytes > 0) std::memcpy(into, from + static_cast<size_t>(b * length) * row_bytes, bytes);
    into += bytes;
    sums[b + 1] = sums[b] + counts[b];
    longest = std::max(longest, counts[b]);
    for (int32_t i = 0; i < counts[b]; ++i) *offsets++ = static_cast<int32_t>(b * length) + i;
  }
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t i = counts[b]; i < length; ++i) *offsets++ = static_cast<int32_t>(b * length + i);
  }
  context.Output(3).data<int32_t>()[0] = longest;
  return OkStatus();
}

// --- RestorePadding-1 ---

Status InferRestore(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.InputOfRank(0, 2));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape offsets, context.InputOfRank(1, 2));
  return context.SetOutput(0, {offsets[0], offsets[1], x[1]});
}

Status RunRestore(const NoAttrs&, KernelContext& context) {
  const Tensor& x = context.Input(0);
  const Tensor& offsets = context.Input(1);
  Tensor& y = context.Output(0);
  const int64_t tokens = x.shape()[0], places = offsets.size();
  if (tokens > places) {
    return InvalidArgument("input 0: expected at most {} tokens, got {}", places, x.shape());
  }
  const size_t element = DataTypeBits(x.type()) / 8;
  const auto row_bytes = static_cast<size_t>(x.shape()[1]) * element;
  auto* into = static_cast<std::byte*>(y.raw());
  std::fill_n(into, static_cast<size_t>(y.size()) * element, std::byte{0});
  const auto* from = static_cast<const std::byte*>(x.raw());
  for (int64_t i = 0; i < tokens; ++i, from += row_bytes) {
    const int32_t offset = offsets.data<int32_t>()[i];
    if (offset < 0 || offset >= places) {
      return InvalidArgument("input 1: expected offsets in [0, {}), got {}", places, offset);
    }
    if (row_bytes > 0) std::memcpy(into + static_cast<size_t>(offset) * row_bytes, from, row_bytes);
  }
  return OkStatus();
}

constexpr TypeSet kTypes = {DataType::kFloat, DataType::kFloat16};

constexpr OpRow kRows[] = {
    Op<InferRemove, RunRemove>("RemovePadding", {.domain = "com.microsoft", .types = kTypes}),
    Op<InferRestore, RunRestore>("RestorePadding", {.domain = "com.microsoft", .types = kTypes}),
};

}  // namespace

TENON_OP_FAMILY(SequencePadding, kRows);

}  // namespace tenon
