// SplitToSequence and ConcatFromSequence: a tensor cut into a sequence along an axis, and joined.
#include <algorithm>
#include <optional>

#include "base/arithmetic.h"
#include "ops/framework/element.h"
#include "ops/framework/op_row.h"
#include "ops/framework/strided_copy.h"

namespace tenon {
namespace {

// SplitToSequence-11. Without sizes every slice is an element, without its axis if !keepdims. So it
// is with one size of 1 for all, although ONNX ignores keepdims then: PyTorch writes that for
// unbind, and ONNX Runtime reads it so.
struct SplitAttrs {
  int64_t axis = 0;
  bool keepdims = true;
  static constexpr auto Fields() {
    return std::tuple(Field("axis", &SplitAttrs::axis), Field("keepdims", &SplitAttrs::keepdims));
  }
};

// An element without one of the axes, if the sizes are known.
std::optional<bool> DropsAxis(const SplitAttrs& attrs, ShapeContext& context) {
  if (attrs.keepdims || !context.HasInput(1)) return !attrs.keepdims;
  const Result<SymbolicShape> sizes = context.Input(1);
  if (!sizes) return std::nullopt;
  if (sizes->rank() != 0) return false;
  const Result<Shape> size = context.InputAsInts(1);
  return size ? std::optional((*size)[0] == 1) : std::nullopt;
}

Status InferSplit(const SplitAttrs& attrs, ShapeContext& context) {
  const DataType type = context.ElementType(0);
  const Result<SymbolicShape> shape = context.Input(0);
  if (!shape) {
    if (!IsUnknownShape(shape.error())) return shape.error();
    return context.SetOutputType(0, ValueType::Sequence(ValueType::Tensor(type)));
  }
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, shape->rank()));
  Dims dims = shape->dims();
  const std::optional<bool> drops_axis = DropsAxis(attrs, context);
  if (!drops_axis) return context.SetOutputType(0, ValueType::Sequence(ValueType::Tensor(type)));
  if (*drops_axis) {
    dims.erase(dims.begin() + static_cast<ptrdiff_t>(axis));
  } else {
    dims[axis] = context.HasInput(1) ? Dim::Unknown() : Dim(1);
  }
  SymbolicShape element(std::move(dims));
  return context.SetOutputType(0, ValueType::Sequence(ValueType::Tensor(type, std::move(element))));
}

// The size of each piece of an axis of `whole` elements.
Result<std::vector<int64_t>> PieceSizes(KernelContext& context, int64_t whole) {
  if (!context.HasInput(1)) return std::vector<int64_t>(static_cast<size_t>(whole), 1);
  const Tensor& split = context.Input(1);
  TENON_ASSIGN_OR_RETURN(const Shape given, IntegersOf(split));
  if (split.rank() == 0) {
    if (given[0] < 1) return InvalidArgument("input 1: expected a size >= 1, got {}", given[0]);
    std::vector<int64_t> sizes;
    for (int64_t left = whole; left > 0; left -= sizes.back()) {
      sizes.push_back(std::min(left, given[0]));
    }
    return sizes;
  }
  int64_t sum = 0;
  for (const int64_t size : given) {
    const auto next = CheckedAdd(sum, size);
    if (size < 0 || !next) return InvalidArgument("input 1: expected sizes >= 0, got {}", given);
    sum = *next;
  }
  if (sum != whole) {
    return InvalidArgument("input 1: expected a list of sizes that add up to {}, got {}", whole,
                           given);
  }
  return std::vector<int64_t>(given.begin(), given.end());
}

// Whether each piece is to have one element of the axis.
Result<bool> IsCutInOnes(KernelContext& context) {
  if (!context.HasInput(1)) return true;
  if (context.Input(1).rank() != 0) return false;
  TENON_ASSIGN_OR_RETURN(const Shape size, IntegersOf(context.Input(1)));
  return size[0] == 1;
}

// Copies between a piece and its tensor, in which it occupies [begin, begin + size) of the axis.
struct AxisCopy {
  int64_t outer, whole, inner;  // of the whole tensor
  DataType type;

  static AxisCopy Of(const Tensor& tensor, size_t axis) {
    return {tensor.shape().Product(0, axis), tensor.shape()[axis],
            tensor.shape().Product(axis + 1, tensor.rank()), tensor.type()};
  }
  size_t OffsetBytes(int64_t begin) const {
    return static_cast<size_t>(begin * inner) * (DataTypeBits(type) / 8);
  }
  Status FromWhole(const Tensor& tensor, int64_t begin, int64_t size, Tensor& piece,
                   ThreadPool& threads) const {
    const void* source = static_cast<const char*>(tensor.raw()) + OffsetBytes(begin);
    StridedCopy copy(type);
    TENON_RETURN_IF_ERROR(copy.AddAxis(outer, whole * inner, size * inner));
    TENON_RETURN_IF_ERROR(copy.AddAxis(size * inner, 1, 1));
    return copy.Run(source, piece.raw(), threads);
  }
  Status IntoWhole(const Tensor& piece, int64_t begin, int64_t size, Tensor& tensor,
                   ThreadPool& threads) const {
    void* target = static_cast<char*>(tensor.raw()) + OffsetBytes(begin);
    StridedCopy copy(type);
    TENON_RETURN_IF_ERROR(copy.AddAxis(outer, size * inner, whole * inner));
    TENON_RETURN_IF_ERROR(copy.AddAxis(size * inner, 1, 1));
    return copy.Run(piece.raw(), target, threads);
  }
};

Shape WithoutAxis(const Shape& shape, size_t axis) {
  Shape rest;
  for (size_t i = 0; i < shape.rank(); ++i) {
    if (i != axis) rest.Append(shape[i]);
  }
  return rest;
}

