#include "ops/linear/matrix_product.h"

#include <algorithm>

#include "base/arithmetic.h"
#include "kernels/elementwise/convert.h"
#include "ops/framework/widen_narrow.h"
#include "ops/linear/stored_matrix.h"
#include "runtime/kernel_info.h"
#include "tensor/lasting_memory.h"

namespace tenon {
namespace {

using kernels::Bf16Parts;
using kernels::GemmArgs;
using kernels::GemmMatrix;

// One product, or several that pair the matrices of two stacks.
struct Products {
  GemmArgs first;  // operands and output of matrix 0
  BatchPairs pairs;
  size_t a_stride, b_stride, packed_stride, y_stride;  // elements between matrices

  GemmArgs At(size_t index) const {
    GemmArgs args = first;
    const BatchPairs::Pair pair = pairs.At(index);
    args.a.data += pair.a * a_stride;
    if (args.packed_b) {
      args.packed_b += pair.b * packed_stride;
    } else if (args.packed_half_b == nullptr) {  // which is that of one matrix
      args.b.data += pair.b * b_stride;
    }
    args.c += index * y_stride;
    if (args.epilogue.residual) args.epilogue.residual += index * y_stride;
    return args;
  }
};

// Whether all matrices of `a`, one below the other, form one matrix.
bool IsOneBelowTheOther(const MatrixStack& a) {
  return a.matrix_stride == a.rows * a.row_stride || a.count() == 1;
}

// One side of the products, with the memory of its first matrix.
struct Operand {
  MatrixStack stack;
  const float* data;

