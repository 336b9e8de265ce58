// Products with weights of few bits: MatMulNBits, MatMulBnb4 and MatMulFpQ4 of com.microsoft, and
// MatMulNBitsGrad of com.tenon.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/arithmetic.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/gemm_nbits.h"
#include "kernels/gemm/gemv_nbits.h"
#include "ops/framework/element_conversion.h"
#include "ops/framework/op_row.h"
#include "ops/framework/stateful_kernel.h"
#include "ops/linear/float_gemm.h"

namespace tenon {
namespace {

constexpr std::string_view kMicrosoft = "com.microsoft";

// Columns of the product that one task computes: their weights, as floats, stay in the L2 cache.
constexpr size_t kTaskColumns = 32;

// Floats from one row to the next, for rows that are read side by side: their lines lie in
// different sets of the cache.
size_t PaddedStride(size_t size) { return RoundUp<size_t>(size, 16) + 16; }

// Rows [first, first + m) of y = a x w' + bias. fill_row(j, floats) writes row j of w, [n, k], and
// may write up to `stride` floats.
template <class FillRow>
Status MultiplySomeByRows(KernelContext& context, size_t first, size_t m, size_t n, size_t k,
                          size_t stride, const float* bias, FillRow&& fill_row) {
  const float* a = context.Input(0).data<float>() + first * k;
  float* y = context.Output(0).data<float>() + first * n;
  if (m == 0) return OkStatus();
  const size_t row_stride = PaddedStride(stride);
  const size_t row_bytes = kTaskColumns * row_stride * sizeof(float);
  const size_t gemm_bytes = kernels::GemmScratchSize({m, kTaskColumns, k}, false);
  const size_t rest = n % kTaskColumns;
  const size_t rest_bytes = rest ? kernels::GemmScratchSize({m, rest, k}, false) : 0;
  const size_t task_bytes = row_bytes + std::max(gemm_bytes, rest_bytes);
  // Each task reads all rows of A.
  const bool copies_a = m > 4 && n > kTaskColumns;
  const size_t a_stride = copies_a ? PaddedStride(k) : k;
  const size_t tasks = CeilDiv(n, kTaskColumns);
  const auto a_bytes = CheckedMul(copies_a ? m : 0, a_stride * sizeof(float));
  const auto all =
      CheckedAdd(a_bytes.value_or(SIZE_MAX), context.TaskScratchBytes(tasks, task_bytes));
  auto* memory = static_cast<std::byte*>(context.Scratch(all.value_or(SIZE_MAX)));
  if (memory == nullptr) return RuntimeException("out of memory for {} rows of {}", m, k);
  if (copies_a) {
    auto* copied = reinterpret_cast<float*>(memory);
    context.threads().ParallelFor(m, 32768 / k + 1, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) std::copy_n(a + i * k, k, copied + i * a_stride);
    });
    a = copied;
  }
  context.ForEachTaskIn(memory + *a_bytes, tasks, task_bytes, [&](size_t task, std::byte* scratch) {
    const size_t column = task * kTaskColumns, count = std::min(kTaskColumns, n - column);
    auto* rows = reinterpret_cast<float*>(scratch);
    for (size_t j = 0; j < count; ++j) fill_row(column + j, rows + j * row_stride);
    kernels::GemmArgs args;
    args.sizes = {m, count, k};
    args.a = kernels::RowMajor(a, a_stride);
    args.b = kernels::Transposed(rows, row_stride);
    args.c = y + column;
    args.ldc = n;
    if (bias) args.epilogue.bias_columns = bias + column;
    kernels::Gemm(args, reinterpret_cast<float*>(scratch + row_bytes));
  });
  return OkStatus();
}

// All rows of y.
template <class FillRow>
Status MultiplyByRows(KernelContext& context, size_t n, size_t k, size_t stride, const float* bias,
                      FillRow&& fill_row) {
  const size_t m = static_cast<size_t>(context.Output(0).size()) / n;
  return MultiplySomeByRows(context, 0, m, n, k, stride, bias, fill_row);
}

