// Col2Im: adds up overlapping blocks to an image.
#include <algorithm>
#include <array>

#include "base/arithmetic.h"
#include "kernels/elementwise/elementwise.h"
#include "ops/framework/element.h"
#include "ops/framework/element_type.h"
#include "ops/framework/op_row.h"
#include "ops/framework/strided_copy.h"

namespace tenon {
namespace {

constexpr size_t kMaxSpatialRank = 30;

// Col2Im-18.
struct Col2ImAttrs {
  std::vector<int64_t> dilations, pads, strides;
  static constexpr auto Fields() {
    return std::tuple(Field("dilations", &Col2ImAttrs::dilations),
                      Field("pads", &Col2ImAttrs::pads), Field("strides", &Col2ImAttrs::strides));
  }
};

// One spatial axis: `steps` blocks of `block` elements each.
struct BlockAxis {
  int64_t image = 1, block = 1, steps = 1, dilation = 1, stride = 1, pad = 0;
  // The position of element k of the first block in the image.
  int64_t First(int64_t k) const { return k * dilation - pad; }
};

struct BlockAxes {
  size_t rank = 0;
  std::array<BlockAxis, kMaxSpatialRank> axes;
  int64_t block = 1;  // elements of a block
  int64_t steps = 1;  // blocks
};

// Attribute number `i` of a list that may be left out. Bounded, so that sums of products fit.
Result<int64_t> NumberOf(std::string_view name, const std::vector<int64_t>& list, size_t count,
                         size_t i, int64_t least, int64_t fallback) {
  if (list.empty()) return fallback;
  if (list.size() != count) {
    return InvalidArgument("attribute '{}': expected {} numbers, got {}", name, count, list.size());
  }
  if (list[i] < least || list[i] > INT32_MAX) {
    return InvalidArgument("attribute '{}': expected numbers in [{}, {}], got {}", name, least,
                           INT32_MAX, list[i]);
  }
  return list[i];
}

Result<BlockAxes> AxesOf(const Col2ImAttrs& attrs, std::span<const int64_t> image,
                         std::span<const int64_t> block) {
  BlockAxes result;
  result.rank = image.size();
  if (result.rank != block.size()) {
    return InvalidArgument("expected as many sizes of the image as of a block, got {} and {}",
                           result.rank, block.size());
  }
  if (result.rank > kMaxSpatialRank) {
    return NotImplemented("{} spatial axes; at most {} are served", result.rank, kMaxSpatialRank);
  }
  for (size_t i = 0; i < result.rank; ++i) {
    BlockAxis& axis = result.axes[i];
    if (image[i] < 0 || image[i] > INT32_MAX || block[i] < 1 || block[i] > INT32_MAX) {
      return InvalidArgument("expected blocks of at least 1 in an image, got {} in {}", block[i],
                             image[i]);
    }
    axis.image = image[i];
    axis.block = block[i];
    TENON_ASSIGN_OR_RETURN(axis.dilation,
                           NumberOf("dilations", attrs.dilations, result.rank, i, 1, 1));
    TENON_ASSIGN_OR_RETURN(axis.stride, NumberOf("strides", attrs.strides, result.rank, i, 1, 1));
    TENON_ASSIGN_OR_RETURN(axis.pad, NumberOf("pads", attrs.pads, 2 * result.rank, i, 0, 0));
    TENON_ASSIGN_OR_RETURN(const int64_t pad_end,
                           NumberOf("pads", attrs.pads, 2 * result.rank, result.rank + i, 0, 0));
    const int64_t free = axis.image + axis.pad + pad_end - ((axis.block - 1) * axis.dilation + 1);
    if (free < 0) {
      return InvalidArgument("axis {}: a block of {} does not fit into the padded image of {}", i,
                             axis.block, axis.image + axis.pad + pad_end);
    }
    axis.steps = free / axis.stride + 1;
    const auto blocks = CheckedMul(result.steps, axis.steps);
    const auto elements = CheckedMul(result.block, axis.block);
    if (!blocks || !elements) return InvalidArgument("expected blocks that memory can hold");
    result.steps = *blocks;
    result.block = *elements;
  }
  return result;
}

Status InferCol2Im(const Col2ImAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.InputOfRank(0, 3));
  TENON_ASSIGN_OR_RETURN(const Shape image, context.InputAsInts(1));
  TENON_ASSIGN_OR_RETURN(const Shape block, context.InputAsInts(2));
  TENON_ASSIGN_OR_RETURN(const BlockAxes axes, AxesOf(attrs, image.dims(), block.dims()));
  if (x[1].is_number() && x[1].value() % axes.block != 0) {
    return InvalidArgument("input 0: expected a multiple of the block's {} elements, got {}",
                           axes.block, x);
  }
  if (x[2].is_number() && x[2].value() != axes.steps) {
    return InvalidArgument("input 0: expected {} blocks, got {}", axes.steps, x);
  }
  SymbolicShape y = {x[0], FloorDiv(x[1], Dim(axes.block))};
  for (const int64_t size : image) y.Append(Dim(size));
  return context.SetOutput(0, std::move(y));
}

template <class T>
void Accumulate(T& sum, const T& x) {
  if constexpr (std::is_same_v<T, bool>) {
    sum = sum || x;
  } else if constexpr (std::is_same_v<T, std::string>) {
    sum += x;
  } else if constexpr (std::is_integral_v<T>) {
    sum = static_cast<T>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(x));
  } else {
    sum = static_cast<T>(Widen(sum) + Widen(x));
  }
}

