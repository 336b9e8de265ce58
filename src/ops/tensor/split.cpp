// Split: a tensor cut into pieces along an axis.
#include "base/arithmetic.h"
#include "ops/framework/element.h"
#include "ops/framework/indices.h"
#include "ops/framework/op_row.h"
#include "ops/framework/strided_copy.h"

namespace tenon {
namespace {

// Split-1 and 2; the former may have the sizes as input 1.
struct Split2Attrs {
  int64_t axis = 0;
  std::vector<int64_t> split;
  static constexpr auto Fields() {
    return std::tuple(Field("axis", &Split2Attrs::axis), Field("split", &Split2Attrs::split));
  }
};

// Split-13 and 18: the sizes are an input; 18 adds `num_outputs`, with a smaller last piece.
struct SplitAttrs {
  int64_t axis = 0;
  std::optional<int64_t> num_outputs;
  static constexpr auto Fields() {
    return std::tuple(Field("axis", &SplitAttrs::axis),
                      Field("num_outputs", &SplitAttrs::num_outputs));
  }
};

Status CheckSizes(std::span<const int64_t> sizes, size_t outputs, const Dim& whole) {
  if (sizes.size() != outputs) {
    return InvalidArgument("expected a size for each of the {} outputs, got {}", outputs,
                           Shape(sizes));
  }
  int64_t sum = 0;
  for (const int64_t size : sizes) {
    const auto next = CheckedAdd(sum, size);
    if (size < 0 || !next) return InvalidArgument("expected sizes >= 0, got {}", Shape(sizes));
    sum = *next;
  }
  if (whole.is_number() && sum != whole.value()) {
    return InvalidArgument("expected sizes that add up to {}, got {}", whole, Shape(sizes));
  }
  return OkStatus();
}

// Pieces of equal size; the last one may be smaller if `uneven`.
Result<Dim> EqualPiece(const Dim& whole, size_t outputs, bool uneven) {
  const Dim count(static_cast<int64_t>(outputs));
  if (!uneven && whole.is_number() && whole.value() % count.value() != 0) {
    return InvalidArgument("an axis of size {} cannot be split into {} equal parts", whole,
                           outputs);
  }
  return uneven ? CeilDiv(whole, count) : FloorDiv(whole, count);
}

Status InferPieces(int64_t requested_axis, std::optional<std::span<const int64_t>> sizes,
                   bool uneven, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(requested_axis, shape.rank()));
  const size_t outputs = context.output_count();
  const Dim whole = shape[axis];
  Dim piece;
  if (sizes) {
    TENON_RETURN_IF_ERROR(CheckSizes(*sizes, outputs, whole));
  } else {
    TENON_ASSIGN_OR_RETURN(piece, EqualPiece(whole, outputs, uneven));
  }
  const Dim last = whole - piece * Dim(static_cast<int64_t>(outputs) - 1);
  if (last.is_number() && last.value() < 0) {
    return InvalidArgument("an axis of size {} cannot be split into {} parts", whole, outputs);
  }
  for (size_t i = 0; i < outputs; ++i) {
    shape[axis] = sizes ? Dim((*sizes)[i]) : i + 1 == outputs ? last : piece;
    TENON_RETURN_IF_ERROR(context.SetOutput(i, shape));
  }
  return OkStatus();
}

Status InferSplit2(const Split2Attrs& attrs, ShapeContext& context) {
  if (context.HasInput(1)) {
    const Tensor* data = context.InputData(1);
    if (data == nullptr) TENON_RETURN_IF_ERROR(UnknownShape());
    TENON_ASSIGN_OR_RETURN(const Shape sizes, WholeNumbersOf(*data));
    return InferPieces(attrs.axis, sizes.dims(), false, context);
  }
  if (!attrs.split.empty()) return InferPieces(attrs.axis, attrs.split, false, context);
  return InferPieces(attrs.axis, std::nullopt, false, context);
}

Status InferSplit(const SplitAttrs& attrs, ShapeContext& context) {
  if (context.HasInput(1)) {
    if (attrs.num_outputs) {
      return InvalidArgument("expected either input 1 or attribute 'num_outputs', got both");
    }
    TENON_ASSIGN_OR_RETURN(const Shape sizes, context.InputAsInts(1));
    return InferPieces(attrs.axis, sizes.dims(), false, context);
  }
  const auto outputs = static_cast<int64_t>(context.output_count());
  if (attrs.num_outputs && *attrs.num_outputs != outputs) {
    return InvalidArgument("attribute 'num_outputs' is {}, but the node has {} outputs",
                           *attrs.num_outputs, outputs);
  }
  return InferPieces(attrs.axis, std::nullopt, attrs.num_outputs.has_value(), context);
}

// The size of each piece at run time, from `sizes` or else equal ones.
int64_t PieceSize(const Shape& sizes, size_t i, int64_t whole, int64_t outputs) {
  if (!sizes.empty()) return sizes[i];
  const int64_t piece = CeilDiv(whole, outputs);
  return std::min(piece, whole - piece * static_cast<int64_t>(i));
}

Status CopyPieces(int64_t requested_axis, const Shape& sizes, KernelContext& context) {
  const Tensor& input = context.Input(0);
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(requested_axis, input.rank()));
  const int64_t outer = input.shape().Product(0, axis);
  const int64_t inner = input.shape().Product(axis + 1, input.rank());
  const int64_t whole = input.shape()[axis];
  const size_t element_bytes = DataTypeBits(input.type()) / 8;
  const auto* source = static_cast<const char*>(input.raw());
  for (size_t i = 0; i < context.output_count(); ++i) {
    const int64_t row =
        inner * PieceSize(sizes, i, whole, static_cast<int64_t>(context.output_count()));
    if (context.HasOutput(i)) {
      StridedCopy copy(input.type());
      TENON_RETURN_IF_ERROR(copy.AddAxis(outer, whole * inner, row));
      TENON_RETURN_IF_ERROR(copy.AddAxis(row, 1, 1));
      TENON_RETURN_IF_ERROR(copy.Run(source, context.Output(i).raw(), context.threads()));
    }
    source += static_cast<size_t>(row) * element_bytes;
  }
  return OkStatus();
}

Status CopyPiecesOfInput(int64_t axis, const std::vector<int64_t>& split, KernelContext& context) {
  Shape sizes(split);
  if (context.HasInput(1)) {
    TENON_ASSIGN_OR_RETURN(sizes, WholeNumbersOf(context.Input(1)));
  }
  return CopyPieces(axis, sizes, context);
}

Status RunSplit2(const Split2Attrs& attrs, KernelContext& context) {
  return CopyPiecesOfInput(attrs.axis, attrs.split, context);
}

Status RunSplit(const SplitAttrs& attrs, KernelContext& context) {
  return CopyPiecesOfInput(attrs.axis, {}, context);
}

constexpr OpRow kRows[] = {
    Op<InferSplit2, RunSplit2>("Split", {.since = 1, .types = kWholeByteTypes}),
    Op<InferSplit, RunSplit>("Split", {.since = 13, .types = kWholeByteTypes}),
};

}  // namespace

TENON_OP_FAMILY(Split, kRows);

}  // namespace tenon