Shape WithAxis(const Shape& shape, size_t axis, int64_t size) {
  Shape result;
  for (size_t i = 0; i <= shape.rank(); ++i) {
    if (i == axis) result.Append(size);
    if (i < shape.rank()) result.Append(shape[i]);
  }
  return result;
}

Status RunSplit(const SplitAttrs& attrs, KernelContext& context) {
  const Tensor& input = context.Input(0);
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, input.rank()));
  TENON_ASSIGN_OR_RETURN(const std::vector<int64_t> sizes,
                         PieceSizes(context, input.shape()[axis]));
  TENON_ASSIGN_OR_RETURN(const bool is_cut_in_ones, IsCutInOnes(context));
  const bool drops_axis = !attrs.keepdims && is_cut_in_ones;
  const AxisCopy copy = AxisCopy::Of(input, axis);
  auto sequence = std::make_shared<Sequence>();
  sequence->element_type = input.type();
  sequence->elements.reserve(sizes.size());
  int64_t begin = 0;
  for (const int64_t size : sizes) {
    Shape shape = input.shape();
    shape[axis] = size;
    if (drops_axis) shape = WithoutAxis(shape, axis);
    TENON_ASSIGN_OR_RETURN(Tensor piece, context.AllocateTensor(input.type(), shape));
    TENON_RETURN_IF_ERROR(copy.FromWhole(input, begin, size, piece, context.threads()));
    sequence->elements.emplace_back(std::move(piece));
    begin += size;
  }
  context.SetOutput(0, std::move(sequence));
  return OkStatus();
}

// ConcatFromSequence-11: with new_axis the elements, all of one shape, are stacked.
struct ConcatAttrs {
  int64_t axis = 0;
  bool new_axis = false;
  static constexpr auto Fields() {
    return std::tuple(Field("axis", &ConcatAttrs::axis), Field("new_axis", &ConcatAttrs::new_axis));
  }
};

Status InferConcat(const ConcatAttrs& attrs, ShapeContext& context) {
  const ValueType sequence = context.InputType(0);
  if (!sequence.held) return UnknownShape();
  ValueType type = ValueType::Tensor(sequence.held->element_type);
  if (sequence.held->shape) {
    Dims dims = sequence.held->shape->dims();
    TENON_ASSIGN_OR_RETURN(const size_t axis,
                           NormalizeAxis(attrs.axis, dims.size() + (attrs.new_axis ? 1 : 0)));
    if (attrs.new_axis) {
      dims.insert(dims.begin() + static_cast<ptrdiff_t>(axis), Dim::Unknown());
    } else {
      dims[axis] = Dim::Unknown();
    }
    type.shape = SymbolicShape(std::move(dims));
  }
  return context.SetOutputType(0, std::move(type));
}

// The size along `axis` of the joined elements, which must agree off the axis.
Result<int64_t> JoinedSize(const Sequence& sequence, size_t axis, bool new_axis) {
  const Shape& first = sequence.elements[0].tensor().shape();
  int64_t size = 0;
  for (size_t i = 0; i < sequence.elements.size(); ++i) {
    const Shape& shape = sequence.elements[i].tensor().shape();
    Shape expected = first;
    if (!new_axis && shape.rank() == first.rank()) expected[axis] = shape[axis];
    if (!(shape == expected)) {
      return InvalidArgument("element {}: expected a shape like {} of element 0{}, got {}", i,
                             first, new_axis ? "" : Format(" but for axis {}", axis), shape);
    }
    const auto sum = CheckedAdd(size, new_axis ? 1 : shape[axis]);
    if (!sum) return InvalidArgument("the elements are too long to be joined");
    size = *sum;
  }
  return size;
}

Status RunConcat(const ConcatAttrs& attrs, KernelContext& context) {
  const Sequence& sequence = context.InputValue(0).sequence();
  if (sequence.elements.empty()) {
    return InvalidArgument("input 0: expected a sequence of at least one tensor, got none");
  }
  const Tensor& first = sequence.elements[0].tensor();
  TENON_ASSIGN_OR_RETURN(const size_t axis,
                         NormalizeAxis(attrs.axis, first.rank() + (attrs.new_axis ? 1 : 0)));
  TENON_ASSIGN_OR_RETURN(const int64_t size, JoinedSize(sequence, axis, attrs.new_axis));
  Shape shape = first.shape();
  if (attrs.new_axis) {
    shape = WithAxis(shape, axis, size);
  } else {
    shape[axis] = size;
  }
  TENON_ASSIGN_OR_RETURN(Tensor * output, context.AllocateOutput(0, first.type(), shape));
  const AxisCopy copy = AxisCopy::Of(*output, axis);
  int64_t begin = 0;
  for (const Value& element : sequence.elements) {
    const Tensor& piece = element.tensor();
    const int64_t piece_size = attrs.new_axis ? 1 : piece.shape()[axis];
    TENON_RETURN_IF_ERROR(copy.IntoWhole(piece, begin, piece_size, *output, context.threads()));
    begin += piece_size;
  }
  return OkStatus();
}

constexpr KernelTraits kAllocates = {.allocates_outputs = true};

constexpr OpRow kRows[] = {
    Op<InferSplit, RunSplit>("SplitToSequence",
                             {.since = 11, .types = kWholeByteTypes, .traits = kAllocates}),
    Op<InferConcat, RunConcat>("ConcatFromSequence", {.since = 11, .traits = kAllocates}),
};

}  // namespace

TENON_OP_FAMILY(SplitToSequence, kRows);

}  // namespace tenon