// [..., K] x [N, K]' is [..., N].
Result<SymbolicShape> ProductShape(const ShapeContext& context, int64_t n, int64_t k) {
  if (n < 1 || k < 1) return InvalidArgument("expected K and N of at least 1, got {} and {}", k, n);
  TENON_ASSIGN_OR_RETURN(SymbolicShape a, context.Input(0));
  if (a.rank() < 1) return InvalidArgument("input 0: expected a vector or matrices, got {}", a);
  Dim& last = a[a.rank() - 1];
  if (last.is_number() && !(last == Dim(k))) {
    return InvalidArgument("input 0: expected rows of {} elements, got {}", k, a);
  }
  last = Dim(n);
  return a;
}

// Checks that input `i`, if it is present, has `count` elements.
Status CheckElements(const ShapeContext& context, size_t i, std::optional<int64_t> count) {
  if (!count) return InvalidArgument("input {}: expected more elements than there can be", i);
  if (!context.HasInput(i)) return OkStatus();
  const Result<SymbolicShape> shape = context.Input(i);
  if (!shape) return IsUnknownShape(shape.error()) ? OkStatus() : shape.error();
  const Dim elements = shape->NumElements();
  if (!elements.is_number() || elements == Dim(*count)) return OkStatus();
  return InvalidArgument("input {}: expected {} elements, got {}", i, *count, *shape);
}

// MatMulNBits-1. B is [N, blocks, block_size * bits / 8], the first element in the lowest bits.
enum NBitsInput : size_t { kA, kB, kScales, kZeroPoints, kGroups, kBias };

// Level 4 allows rounding A to 8 bits, 2 and 3 as float16 and bfloat16 do, and 1 asks for products
// as exact as those of floats. 0, which is the default, leaves it to the runtime.
constexpr int64_t kUnsetLevel = 0, kFloat32Level = 1, kBfloat16Level = 3, kInt8Level = 4;

struct NBitsAttrs {
  int64_t k = 0, n = 0, bits = 4, block_size = 0, accuracy_level = 0;
  static constexpr auto Fields() {
    using A = NBitsAttrs;
    return std::tuple(Field("K", &A::k), Field("N", &A::n), Field("bits", &A::bits),
                      Field("block_size", &A::block_size),
                      Field("accuracy_level", &A::accuracy_level));
  }
  int64_t blocks() const { return CeilDiv(k, block_size); }
  // Whether what rounding A to 8 bits adds is lost in the error of the weights. Standard
  // deviations: 1/440 of the greatest element in a block of A, for each element, and 1/26 of the
  // greatest weight in a block of 4 bits. With 128 usual weights the error of a sum then grows by
  // less than 5 %, even if one element of A is far greater than the others, and by less than 1 %
  // usually.
  bool drowns_int8_rows() const { return bits <= 4 && block_size <= 128; }
  // Bytes of a row's zero points, where these are packed.
  int64_t zero_bytes() const { return CeilDiv(blocks() * bits, int64_t{8}); }
};

// Checks the attributes and what the weights consist of.
Status CheckNBits(const NBitsAttrs& attrs, const ShapeContext& context) {
  if (attrs.bits != 2 && attrs.bits != 4 && attrs.bits != 8) {
    return InvalidArgument("attribute 'bits': expected 2, 4 or 8, got {}", attrs.bits);
  }
  if (attrs.block_size < 16 || attrs.block_size > 65536 ||
      (attrs.block_size & (attrs.block_size - 1)) != 0) {
    return InvalidArgument("attribute 'block_size': expected a power of 2 in [16, 65536], got {}",
                           attrs.block_size);
  }
  if (attrs.k > INT32_MAX || attrs.n > INT32_MAX) {
    return InvalidArgument("expected K and N below 2^31, got {} and {}", attrs.k, attrs.n);
  }
  const int64_t scales = attrs.n * attrs.blocks();
  TENON_RETURN_IF_ERROR(
      CheckElements(context, kB, CheckedMul(scales, attrs.block_size * attrs.bits / 8)));
  TENON_RETURN_IF_ERROR(CheckElements(context, kScales, scales));
  if (context.HasInput(kZeroPoints)) {
    const bool is_packed = context.ElementType(kZeroPoints) == DataType::kUint8;
    TENON_RETURN_IF_ERROR(
        CheckElements(context, kZeroPoints, is_packed ? attrs.n * attrs.zero_bytes() : scales));
  }
  // Each element's block in exporters' form: one for each of K, perhaps padded to whole blocks.
  if (context.HasInput(kGroups)) {
    const Result<SymbolicShape> groups = context.Input(kGroups);
    if (groups && groups->NumElements().is_number() && groups->NumElements().value() < attrs.k) {
      return InvalidArgument("input 4: expected {} elements, got {}", attrs.k, *groups);
    }
  }
  return OkStatus();
}