  GemmMatrix first() const { return {data, stack.row_stride, stack.column_stride}; }
  void Transpose() {
    std::swap(stack.rows, stack.columns);
    std::swap(stack.row_stride, stack.column_stride);
  }
};

// The fewest parts that the precision allows, if that is faster than float32 numbers.
std::optional<Bf16Parts> Bf16PartsFor(MatmulPrecision precision) {
  if (precision == MatmulPrecision::kHighest) return std::nullopt;
  const Bf16Parts parts = precision == MatmulPrecision::kMedium ? Bf16Parts::kOne : Bf16Parts::kTwo;
  if (!kernels::IsBf16GemmFast(parts)) return std::nullopt;
  return parts;
}

// How many products of these sizes one task computes, if each of them is a single task of the
// kernel: some 10 microseconds of work.
size_t ProductsPerTask(const kernels::GemmSizes& s) {
  constexpr double kTaskCost = 0.5e6;  // multiply-adds
  constexpr double kCallCost = 2000;
  const double cost = kCallCost + (static_cast<double>(s.m) + 8) * static_cast<double>(s.n) *
                                      static_cast<double>(s.k);
  return std::max<size_t>(1, static_cast<size_t>(kTaskCost / cost));
}

Status RunProducts(KernelContext& context, const Products& products, size_t count) {
  const GemmArgs& first = products.first;
  const bool is_packed = first.is_packed();
  const size_t tasks = kernels::GemmTaskCount(first.sizes, is_packed, first.threads);
  const size_t scratch_bytes =
      kernels::GemmScratchSize(first.sizes, is_packed, first.packed_half_b != nullptr);
  if (count == 1) {
    return context.ForEachTask(tasks, scratch_bytes, [&](size_t task, std::byte* scratch) {
      kernels::RunGemmTask(first, task, reinterpret_cast<float*>(scratch));
    });
  }
  const size_t group = tasks == 1 ? ProductsPerTask(first.sizes) : 1;
  return context.ForEachTask(
      CeilDiv(count, group) * tasks, scratch_bytes, [&](size_t index, std::byte* scratch) {
        const size_t begin = index / tasks * group;
        for (size_t i = begin; i < std::min(count, begin + group); ++i) {
          kernels::RunGemmTask(products.At(i), index % tasks, reinterpret_cast<float*>(scratch));
        }
      });
}

constexpr size_t kFewRows = 64;

// How many columns of B a first run packs at a time, for itself alone: those that stay in L2 while
// they are multiplied, but enough to repay reading many rows of A for them; all if that would leave
// too few such slabs for many threads. 0: B is kept at once, as it is small, or takes much memory,
// or the run is long in any case.
size_t ColumnsAtOnce(const kernels::GemmSizes& s) {
  constexpr size_t kWorthwhile = 256 << 10, kMost = 32 << 20, kSlab = 256 << 10, kEnoughSlabs = 8;
  constexpr size_t kPanelsForManyRows = 6, kMostRows = 1024;
  const size_t panel = kernels::GemmPanelColumns();
  const size_t bytes = kernels::PackedGemmBSize(s.n, s.k);
  if (bytes < kWorthwhile || s.m > kMostRows) return 0;
  const size_t most = s.n / panel / kEnoughSlabs;
  const size_t least = s.m <= kFewRows ? 1 : kPanelsForManyRows;
  if (most < least) return bytes <= kMost ? s.n : 0;
  return std::clamp(kSlab / (panel * s.k * sizeof(float)), least, most) * panel;
}

// `product` by a B that is packed for it alone. The result has the bits of a packed product.
Status RunPackedOnce(KernelContext& context, GemmArgs product, const StoredMatrix& b) {
  const size_t packed_bytes = b.PackedBytes();
  const size_t tasks = kernels::GemmTaskCount(product.sizes, true, product.threads);
  const size_t task_bytes = kernels::GemmScratchSize(product.sizes, true, b.is_half());
  const size_t bytes = packed_bytes + context.TaskScratchBytes(tasks, task_bytes);
  auto* const memory = static_cast<std::byte*>(context.Scratch(bytes));
  if (memory == nullptr) return RuntimeException("out of memory: {} bytes of scratch", bytes);
  context.threads().ParallelFor(b.PackTasks(), 1, [&](size_t begin, size_t end) {
    for (size_t task = begin; task < end; ++task) b.Pack(task, memory);
  });
  b.SetPacked(memory, product);
  context.ForEachTaskIn(memory + packed_bytes, tasks, task_bytes,
                        [&](size_t task, std::byte* scratch) {
                          kernels::RunGemmTask(product, task, reinterpret_cast<float*>(scratch));
                        });
  return OkStatus();
}

// The same by slabs of B, each of which a task packs.
Status RunInSlabs(KernelContext& context, const GemmArgs& product, const StoredMatrix& b,
                  size_t columns) {
  const auto [m, n, k] = product.sizes;
  const size_t packed_bytes = b.Columns(0, columns).PackedBytes();
  const size_t task_bytes = kernels::GemmScratchSize({m, columns, k}, true, b.is_half());
  const auto multiply = [&, n = n](size_t task, std::byte* scratch) {
    const size_t first = task * columns;
    GemmArgs slab = product;
    slab.sizes.n = std::min(columns, n - first);
    slab.c += first;
    if (slab.epilogue.bias_columns) slab.epilogue.bias_columns += first;
    if (slab.epilogue.residual) slab.epilogue.residual += first;
    const StoredMatrix own = b.Columns(first, columns);
    for (size_t i = 0; i < own.PackTasks(); ++i) own.Pack(i, scratch);
    own.SetPacked(scratch, slab);
    kernels::Gemm(slab, reinterpret_cast<float*>(scratch + packed_bytes));
  };
  return context.ForEachTask(CeilDiv(n, columns), packed_bytes + task_bytes, multiply);
}

// Rows of A that pay for packing a B for them alone.
constexpr size_t kRowsWorthPacking = 16;

// float16 numbers as floats, in new memory. Error: no memory.
Result<Tensor> Widened(const Tensor& halves) {
  TENON_ASSIGN_OR_RETURN(Tensor floats,
                         Tensor::Allocate(DataType::kFloat, halves.shape(), SharedLastingMemory()));
  kernels::Float16ToFloat(static_cast<const uint16_t*>(halves.raw()), floats.data<float>(),
                          static_cast<size_t>(halves.size()));
  return floats;
}

kernels::Bf16Matrix MatrixOf(const Tensor& tensor, const MatrixStack& stack) {
  if (tensor.type() == DataType::kBfloat16) {
    return {static_cast<const uint16_t*>(tensor.raw()), stack.row_stride, stack.column_stride};
  }
  return GemmMatrix{tensor.data<float>(), stack.row_stride, stack.column_stride};
}

// Adds `scale` times the bfloat16 elements of `c`, rows of so many columns, which are broadcast.
void AddNarrow(const Tensor& c, float scale, size_t columns, ProductAddends* addends) {
  const bool has_rows = static_cast<size_t>(c.size()) != columns;
  addends->narrow[addends->narrow[0].data ? 1 : 0] = {
      static_cast<const uint16_t*>(c.raw()), has_rows ? columns : 0, columns == 1 ? 0u : 1u, scale};
}

}  // namespace

Status CheckAddend(const ShapeContext& context, size_t i, const Dim& rows, const Dim& columns) {
  if (!context.HasInput(i)) return OkStatus();
  const Result<SymbolicShape> c = context.Input(i);
  if (!c) return IsUnknownShape(c.error()) ? OkStatus() : c.error();
  const Dim sizes[] = {columns, rows};
  bool fits = c->rank() <= 2;
  for (size_t back = 0; fits && back < c->rank(); ++back) {
    const Dim& dim = (*c)[c->rank() - 1 - back];
    const Dim& size = sizes[back];
    fits = dim == Dim(1) || !dim.is_number() || !size.is_number() || dim == size;
  }
  if (fits) return OkStatus();
  return InvalidArgument("input {}: expected a shape that broadcasts to [{}, {}], got {}", i, rows,
                         columns, *c);
}

void AddMatrix(const Tensor& c, float beta, size_t rows, size_t columns, Tensor& y,
               ProductAddends* addends) {
  if (beta == 0) return;
  if (c.type() == DataType::kBfloat16) {
    const auto own_columns = static_cast<size_t>(c.rank() > 0 ? c.shape().back() : 1);
    return AddNarrow(c, beta, own_columns, addends);
  }
  const Shape& shape = c.shape();
  const size_t c_columns = shape.rank() > 0 ? static_cast<size_t>(shape.back()) : 1;
  const size_t c_rows = shape.rank() > 1 ? static_cast<size_t>(shape[shape.rank() - 2]) : 1;
  const float* from = c.data<float>();
  if (beta == 1 && c_rows == 1 && c_columns == columns) {
    addends->row = from;
  } else if (beta == 1 && c_rows == rows && c_columns == 1) {
    addends->column = from;
  } else if (beta == 1 && c_rows == rows && c_columns == columns && !addends->residual) {
    addends->residual = from;
  } else {
    float* into = y.data<float>();
    for (size_t i = 0; i < rows; ++i, into += columns) {
      const float* row = from + (c_rows == 1 ? 0 : i * c_columns);
      if (c_columns == columns) {
        std::copy_n(row, columns, into);
      } else {
        std::fill_n(into, columns, *row);
      }
    }
    addends->beta = beta;
  }
}

void AddResidual(const Tensor& residual, size_t columns, ProductAddends* addends) {
  if (residual.type() == DataType::kBfloat16) return AddNarrow(residual, 1, columns, addends);
  addends->residual = residual.data<float>();
}

Status MatrixProduct::Prepare(KernelInfo& info, const ProductOptions& options) {
  options_ = options;
  is_narrow_ = info.OutputElementType(0) == DataType::kBfloat16;
  reads_narrow_ =
      info.ElementType(0) == DataType::kBfloat16 || info.ElementType(1) == DataType::kBfloat16;
  const bool is_from_narrow = reads_narrow_ || info.node().GetInt(kFromBfloat16, 0) != 0;
  bf16_ = Bf16PartsFor(is_from_narrow ? MatmulPrecision::kMedium : info.weights().precision);
  if (reads_narrow_ && !bf16_) {
    return NotImplemented("products of bfloat16 numbers on this processor");
  }
  const Tensor* constant = info.StoredConstant(1);
  if (constant == nullptr || constant->size() == 0 || constant->rank() < 2) return OkStatus();
  Tensor wide;
  if (constant->type() == DataType::kFloat16 && bf16_) {
    TENON_ASSIGN_OR_RETURN(wide, Widened(*constant));
    constant = &wide;
  }
  const MatrixStack b = StackOf(constant->shape(), options.b, Side::kRight);
  if (b.columns == 1) return OkStatus();  // read as a vector
  if (b.count() > 1) {
    if (reads_narrow_) return OkStatus();
    bf16_.reset();
  }
  const size_t bytes = bf16_ ? kernels::PackedBf16GemmBSize(b.columns, b.rows, *bf16_)
                             : StoredMatrix(*constant, b).PackedBytes();
  if (!CheckedMul(bytes, b.count())) {
    return RuntimeException("out of memory for packing input 1 {}", constant->shape());
  }
  packed_stride_ = bytes / sizeof(float);
  packed_.Keep(
      *constant,
      Format("gemm b {} x {}, strides {} {} {}, parts of 16 bits in lines {}", b.rows, b.columns,
             b.row_stride, b.column_stride, b.matrix_stride, bf16_ ? static_cast<int>(*bf16_) : 0),
      info.weights());
  info.ReleaseConstant(1);
  is_half_ = constant->type() == DataType::kFloat16;
  return OkStatus();
}

Result<LazyWeights::Source> MatrixProduct::KeptB(KernelContext& context, size_t rows,
                                                 const MatrixStack& b, bool may_read) const {
  if (const float* packed = packed_.ready()) return LazyWeights::Source{packed, {}};
  if (!packed_.is_kept()) return LazyWeights::Source{};
  const size_t floats = packed_stride_ * b.count();
  const size_t tasks = kernels::PackGemmBTaskCount(b.columns, b.rows);
  const auto pack_tasks = [&](const Tensor& constant, float* packed, size_t first, size_t last) {
    context.threads().ParallelFor(last - first, 1, [&](size_t begin, size_t end) {
      for (size_t task = first + begin; task < first + end; ++task) {
        const size_t i = task / tasks;
        StoredMatrix(constant, b, i).Pack(task % tasks, packed + i * packed_stride_);
      }
    });
  };
  if (may_read) {
    // Few rows read all weights for little work.
    const HugePages pages = rows <= kFewRows ? HugePages::kPreferred : HugePages::kIfQuick;
    return packed_.GetOrRead(floats, tasks * b.count(), pack_tasks, pages);
  }
  const auto pack = [&](const Tensor& constant, float* packed) {
    if (bf16_) {
      return PackBf16B(context.threads(), MatrixOf(constant, b), b.columns, b.rows, *bf16_, packed);
    }
    pack_tasks(constant, packed, 0, tasks * b.count());
  };
  // Floats are packed in a first run only for many rows, or if they are few.
  const HugePages pages = bf16_ ? HugePages::kPreferred : HugePages::kIfQuick;
  TENON_ASSIGN_OR_RETURN(const float* packed, packed_.Get(floats, pack, pages));
  return LazyWeights::Source{packed, {}};
}

// Of one product of a kept B; 0 of several, and once B is packed.
size_t MatrixProduct::ColumnsAtOnceOf(const MatrixStack& a, const MatrixStack& b) const {
  if (!packed_.is_kept() || bf16_ || packed_.ready() != nullptr || a.count() != 1 ||
      b.count() != 1) {
    return 0;
  }
  return ColumnsAtOnce({a.rows, b.columns, a.columns});
}

bool MatrixProduct::UsesBf16(const MatrixStack& a, const MatrixStack& b) const {
  if (!bf16_ || reads_narrow_ || packed_.is_kept()) return bf16_.has_value();
  return a.rows >= kRowsWorthPacking && b.columns >= kRowsWorthPacking;
}

Status MatrixProduct::RunBf16(KernelContext& context, const ProductAddends& addends,
                              const MatrixStack& a, const MatrixStack& b) const {
  Tensor& y = context.Output(0);
  Bf16Products products;
  GemmArgs& args = products.args;
  args.sizes = {a.rows, b.columns, a.columns};
  args.alpha = options_.alpha;
  args.beta = addends.beta;
  args.ldc = args.epilogue.ldr = b.columns;
  args.epilogue.activation = options_.activation;
  if (is_narrow_) {
    products.output = {static_cast<uint16_t*>(y.raw()), {addends.narrow[0], addends.narrow[1]}};
  } else {
    args.c = y.data<float>();
    args.epilogue.bias_columns = addends.row;
    args.epilogue.bias_rows = addends.column;
    args.epilogue.residual = addends.residual;
  }
  products.parts = *bf16_;
  products.a = MatrixOf(context.Input(0), a);
  if (packed_.is_kept()) {
    TENON_ASSIGN_OR_RETURN(const LazyWeights::Source kept, KeptB(context, a.rows, b, false));
    products.packed_b = kept.weights;
  } else {
    products.b = MatrixOf(context.Input(1), b);
  }
  return RunBf16Products(context, products, a, b);
}

Status MatrixProduct::Run(KernelContext& context, const ProductAddends& addends) const {
  Tensor& y = context.Output(0);
  if (y.size() == 0) return OkStatus();
  MatrixStack left = StackOf(context.Input(0).shape(), options_.a, Side::kLeft);
  MatrixStack right = StackOf(context.Input(1).shape(), options_.b, Side::kRight);
  if (right.count() == 1 && IsOneBelowTheOther(left)) {
    left.rows *= left.count();
    left.batch = Shape();
  }
  if (UsesBf16(left, right)) return RunBf16(context, addends, left, right);
  Operand a = {std::move(left), context.Input(0).data<float>()};
  Operand b = {std::move(right), static_cast<const float*>(context.Input(1).raw())};
  const size_t columns = ColumnsAtOnceOf(a.stack, b.stack);
  TENON_ASSIGN_OR_RETURN(const LazyWeights::Source kept,
                         KeptB(context, a.stack.rows, b.stack, columns != 0));
  GemmArgs args;
  args.alpha = options_.alpha;
  args.beta = addends.beta;
  args.epilogue = {.bias_columns = addends.row,
                   .bias_rows = addends.column,
                   .residual = addends.residual,
                   .activation = options_.activation};
  if (b.stack.columns == 1 && a.stack.rows > 1) {
    // A column y = A b is computed as the row b' A', whose sums are along A's rows.
    std::swap(a, b);
    a.Transpose();
    b.Transpose();
    std::swap(args.epilogue.bias_columns, args.epilogue.bias_rows);
  }
  args.sizes = {a.stack.rows, b.stack.columns, a.stack.columns};
  args.a = a.first();
  args.b = b.first();
  if (is_half_) {
    args.packed_half_b = reinterpret_cast<const uint16_t*>(kept.weights);
  } else {
    args.packed_b = kept.weights;
  }
  args.c = y.data<float>();
  args.ldc = args.epilogue.ldr = b.stack.columns;
  args.threads = static_cast<size_t>(context.threads().threads());
  if (kept.constant.defined()) {
    const StoredMatrix stored(kept.constant, b.stack);
    return columns == args.sizes.n ? RunPackedOnce(context, args, stored)
                                   : RunInSlabs(context, args, stored, columns);
  }
  const Products products = {args,
                             BatchPairs(a.stack.batch, b.stack.batch),
                             a.stack.matrix_stride,
                             b.stack.matrix_stride,
                             packed_stride_,
                             a.stack.rows * b.stack.columns};
  return RunProducts(context, products, products.pairs.count());
}

}  // namespace tenon
