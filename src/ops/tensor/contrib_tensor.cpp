// Operators of com.microsoft on tensors of any meaning.
#include <algorithm>
#include <cmath>

#include "base/arithmetic.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

constexpr const char* kMicrosoft = "com.microsoft";

// Calls visit(T()) for float or double.
template <class Visit>
Status VisitFloat(DataType type, Visit&& visit) {
  return type == DataType::kDouble ? visit(double()) : visit(float());
}

constexpr TypeSet kFloatAndDouble = {DataType::kFloat, DataType::kDouble};

// --- ExpandDims-1: Unsqueeze with one axis; SampleOp-1: Identity ---

Status InferExpandDims(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.Input(0));
  const Tensor* axes = context.InputData(1);
  if (axes == nullptr) return UnknownShape();
  if (axes->size() != 1) {
    return InvalidArgument("input 1: expected one axis, got {}", axes->shape());
  }
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(axes->data<int32_t>()[0], x.rank() + 1));
  Dims dims = x.dims();
  dims.insert(dims.begin() + static_cast<ptrdiff_t>(axis), Dim(1));
  return context.SetOutput(0, SymbolicShape(std::move(dims)));
}

Status InferSame(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  return context.SetOutput(0, std::move(x));
}

// --- Inverse-1: of square matrices, by elimination with pivots ---

Status InferInverse(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  if (x.rank() < 2 || !MayEqual(x[x.rank() - 1], x[x.rank() - 2])) {
    return InvalidArgument("input 0: expected square matrices, got {}", x);
  }
  return context.SetOutput(0, std::move(x));
}

// Inverts `a`, n x n, into `y`; `a` is overwritten. False if it has no inverse.
template <class T>
bool Invert(double* a, T* y, size_t n, double* inverse) {
  std::fill_n(inverse, n * n, 0.0);
  for (size_t i = 0; i < n; ++i) inverse[i * n + i] = 1;
  for (size_t column = 0; column < n; ++column) {
    size_t pivot = column;
    for (size_t i = column + 1; i < n; ++i) {
      if (std::abs(a[i * n + column]) > std::abs(a[pivot * n + column])) pivot = i;
    }
    if (!(std::abs(a[pivot * n + column]) > 0)) return false;
    std::swap_ranges(a + pivot * n, a + (pivot + 1) * n, a + column * n);
    std::swap_ranges(inverse + pivot * n, inverse + (pivot + 1) * n, inverse + column * n);
    const double factor = 1 / a[column * n + column];
    for (size_t j = 0; j < n; ++j) {
      a[column * n + j] *= factor;
      inverse[column * n + j] *= factor;
    }
    for (size_t i = 0; i < n; ++i) {
      const double multiple = a[i * n + column];
      if (i == column || multiple == 0) continue;
      for (size_t j = 0; j < n; ++j) {
        a[i * n + j] -= multiple * a[column * n + j];
        inverse[i * n + j] -= multiple * inverse[column * n + j];
      }
    }
  }
  std::transform(inverse, inverse + n * n, y, [](double x) { return static_cast<T>(x); });
  return true;
}

Status RunInverse(const NoAttrs&, KernelContext& context) {
  const Tensor& x = context.Input(0);
  if (x.size() == 0) return OkStatus();
  const auto n = static_cast<size_t>(x.shape().back());
  auto* scratch = static_cast<double*>(context.Scratch(2 * n * n * sizeof(double)));
  if (scratch == nullptr) return RuntimeException("out of memory for matrices of {} rows", n);
  return VisitFloat(x.type(), [&]<class T>(T) -> Status {
    const size_t count = static_cast<size_t>(x.size()) / (n * n);
    for (size_t m = 0; m < count; ++m) {
      const T* from = x.data<T>() + m * n * n;
      std::copy_n(from, n * n, scratch);
      if (!Invert(scratch, context.Output(0).data<T>() + m * n * n, n, scratch + n * n)) {
        return InvalidArgument("input 0: matrix {} has no inverse", m);
      }
    }
    return OkStatus();
  });
}

// --- CropAndResize-1 ---

enum CropInput : size_t { kImages, kBoxes, kBatches, kCropSize };

struct CropAttrs {
  float outside = 0;
  std::string mode = "bilinear";
  static constexpr auto Fields() {
    return std::tuple(Field("extrapolation_value", &CropAttrs::outside),
                      Field("mode", &CropAttrs::mode));
  }
};