// The kernel of y += x; null for types without one.
template <class T>
kernels::BinaryFunction RowAddition() {
  if constexpr (std::is_arithmetic_v<T> && !std::is_same_v<T, bool>) {
    const kernels::ElementType type = *ElementTypeOf(DataTypeOf<T>());
    return kernels::FindBinary(kernels::BinaryOp::kAdd, type).vector_vector;
  }
  return nullptr;
}

// The steps along an axis whose element k lies inside the image: [begin, end).
struct StepRange {
  int64_t begin, end;
};
StepRange StepsInside(const BlockAxis& axis, int64_t k) {
  const int64_t first = axis.First(k);
  const int64_t begin = first >= 0 ? 0 : CeilDiv(-first, axis.stride);
  const int64_t end = first >= axis.image ? 0 : (axis.image - 1 - first) / axis.stride + 1;
  return {begin, std::max(begin, std::min(end, axis.steps))};
}

// The positions of an element of all blocks, plane by plane of the last two axes: rows of n
// elements each, `pitch` apart in the input and `image_pitch` in the image, where elements are
// `stride` apart.
struct AddedPlane {
  std::array<int64_t, kMaxSpatialRank> element{};  // its place in a block
  int64_t rows = 0, n = 0, pitch = 0, image_pitch = 0, stride = 0;
  int64_t from = 0, to = 0;  // the first one's places
};

AddedPlane PlaneOf(const BlockAxes& axes, int64_t k) {
  AddedPlane plane;
  for (size_t i = axes.rank; i-- > 0; k /= axes.axes[i].block) {
    plane.element[i] = k % axes.axes[i].block;
  }
  const BlockAxis& last = axes.axes[axes.rank - 1];
  const int64_t of_last = plane.element[axes.rank - 1];
  const StepRange columns = StepsInside(last, of_last);
  plane.n = columns.end - columns.begin;
  plane.rows = 1;
  plane.pitch = last.steps;
  plane.stride = last.stride;
  plane.from = columns.begin;
  plane.to = last.First(of_last) + columns.begin * last.stride;
  if (axes.rank == 1) return plane;
  const BlockAxis& second = axes.axes[axes.rank - 2];
  const int64_t of_second = plane.element[axes.rank - 2];
  const StepRange rows = StepsInside(second, of_second);
  plane.rows = plane.n > 0 ? rows.end - rows.begin : 0;
  plane.image_pitch = second.stride * last.image;
  plane.from += rows.begin * last.steps;
  plane.to += (second.First(of_second) + rows.begin * second.stride) * last.image;
  return plane;
}