Status InferNBits(const NBitsAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, ProductShape(context, attrs.n, attrs.k));
  TENON_RETURN_IF_ERROR(CheckNBits(attrs, context));
  TENON_RETURN_IF_ERROR(CheckElements(context, kBias, attrs.n));
  return context.SetOutput(0, std::move(y));
}

kernels::NBitsMatrix WeightsOf(const NBitsAttrs& attrs, const KernelContext& context) {
  kernels::NBitsMatrix w;
  w.k = static_cast<size_t>(attrs.k);
  w.bits = static_cast<size_t>(attrs.bits);
  w.block_size = static_cast<size_t>(attrs.block_size);
  w.data = context.Input(kB).data<uint8_t>();
  w.scales = context.Input(kScales).data<float>();
  w.zero_stride = static_cast<size_t>(attrs.zero_bytes());
  if (context.HasInput(kZeroPoints)) {
    const Tensor& zeros = context.Input(kZeroPoints);
    if (zeros.type() == DataType::kUint8) {
      w.zero_points = zeros.data<uint8_t>();
    } else {
      w.float_zero_points = zeros.data<float>();
    }
  }
  return w;
}

// Row `row`, where element i belongs to block groups[i].
void FillGroupedRow(const kernels::NBitsMatrix& w, const int32_t* groups, size_t row, float* out) {
  const uint8_t* packed = w.data + row * w.blocks() * (w.block_size * w.bits / 8);
  for (size_t i = 0; i < w.k; ++i) {
    const auto block = static_cast<size_t>(groups[i]);
    out[i] = (static_cast<float>(UnpackBits(packed, i, w.bits)) - w.ZeroPoint(row, block)) *
             w.Scale(row, block);
  }
}

// Input 4, or null if it is absent. Error: kInvalidArgument if there are not so many blocks.
Result<const int32_t*> GroupsOf(const NBitsAttrs& attrs, const KernelContext& context) {
  if (!context.HasInput(kGroups)) return nullptr;
  const auto* groups = context.Input(kGroups).data<int32_t>();
  for (int64_t i = 0; i < attrs.k; ++i) {
    if (groups[i] >= 0 && groups[i] < attrs.blocks()) continue;
    return InvalidArgument("input 4: expected blocks in [0, {}), got {}", attrs.blocks(),
                           groups[i]);
  }
  return groups;
}

// Up to this number of rows of A, each is multiplied by the packed weights as floats; for more,
// unpacking them once is faster.
constexpr size_t kMostVectors = 5;

// Arranges all rows of A for the packed weights, `bytes` apart, by arrange(row, memory); then calls
// run(arranged rows, first column, columns).
template <class Arrange, class Multiply>
Status MultiplyVectors(const kernels::NBitsMatrix& w, KernelContext& context, size_t bytes,
                       Arrange&& arrange, Multiply&& multiply) {
  const Tensor& a = context.Input(kA);
  const auto m = static_cast<size_t>(a.size()) / w.k;
  const auto n = static_cast<size_t>(context.Output(0).shape().back());
  auto* arranged = static_cast<std::byte*>(context.Scratch(m * bytes));
  if (arranged == nullptr) return RuntimeException("out of memory for {} rows of {}", m, w.k);
  context.threads().ParallelFor(m, 8192 / w.k + 1, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) arrange(a.data<float>() + i * w.k, arranged + i * bytes);
  });
  // Weights for a task of reasonable size; they stay in the L1 cache for all rows of A.
  constexpr size_t kTaskWeights = 65536;
  const size_t step = std::max<size_t>(1, kTaskWeights / w.k / 4) * 4;
  context.threads().ParallelFor(CeilDiv(n, step), 1, [&](size_t begin, size_t end) {
    for (size_t task = begin; task < end; ++task) {
      const size_t first = task * step;
      multiply(arranged, first, std::min(step, n - first));
    }
  });
  return OkStatus();
}

