// AffineGrid: positions for GridSample, transformed by affine matrices.
#include "ops/framework/element.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// AffineGrid-20.
struct AffineGridAttrs {
  bool align_corners = false;
  static constexpr auto Fields() {
    return std::tuple(Field("align_corners", &AffineGridAttrs::align_corners));
  }
};

[[gnu::cold]] Status InferAffineGrid(const AffineGridAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape theta, context.InputOfRank(0, 3));
  TENON_ASSIGN_OR_RETURN(const Dims size, context.InputAsDims(1));
  if (size.size() != 4 && size.size() != 5) {
    return InvalidArgument("input 1: expected 4 or 5 sizes, got {}", size.size());
  }
  const auto differ = [](const Dim& a, const Dim& b) {
    return a.is_number() && b.is_number() && a.value() != b.value();
  };
  const auto rank = static_cast<int64_t>(size.size()) - 2;
  if (differ(theta[0], size[0]) || differ(theta[1], Dim(rank)) || differ(theta[2], Dim(rank + 1))) {
    return InvalidArgument("input 0: expected matrices [{}, {}, {}], got {}", size[0], rank,
                           rank + 1, theta);
  }
  SymbolicShape grid = {size[0]};
  for (size_t i = 2; i < size.size(); ++i) {
    if (size[i].is_number() && size[i].value() < 1) {
      return InvalidArgument("input 1: expected sizes of at least 1, got {}", size[i]);
    }
    grid.Append(size[i]);
  }
  grid.Append(Dim(rank));
  return context.SetOutput(0, std::move(grid));
}

// The centre of element `i` of an axis that extends from -1 to 1, or whose first and last elements
// have their centres there.
double PositionOf(int64_t i, int64_t size, bool align_corners) {
  if (!align_corners) return static_cast<double>(2 * i + 1) / static_cast<double>(size) - 1;
  return size == 1 ? -1 : 2 * static_cast<double>(i) / static_cast<double>(size - 1) - 1;
}

// `columns` is memory for the positions along the last axis.
template <class T>
void FillGrid(const AffineGridAttrs& attrs, double* columns, KernelContext& context) {
  const Tensor& theta = context.Input(0);
  Tensor& grid = context.Output(0);
  const Shape& shape = grid.shape();
  const size_t rank = shape.rank() - 2;
  const int64_t width = shape[rank], rows = grid.size() / (width * shape.back());
  const int64_t rows_per_image = rows / shape[0];
  for (int64_t i = 0; i < width; ++i) columns[i] = PositionOf(i, width, attrs.align_corners);
  const auto pixels = static_cast<size_t>(width);
  const size_t grain = CopyGrain(pixels * rank * sizeof(T));
  context.threads().ParallelFor(static_cast<size_t>(rows), grain, [&](size_t begin, size_t end) {
    for (auto row = static_cast<int64_t>(begin); row < static_cast<int64_t>(end); ++row) {
      const T* matrix =
          theta.data<T>() + row / rows_per_image * static_cast<int64_t>(rank * (rank + 1));
      // What the row's columns have in common; the last axis comes first: x, y, z.
      double sums[3];
      for (size_t k = 0; k < rank; ++k) {
        sums[k] = static_cast<double>(matrix[k * (rank + 1) + rank]);
      }
      int64_t rest = row;
      for (size_t i = 1; i < rank; ++i) {
        const int64_t size = shape[rank - i];
        const double position = PositionOf(rest % size, size, attrs.align_corners);
        for (size_t k = 0; k < rank; ++k) {
          sums[k] += static_cast<double>(matrix[k * (rank + 1) + i]) * position;
        }
        rest /= size;
      }
      T* to = grid.data<T>() + row * width * static_cast<int64_t>(rank);
      for (size_t k = 0; k < rank; ++k) {
        const auto factor = static_cast<double>(matrix[k * (rank + 1)]);
        for (size_t i = 0; i < pixels; ++i) {
          to[i * rank + k] = static_cast<T>(sums[k] + factor * columns[i]);
        }
      }
    }
  });
}

Status RunAffineGrid(const AffineGridAttrs& attrs, KernelContext& context) {
  const Tensor& grid = context.Output(0);
  if (grid.size() == 0) return OkStatus();
  const size_t bytes = static_cast<size_t>(grid.shape()[grid.rank() - 2]) * sizeof(double);
  auto* const columns = static_cast<double*>(context.Scratch(bytes));
  if (columns == nullptr) return RuntimeException("out of memory: {} bytes", bytes);
  if (grid.type() == DataType::kDouble) {
    FillGrid<double>(attrs, columns, context);
  } else {
    FillGrid<float>(attrs, columns, context);
  }
  return OkStatus();
}

constexpr OpRow kRows[] = {
    Op<InferAffineGrid, RunAffineGrid>(
        "AffineGrid", {.since = 20, .types = {DataType::kFloat, DataType::kDouble}}),
};

}  // namespace

TENON_OP_FAMILY(AffineGrid, kRows);

}  // namespace tenon