// Rows of the plane, each `stride` apart in y; a constant stride of 1 makes vectors.
template <class T>
void AddEach(const AddedPlane& plane, const T* __restrict__ x, T* __restrict__ y, int64_t rows,
             int64_t n, int64_t parts, int64_t stride) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < n; ++i) Accumulate(y[i * stride], x[i]);
    x += plane.pitch * parts;
    y += plane.image_pitch * parts;
  }
}

// Elements have `parts` numbers.
template <class T>
void AddRows(const AddedPlane& plane, const T* x, T* y, int64_t parts,
             kernels::BinaryFunction add) {
  constexpr int64_t kWorthACall = 32;
  const int64_t stride = plane.stride;
  int64_t n = plane.n, rows = plane.rows;
  if (stride == 1 && plane.pitch == n && plane.image_pitch == n) {  // one after the other
    n *= rows;
    rows = std::min<int64_t>(rows, 1);
  }
  const bool calls = stride == 1 && add && n * parts >= kWorthACall;
  if (stride == 1 && !calls) return AddEach(plane, x, y, rows, n * parts, parts, 1);
  if (parts == 1 && !calls) {
    return stride == 2 ? AddEach(plane, x, y, rows, n, 1, 2)
                       : AddEach(plane, x, y, rows, n, 1, stride);
  }
  for (int64_t row = 0; row < rows; ++row) {
    if (calls) {
      add(y, x, y, static_cast<size_t>(n * parts));
    } else {
      for (int64_t i = 0; i < n * parts; ++i) {
        Accumulate(y[i / parts * stride * parts + i % parts], x[i]);
      }
    }
    x += plane.pitch * parts;
    y += plane.image_pitch * parts;
  }
}

// Adds an element of all blocks, at x, to the image y.
template <class T>
void AddElement(const BlockAxes& axes, const AddedPlane& plane, const T* x, T* y, int64_t parts,
                kernels::BinaryFunction add) {
  if (axes.rank <= 2) {
    return AddRows(plane, x + plane.from * parts, y + plane.to * parts, parts, add);
  }
  const size_t outer = axes.rank - 2;
  const BlockAxis &second = axes.axes[outer], &last = axes.axes[outer + 1];
  const int64_t steps_of_plane = second.steps * last.steps;
  std::array<int64_t, kMaxSpatialRank> steps{};
  for (int64_t step = 0; step < axes.steps; step += steps_of_plane) {
    int64_t to = plane.to, stride = last.image * second.image;
    bool is_inside = true;
    for (size_t i = outer; i-- > 0;) {
      const BlockAxis& axis = axes.axes[i];
      const int64_t at = axis.First(plane.element[i]) + steps[i] * axis.stride;
      is_inside = is_inside && at >= 0 && at < axis.image;
      to += at * stride;
      stride *= axis.image;
    }
    for (size_t i = outer; i-- > 0 && ++steps[i] == axes.axes[i].steps;) steps[i] = 0;
    if (is_inside) AddRows(plane, x + (step + plane.from) * parts, y + to * parts, parts, add);
  }
}

constexpr int64_t kGroupBytes = 16384;

template <class T>
Status AddBlocks(const BlockAxes& axes, int64_t parts, KernelContext& context) {
  Tensor& output = context.Output(0);
  const T* x = static_cast<const T*>(context.Input(0).raw());
  T* y = static_cast<T*>(output.raw());
  const int64_t images = output.shape()[0] * output.shape()[1];
  const int64_t size = output.size() / images * parts;
  const int64_t steps = axes.steps * parts;
  const kernels::BinaryFunction add = RowAddition<T>();
  // Images that stay in the cache while their elements are added one after the other.
  const int64_t group = std::max<int64_t>(1, kGroupBytes / (size * int64_t{sizeof(T)} + 1));
  context.threads().ParallelFor(
      static_cast<size_t>(images), CopyGrain(static_cast<size_t>(axes.block * steps) * sizeof(T)),
      [&](size_t begin, size_t end) {
        for (auto first = static_cast<int64_t>(begin); first < static_cast<int64_t>(end);
             first += group) {
          const int64_t last = std::min(first + group, static_cast<int64_t>(end));
          std::fill(y + first * size, y + last * size, T());
          for (int64_t k = 0; k < axes.block; ++k) {
            const AddedPlane plane = PlaneOf(axes, k);
            for (int64_t image = first; image < last; ++image) {
              const T* from = x + (image * axes.block + k) * steps;
              AddElement(axes, plane, from, y + image * size, parts, add);
            }
          }
        }
      });
  return OkStatus();
}

