// SparseToDenseMatMul of com.microsoft: the product of a sparse matrix and dense ones.
#include <algorithm>

#include "base/arithmetic.h"
#include "ops/framework/op_row.h"
#include "ops/linear/scalar_matmul.h"

namespace tenon {
namespace {

struct SparseProductAttrs {
  float alpha = 1;  // only used for float, as in onnxruntime
  bool transpose_a = false, transpose_b = false;
  static constexpr auto Fields() {
    using A = SparseProductAttrs;
    return std::tuple(Field("alpha", &A::alpha), Field("transA", &A::transpose_a),
                      Field("transB", &A::transpose_b));
  }
};

Status InferSparseProduct(const SparseProductAttrs& attrs, ShapeContext& context) {
  const ValueType matrix = context.InputType(0);
  if (!matrix.shape) return UnknownShape();
  const SymbolicShape& a = *matrix.shape;
  if (a.rank() != 2) return InvalidArgument("input 0: expected rank 2, got {}", a);
  TENON_ASSIGN_OR_RETURN(const SymbolicShape b, context.Input(1));
  TENON_ASSIGN_OR_RETURN(SymbolicShape y,
                         InferProduct(a, {attrs.transpose_a}, b, {attrs.transpose_b}));
  return context.SetOutput(0, std::move(y));
}

// Rows and columns of A in its stored form.
const Shape& ShapeOf(const Value& a) {
  return a.is_tensor() ? a.tensor().shape() : a.sparse().dense_shape;
}

// An element of A that may differ from 0.
template <class T>
struct Entry {
  size_t row, column;
  T value;
};

size_t CountEntries(const Value& a) {
  return static_cast<size_t>(a.is_tensor() ? a.tensor().size() : a.sparse().values.size());
}

// Returns the positions of a matrix's values. Those of a client's tensor may be outside of it.
class Places {
 public:
  Places(const SparseTensor& a)  // NOLINT
      : a_(a), rows_(a.dense_shape[0]), columns_(a.dense_shape[1]) {}

  // Calls place(i, row, column) for value i of all.
  template <class Place>
  Status ForEach(Place&& place) const {
    return a_.format == SparseFormat::kCsr ? OfRows(place) : OfCoordinates(place);
  }

 private:
  Status OutOfRange(int64_t row, int64_t column) const {
    return InvalidArgument("input 0: element ({}, {}) of a matrix of {} rows and {} columns", row,
                           column, rows_, columns_);
  }

  bool Holds(int64_t row, int64_t column) const {
    return row >= 0 && row < rows_ && column >= 0 && column < columns_;
  }

  template <class Place>
  Status OfCoordinates(Place&& place) const {
    const int64_t* indices = a_.indices.data<int64_t>();
    const bool is_linear = a_.indices.size() == a_.values.size();
    for (int64_t i = 0; i < a_.values.size(); ++i) {
      const int64_t row = is_linear ? (columns_ ? indices[i] / columns_ : -1) : indices[2 * i];
      const int64_t column = is_linear ? indices[i] - row * columns_ : indices[2 * i + 1];
      if (!Holds(row, column)) return OutOfRange(row, column);
      place(i, static_cast<size_t>(row), static_cast<size_t>(column));
    }
    return OkStatus();
  }

  template <class Place>
  Status OfRows(Place&& place) const {
    const int64_t* starts = a_.outer_indices.data<int64_t>();
    const int64_t* columns = a_.indices.data<int64_t>();
    const int64_t count = a_.values.size();
    int64_t i = 0;
    for (int64_t row = 0; row < rows_ && a_.outer_indices.size() == rows_ + 1; ++row) {
      if (starts[row] != i || starts[row + 1] < i || starts[row + 1] > count) break;
      for (; i < starts[row + 1]; ++i) {
        if (!Holds(row, columns[i])) return OutOfRange(row, columns[i]);
        place(i, static_cast<size_t>(row), static_cast<size_t>(columns[i]));
      }
    }
    if (i == count) return OkStatus();
    return InvalidArgument("input 0: the starts of {} rows do not rise from 0 to {} values", rows_,
                           count);
  }