// The product with rows of A that are rounded to parts of 8 bits, for many of them.
Status MultiplyPanels(const kernels::NBitsMatrix& w, kernels::NBitsParts parts, const float* bias,
                      KernelContext& context) {
  const float* a = context.Input(kA).data<float>();
  Tensor& y = context.Output(0);
  const auto n = static_cast<size_t>(y.shape().back());
  const size_t m = static_cast<size_t>(y.size()) / n;
  const size_t tasks = CeilDiv(n, kernels::kNBitsPanelColumns);
  const size_t row_bytes = kernels::Int8NBitsRows::Bytes(w, parts, m);
  const size_t task_bytes = kernels::NBitsPanelBytes(w);
  const size_t bytes = context.TaskScratchBytes(tasks, task_bytes);
  const auto all = CheckedAdd(row_bytes, bytes);
  auto* memory = static_cast<std::byte*>(context.Scratch(all.value_or(SIZE_MAX)));
  if (memory == nullptr) return RuntimeException("out of memory: {} bytes of scratch", bytes);
  const kernels::Int8NBitsRows rows(w, parts, m, memory);
  context.threads().ParallelFor(m, 8192 / w.k + 1, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) rows.Set(w, i, a + i * w.k);
  });
  context.ForEachTaskIn(memory + row_bytes, tasks, task_bytes,
                        [&](size_t task, std::byte* scratch) {
                          const size_t first = task * kernels::kNBitsPanelColumns;
                          kernels::RunNBitsPanel(w, rows, bias, first, y.data<float>(), n, scratch);
                        });
  return OkStatus();
}

Status MultiplyBytes(const kernels::NBitsMatrix& w, kernels::NBitsParts parts, const float* bias,
                     KernelContext& context) {
  Tensor& y = context.Output(0);
  const auto n = static_cast<size_t>(y.shape().back());
  return MultiplyVectors(
      w, context, kernels::ArrangedNBitsBytes(w, parts),
      [&](const float* x, std::byte* into) { kernels::ArrangeNBitsBytes(w, parts, x, into); },
      [&](const std::byte* x, size_t first, size_t count) {
        kernels::RunInt8NBitsGemm(w, parts, x, static_cast<size_t>(y.size()) / n, bias, first,
                                  count, y.data<float>(), n);
      });
}

Status MultiplyFloats(const kernels::NBitsMatrix& w, const float* bias, KernelContext& context) {
  Tensor& y = context.Output(0);
  const auto n = static_cast<size_t>(y.shape().back());
  const size_t rows = static_cast<size_t>(y.size()) / n;
  const size_t bytes = RoundUp<size_t>(kernels::ArrangedNBitsSize(w) * sizeof(float), 64);
  return MultiplyVectors(
      w, context, bytes,
      [&](const float* x, std::byte* into) {
        kernels::ArrangeNBitsVector(w, x, reinterpret_cast<float*>(into));
      },
      [&](const std::byte* x, size_t first, size_t count) {
        for (size_t i = 0; i < rows; ++i) {
          kernels::RunNBitsGemv(w, reinterpret_cast<const float*>(x + i * bytes), bias, first,
                                count, y.data<float>() + i * n);
        }
      });
}