// Whether each element of the image belongs to one block, and the blocks are so wide that copying
// is faster.
bool IsCoveredOnce(const BlockAxes& axes) {
  constexpr int64_t kWide = 4;
  if (axes.axes[axes.rank - 1].block < kWide) return false;
  return std::all_of(axes.axes.begin(), axes.axes.begin() + static_cast<ptrdiff_t>(axes.rank),
                     [](const BlockAxis& axis) {
                       return axis.pad == 0 && axis.stride == axis.block &&
                              (axis.dilation == 1 || axis.block == 1) &&
                              axis.steps * axis.stride == axis.image;
                     });
}

// In this case a transposition, without additions. Error: kNotImplemented for too many axes.
Status CopyBlocks(const BlockAxes& axes, KernelContext& context) {
  Tensor& output = context.Output(0);
  StridedCopy copy(output.type());
  const int64_t images = output.shape()[0] * output.shape()[1];
  TENON_RETURN_IF_ERROR(copy.AddAxis(images, axes.block * axes.steps, output.size() / images));
  int64_t block = axes.block, steps = axes.steps, pixels = output.size() / images;
  for (size_t i = 0; i < axes.rank; ++i) {
    const BlockAxis& axis = axes.axes[i];
    block /= axis.block;
    steps /= axis.steps;
    pixels /= axis.image;
    TENON_RETURN_IF_ERROR(copy.AddAxis(axis.steps, steps, axis.stride * pixels));
    TENON_RETURN_IF_ERROR(copy.AddAxis(axis.block, block * axes.steps, pixels));
  }
  return copy.Run(context.Input(0).raw(), output.raw(), context.threads());
}

Status RunCol2Im(const Col2ImAttrs& attrs, KernelContext& context) {
  TENON_ASSIGN_OR_RETURN(const Shape image, IntegersOf(context.Input(1)));
  TENON_ASSIGN_OR_RETURN(const Shape block, IntegersOf(context.Input(2)));
  TENON_ASSIGN_OR_RETURN(const BlockAxes axes, AxesOf(attrs, image.dims(), block.dims()));
  if (context.Output(0).size() == 0) return OkStatus();
  if (IsCoveredOnce(axes) && CopyBlocks(axes, context).ok()) return OkStatus();
  switch (context.Input(0).type()) {
    case DataType::kString:
      return AddBlocks<std::string>(axes, 1, context);
    case DataType::kComplex64:
      return AddBlocks<float>(axes, 2, context);
    case DataType::kComplex128:
      return AddBlocks<double>(axes, 2, context);
    default:
      return VisitNumber(context.Input(0).type(),
                         [&]<class T>(T) { return AddBlocks<T>(axes, 1, context); });
  }
}

// Sums of 16-bit floats are formed in float32; strings are joined in the order of the blocks.
constexpr TypeSet kTypes =
    kInts | TypeSet{DataType::kFloat,     DataType::kDouble,     DataType::kBool,
                    DataType::kComplex64, DataType::kComplex128, DataType::kString};

constexpr OpRow kRows[] = {
    Op<InferCol2Im, RunCol2Im>("Col2Im", {.since = 18, .types = kTypes}),
};

}  // namespace

TENON_OP_FAMILY(Col2Im, kRows);

}  // namespace tenon