  const SparseTensor& a_;
  const int64_t rows_, columns_;
};

// Writes the elements of A that are not skipped, transposed if the attribute says so, and returns
// their number.
template <class T>
Result<size_t> ListEntries(const SparseProductAttrs& attrs, const Value& a, Entry<T>* entries) {
  size_t count = 0;
  const auto add = [&](size_t row, size_t column, T value) {
    if (attrs.transpose_a) std::swap(row, column);
    if constexpr (std::is_same_v<T, float>) value *= attrs.alpha;
    entries[count++] = {row, column, value};
  };
  if (a.is_tensor()) {  // a sparse initializer, as nodes see it
    const auto columns = static_cast<size_t>(ShapeOf(a)[1]);
    const T* values = a.tensor().data<T>();
    for (size_t i = 0; i < CountEntries(a); ++i) {
      if (values[i] != T(0)) add(i / columns, i % columns, values[i]);
    }
    return count;
  }
  const SparseTensor& sparse = a.sparse();
  if (sparse.format != SparseFormat::kCoo && sparse.format != SparseFormat::kCsr) {
    return InvalidArgument("input 0: expected a sparse matrix in the format COO or CSR");
  }
  const T* values = sparse.values.data<T>();
  TENON_RETURN_IF_ERROR(Places(sparse).ForEach(
      [&](int64_t i, size_t row, size_t column) { add(row, column, values[i]); }));
  return count;
}

template <class T>
Status Multiply(const SparseProductAttrs& attrs, KernelContext& context, Tensor& y) {
  using Sum = typename ScalarSum<T>::Type;
  constexpr size_t kColumns = 512;  // of a task: its rows of B and Y stay in the L1 cache
  std::fill_n(y.data<T>(), y.size(), T(0));
  const Value& a = context.InputValue(0);
  const auto bytes = CheckedMul(CountEntries(a), sizeof(Entry<T>));
  auto* entries = static_cast<Entry<T>*>(context.Scratch(bytes.value_or(SIZE_MAX)));
  if (entries == nullptr) return RuntimeException("out of memory for {} values", CountEntries(a));
  TENON_ASSIGN_OR_RETURN(const size_t count, ListEntries(attrs, a, entries));
  const Tensor& dense = context.Input(1);
  const MatrixStack b = StackOf(dense.shape(), {attrs.transpose_b}, Side::kRight);
  if (y.size() == 0) return OkStatus();
  const size_t rows = static_cast<size_t>(y.size()) / (b.count() * b.columns);
  const size_t blocks = CeilDiv(b.columns, kColumns);
  return context.ForEachTask(b.count() * blocks, 0, [&](size_t task, std::byte*) {
    const size_t matrix = task / blocks, first = task % blocks * kColumns;
    const size_t n = std::min(kColumns, b.columns - first);
    const T* from = dense.data<T>() + matrix * b.matrix_stride + first * b.column_stride;
    T* into = y.data<T>() + matrix * rows * b.columns + first;
    for (const Entry<T>& entry : std::span(entries, count)) {
      const T* row = from + entry.column * b.row_stride;
      T* sums = into + entry.row * b.columns;
      for (size_t j = 0; j < n; ++j) {
        sums[j] = static_cast<T>(static_cast<Sum>(sums[j]) +
                                 static_cast<Sum>(entry.value) *
                                     static_cast<Sum>(row[j * b.column_stride]));
      }
    }
  });
}

// The shape of a sparse matrix is known if the matrix is.
Status RunSparseProduct(const SparseProductAttrs& attrs, KernelContext& context) {
  const Shape& a = ShapeOf(context.InputValue(0));
  const Tensor& b = context.Input(1);
  if (a.rank() != 2) return InvalidArgument("input 0: expected rank 2, got {}", a);
  TENON_ASSIGN_OR_RETURN(const SymbolicShape product,
                         InferProduct(SymbolicShape(a), {attrs.transpose_a},
                                      SymbolicShape(b.shape()), {attrs.transpose_b}));
  const std::optional<Shape> shape = product.ToShape();
  if (!shape) return InvalidArgument("the size of {} is out of range", product);
  TENON_ASSIGN_OR_RETURN(Tensor * y, context.AllocateOutput(0, b.type(), *shape));
  if (b.type() == DataType::kFloat) return Multiply<float>(attrs, context, *y);
  return VisitScalarProductType(b.type(),
                                [&]<class T>(T) { return Multiply<T>(attrs, context, *y); });
}

constexpr OpRow kRows[] = {
    Op<InferSparseProduct, RunSparseProduct>("SparseToDenseMatMul",
                                             {.domain = "com.microsoft",
                                              .types = kScalarProductTypes | kFloat32Only,
                                              .traits = {.allocates_outputs = true},
                                              .typed_input = 1}),
};

}  // namespace

TENON_OP_FAMILY(SparseMatMul, kRows);

}  // namespace tenon