Status RunNBits(const NBitsAttrs& attrs, KernelContext& context) {
  const auto rows = static_cast<size_t>(context.Output(0).size() / attrs.n);
  if (rows == 0) return OkStatus();
  const kernels::NBitsMatrix w = WeightsOf(attrs, context);
  const float* bias = context.HasInput(kBias) ? context.Input(kBias).data<float>() : nullptr;
  const auto n = static_cast<size_t>(attrs.n);
  TENON_ASSIGN_OR_RETURN(const int32_t* const groups, GroupsOf(attrs, context));
  if (groups != nullptr) {
    return MultiplyByRows(context, n, w.k, w.k, bias,
                          [&](size_t row, float* out) { FillGroupedRow(w, groups, row, out); });
  }
  const auto fill_row = [&](size_t row, float* out) { kernels::UnpackNBitsRow(w, row, out); };
  const size_t stride = w.blocks() * w.block_size;
  using Parts = kernels::NBitsParts;
  const bool is_int8 = attrs.accuracy_level == kInt8Level;
  const bool is_float32 = attrs.accuracy_level == kFloat32Level;
  const Parts many_parts = is_int8 ? Parts::kOne : is_float32 ? Parts::kThree : Parts::kTwo;
  const Parts few_parts = is_int8 ? Parts::kOne : Parts::kThree;
  const size_t few_rows = kernels::MostInt8NBitsVectors(few_parts);
  if (rows > few_rows && kernels::HasInt8NBitsPanels(w, many_parts)) {
    TENON_RETURN_IF_ERROR(MultiplyPanels(w, many_parts, bias, context));
  } else if ((is_int8 || rows <= few_rows) && kernels::HasInt8NBitsGemm(w)) {
    TENON_RETURN_IF_ERROR(MultiplyBytes(w, few_parts, bias, context));
  } else if (rows > kMostVectors) {
    return MultiplyByRows(context, n, w.k, stride, bias, fill_row);
  } else {
    TENON_RETURN_IF_ERROR(MultiplyFloats(w, bias, context));
  }
  // These would turn infinities in A into NaN, which the weights do not.
  for (size_t i = 0; i < rows; ++i) {
    if (std::isfinite(context.Output(0).data<float>()[i * n])) continue;
    TENON_RETURN_IF_ERROR(MultiplySomeByRows(context, i, 1, n, w.k, stride, bias, fill_row));
  }
  return OkStatus();
}

class MatMulNBits final : public StatefulKernel<InferNBits> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    if (attrs_.accuracy_level == kUnsetLevel) attrs_.accuracy_level = DefaultLevel(info.weights());
    return OkStatus();
  }
  Status Run(KernelContext& context) const override { return RunNBits(attrs_, context); }

 private:
  int64_t DefaultLevel(const WeightPolicy& policy) const {
    if (policy.nbits_accuracy_level != kUnsetLevel) {
      return static_cast<int64_t>(policy.nbits_accuracy_level);
    }
    if (attrs_.drowns_int8_rows()) return kInt8Level;
    return policy.precision == MatmulPrecision::kHighest ? kFloat32Level : kBfloat16Level;
  }
};

// com.tenon MatMulNBitsGrad-1: the gradient of A, dY x the unpacked weights. Its inputs and
// attributes are those of MatMulNBits, with dY in place of A.
Status InferNBitsGradient(const NBitsAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape da, ProductShape(context, attrs.k, attrs.n));
  TENON_RETURN_IF_ERROR(CheckNBits(attrs, context));
  return context.SetOutput(0, std::move(da));
}

class MatMulNBitsGradient final : public StatefulKernel<InferNBitsGradient> {
 public:
  Status Prepare(KernelInfo& info) {
    gemm_ = FloatGemm(info);
    return Bind(info);
  }
  Status Run(KernelContext& context) const override;

 private:
  FloatGemm gemm_;
};