Status InferCrop(const CropAttrs& attrs, ShapeContext& context) {
  if (attrs.mode != "bilinear" && attrs.mode != "nearest") {
    return InvalidArgument("expected mode 'bilinear' or 'nearest', got '{}'", attrs.mode);
  }
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.InputOfRank(kImages, 4));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape boxes, context.InputOfRank(kBoxes, 2));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape batches, context.InputOfRank(kBatches, 1));
  if (!MayEqual(boxes[1], Dim(4)) || !MayEqual(boxes[0], batches[0])) {
    return InvalidArgument("expected rois [n, 4] and batch_indices [n], got {} and {}", boxes,
                           batches);
  }
  Dim size[2] = {Dim::Unknown(), Dim::Unknown()};
  if (const Tensor* crop = context.InputData(kCropSize)) {
    if (crop->size() != 2) {
      return InvalidArgument("input 3: expected height and width, got {}", crop->shape());
    }
    for (size_t i = 0; i < 2; ++i) {
      const int32_t length = crop->data<int32_t>()[i];
      if (length < 1) return InvalidArgument("input 3: expected sizes >= 1, got {}", length);
      size[i] = Dim(length);
    }
  }
  return context.SetOutput(0, {boxes[0], x[1], size[0], size[1]});
}

// The position on an axis of `length` elements of output `i` of `count`, with aligned corners. In
// the elements' precision, which decides the nearest neighbour of a position in the middle.
template <class T>
T CropPosition(T begin, T end, int64_t length, int64_t i, int64_t count) {
  const auto last = static_cast<T>(length - 1);
  if (count == 1) return static_cast<T>(0.5) * (begin + end) * last;
  const T step = (end - begin) * last / static_cast<T>(count - 1);
  return begin * last + static_cast<T>(i) * step;
}

template <class T>
T SampleImage(const T* image, int64_t width, double y, double x, bool is_nearest) {
  if (is_nearest) {
    return image[static_cast<int64_t>(std::round(y)) * width + static_cast<int64_t>(std::round(x))];
  }
  const auto top = static_cast<int64_t>(std::floor(y)), left = static_cast<int64_t>(std::floor(x));
  const auto bottom = static_cast<int64_t>(std::ceil(y)),
             right = static_cast<int64_t>(std::ceil(x));
  const double down = y - static_cast<double>(top), along = x - static_cast<double>(left);
  const auto between = [along](double a, double b) { return a + (b - a) * along; };
  const double upper = between(image[top * width + left], image[top * width + right]);
  const double lower = between(image[bottom * width + left], image[bottom * width + right]);
  return static_cast<T>(upper + (lower - upper) * down);
}

template <class T>
void CropBox(const CropAttrs& attrs, KernelContext& context, int64_t box) {
  const Tensor& x = context.Input(kImages);
  Tensor& y = context.Output(0);
  const int64_t channels = x.shape()[1], height = x.shape()[2], width = x.shape()[3];
  const int64_t rows = y.shape()[2], columns = y.shape()[3];
  const T* corners = context.Input(kBoxes).data<T>() + 4 * box;  // y1, x1, y2, x2
  const int64_t image = context.Input(kBatches).data<int32_t>()[box];
  const auto is_inside = [](T position, int64_t length) {
    return position >= 0 && position <= static_cast<T>(length - 1);
  };
  for (int64_t i = 0; i < rows; ++i) {
    const T down = CropPosition<T>(corners[0], corners[2], height, i, rows);
    for (int64_t j = 0; j < columns; ++j) {
      const T along = CropPosition<T>(corners[1], corners[3], width, j, columns);
      const bool inside = is_inside(down, height) && is_inside(along, width);
      for (int64_t c = 0; c < channels; ++c) {
        const T* plane = x.data<T>() + (image * channels + c) * height * width;
        y.data<T>()[((box * channels + c) * rows + i) * columns + j] =
            inside ? SampleImage(plane, width, down, along, attrs.mode == "nearest")
                   : static_cast<T>(attrs.outside);
      }
    }
  }
}

Status RunCrop(const CropAttrs& attrs, KernelContext& context) {
  const Tensor& batches = context.Input(kBatches);
  const int64_t images = context.Input(kImages).shape()[0];
  for (int64_t i = 0; i < batches.size(); ++i) {
    const int32_t image = batches.data<int32_t>()[i];
    if (image >= 0 && image < images) continue;
    return InvalidArgument("input 2: expected indices in [0, {}), got {}", images, image);
  }
  return VisitFloat(context.Input(kImages).type(), [&]<class T>(T) {
    context.threads().ParallelFor(static_cast<size_t>(batches.size()), 1,
                                  [&](size_t begin, size_t end) {
                                    for (size_t box = begin; box < end; ++box) {
                                      CropBox<T>(attrs, context, static_cast<int64_t>(box));
                                    }
                                  });
    return OkStatus();
  });
}

constexpr OpRow kRows[] = {
    View<InferExpandDims>("ExpandDims", {.domain = kMicrosoft}),
    View<InferSame>("SampleOp", {.domain = kMicrosoft}),
    Op<InferInverse, RunInverse>("Inverse", {.domain = kMicrosoft, .types = kFloatAndDouble}),
    Op<InferCrop, RunCrop>("CropAndResize", {.domain = kMicrosoft, .types = kFloatAndDouble}),
};

}  // namespace

TENON_OP_FAMILY(ContribTensor, kRows);

}  // namespace tenon