// Adds up the products with stripes of rows of the weights, which alone are in memory as floats.
Status MatMulNBitsGradient::Run(KernelContext& context) const {
  constexpr size_t kStripe = 128;
  const kernels::NBitsMatrix w = WeightsOf(attrs_, context);
  TENON_ASSIGN_OR_RETURN(const int32_t* const groups, GroupsOf(attrs_, context));
  const auto n = static_cast<size_t>(attrs_.n), stripe = std::min(n, kStripe);
  kernels::GemmArgs args;
  args.sizes = {static_cast<size_t>(context.Output(0).size()) / w.k, w.k, stripe};
  args.c = context.Output(0).data<float>();
  args.ldc = w.k;
  const size_t row_stride = PaddedStride(w.blocks() * w.block_size);
  const size_t row_bytes = stripe * row_stride * sizeof(float);
  kernels::GemmSizes last = args.sizes;
  last.k = n % stripe;
  const size_t bytes = row_bytes + std::max(gemm_.TaskBytes(context, args.sizes, false),
                                            gemm_.TaskBytes(context, last, false));
  auto* const memory = static_cast<std::byte*>(context.Scratch(bytes));
  if (memory == nullptr) return RuntimeException("out of memory: {} bytes of scratch", bytes);
  auto* const rows = reinterpret_cast<float*>(memory);
  args.b = kernels::RowMajor(rows, row_stride);
  for (size_t first = 0; first < n; first += stripe) {
    args.sizes.k = std::min(stripe, n - first);
    context.threads().ParallelFor(args.sizes.k, 16384 / w.k + 1, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        float* const row = rows + i * row_stride;
        if (groups != nullptr) {
          FillGroupedRow(w, groups, first + i, row);
        } else {
          kernels::UnpackNBitsRow(w, first + i, row);
        }
      }
    });
    args.a = kernels::RowMajor(context.Input(0).data<float>() + first, n);
    args.beta = first == 0 ? 0 : 1;
    gemm_.Run(context, args, memory + row_bytes);
  }
  return OkStatus();
}

// MatMulBnb4-1: the weights, [N, K], are one run of blocks, each with its largest magnitude; the
// first element is in the highest bits. Without transB, A has N columns and Y has K.
struct Bnb4Attrs {
  int64_t k = 0, n = 0, block_size = 0, quant_type = 0;
  bool transposed = true;
  static constexpr auto Fields() {
    using A = Bnb4Attrs;
    return std::tuple(Field("K", &A::k), Field("N", &A::n), Field("block_size", &A::block_size),
                      Field("quant_type", &A::quant_type), Field("transB", &A::transposed));
  }
};

enum QuantType : int64_t { kFp4, kNf4 };

Status InferBnb4(const Bnb4Attrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, attrs.transposed
                                              ? ProductShape(context, attrs.n, attrs.k)
                                              : ProductShape(context, attrs.k, attrs.n));
  if (attrs.quant_type != kFp4 && attrs.quant_type != kNf4) {
    return InvalidArgument("attribute 'quant_type': expected 0 or 1, got {}", attrs.quant_type);
  }
  if (attrs.block_size < 1) {
    return InvalidArgument("attribute 'block_size': expected at least 1, got {}", attrs.block_size);
  }
  const auto elements = CheckedMul(attrs.n, attrs.k);
  if (!elements) return InvalidArgument("expected fewer weights, got {} x {}", attrs.n, attrs.k);
  TENON_RETURN_IF_ERROR(CheckElements(context, 1, CeilDiv(*elements, int64_t{2})));
  TENON_RETURN_IF_ERROR(CheckElements(context, 2, CeilDiv(*elements, attrs.block_size)));
  return context.SetOutput(0, std::move(y));
}

// The values of the codes, as the library bitsandbytes defines them.
constexpr float kFp4Values[16] = {
    0.0f, 5.208333333e-03f,  0.66666667f,  1.0f,  0.33333333f,  0.5f,  0.16666667f,  0.25f,
    0.0f, -5.208333333e-03f, -0.66666667f, -1.0f, -0.33333333f, -0.5f, -0.16666667f, -0.25f};
constexpr float kNf4Values[16] = {-1.0f,
                                  -0.6961928009986877f,
                                  -0.5250730514526367f,
                                  -0.39491748809814453f,
                                  -0.28444138169288635f,
                                  -0.18477343022823334f,
                                  -0.09105003625154495f,
                                  0.0f,
                                  0.07958029955625534f,
                                  0.16093020141124725f,
                                  0.24611230194568634f,
                                  0.33791524171829224f,
                                  0.44070982933044434f,
                                  0.5626170039176941f,
                                  0.7229568362236023f,
                                  1.0f};

Status RunBnb4(const Bnb4Attrs& attrs, KernelContext& context) {
  const float* values = attrs.quant_type == kFp4 ? kFp4Values : kNf4Values;
  const auto* packed = context.Input(1).data<uint8_t>();
  const auto* largest = context.Input(2).data<float>();
  const auto n = static_cast<size_t>(attrs.n), k = static_cast<size_t>(attrs.k);
  const auto block_size = static_cast<size_t>(attrs.block_size);
  const size_t rows = attrs.transposed ? n : k, depth = attrs.transposed ? k : n;
  return MultiplyByRows(context, rows, depth, depth, nullptr, [&](size_t row, float* out) {
    for (size_t i = 0; i < depth; ++i) {
      const size_t at = attrs.transposed ? row * k + i : i * k + row;
      const int shift = at % 2 ? 0 : 4;
      out[i] = values[packed[at / 2] >> shift & 15] * largest[at / block_size];
    }
  });
}

// MatMulFpQ4-1: blocks of 32 weights of a column, one after the other. A block is its scale, its
// zero point if there is one, and 16 bytes: weights 0 to 15 in the lower bits, 16 to 31 above them.
struct FpQ4Attrs {
  int64_t type = 1;  // 0: the zero point is 8; others, as in onnxruntime: each block has its own
  static constexpr auto Fields() { return std::tuple(Field("blk_quant_type", &FpQ4Attrs::type)); }
  size_t header_bytes() const { return sizeof(float) + (type == 0 ? 0 : 1); }
};

constexpr size_t kQ4Block = 32;

Status InferFpQ4(const FpQ4Attrs& attrs, ShapeContext& context) {
  const Result<Shape> sizes = context.InputAsInts(2);
  if (!sizes) return sizes.error();
  if (sizes->rank() != 2) {
    return InvalidArgument("input 2: expected K and N, got {} numbers", sizes->rank());
  }
  const int64_t k = (*sizes)[0], n = (*sizes)[1];
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, ProductShape(context, n, k));
  const auto blocks = CheckedMul(n, CeilDiv(k, int64_t{kQ4Block}));
  const auto block_bytes = static_cast<int64_t>(attrs.header_bytes() + kQ4Block / 2);
  TENON_RETURN_IF_ERROR(
      CheckElements(context, 1, blocks ? CheckedMul(*blocks, block_bytes) : std::nullopt));
  return context.SetOutput(0, std::move(y));
}

Status RunFpQ4(const FpQ4Attrs& attrs, KernelContext& context) {
  const auto k = static_cast<size_t>(context.Input(2).data<int64_t>()[0]);
  const auto n = static_cast<size_t>(context.Input(2).data<int64_t>()[1]);
  const size_t blocks = CeilDiv(k, kQ4Block), header = attrs.header_bytes();
  const auto* packed = context.Input(1).data<uint8_t>();
  return MultiplyByRows(context, n, k, blocks * kQ4Block, nullptr, [&](size_t row, float* out) {
    const uint8_t* block = packed + row * blocks * (header + kQ4Block / 2);
    for (size_t b = 0; b < blocks; ++b, block += header + kQ4Block / 2) {
      float scale;
      std::memcpy(&scale, block, sizeof(scale));
      const int zero_point = attrs.type == 0 ? 8 : block[sizeof(scale)];
      for (size_t i = 0; i < kQ4Block / 2; ++i) {
        const int both = block[header + i];
        *out++ = static_cast<float>((both & 15) - zero_point) * scale;
        out[kQ4Block / 2 - 1] = static_cast<float>((both >> 4) - zero_point) * scale;
      }
      out += kQ4Block / 2;
    }
  });
}

constexpr KernelTraits kTraits = {.unaligned_input = kScales};

constexpr OpRow kRows[] = {
    OpClass<MatMulNBits>("MatMulNBits",
                         {.domain = kMicrosoft, .types = kFloat32Only, .traits = kTraits}),
    OpClass<MatMulNBitsGradient>("MatMulNBitsGrad",
                                 {.domain = "com.tenon", .types = kFloat32Only, .traits = kTraits}),
    Op<InferBnb4, RunBnb4>("MatMulBnb4", {.domain = kMicrosoft, .types = kFloat32Only}),
    Op<InferFpQ4, RunFpQ4>("MatMulFpQ4", {.domain = kMicrosoft, .types = kFloat32Only}),
};

}  // namespace

TENON_OP_FAMILY(MatMulNBits, kRows);

}  // namespace tenon
