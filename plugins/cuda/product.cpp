#include "product.h"

#include <algorithm>

#include "kernels.h"
#include "operators.h"

namespace cuda {
namespace {

// As cuBLAS's guides advise for devices of compute capability 9.
constexpr size_t kWorkspaceBytes = size_t{32} << 20;

int CudaType(DataType type) {
  return type == DataType::kFloat16    ? CUDA_R_16F
         : type == DataType::kBFloat16 ? CUDA_R_16BF
                                       : CUDA_R_32F;
}

// One operand: matrices at equal distances.
struct Matrix {
  bool is_transposed = false;  // the rows of the matrix are its columns in memory
  int64_t leading = 0;         // elements between two lines in memory
  int64_t batch_stride = 0;
};

struct ProductShape {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  int64_t batch = 1;
  Matrix a;
  Matrix b;
};

// What cuBLASLt's objects describe; released with it.
class Descriptors {
 public:
  Descriptors() = default;
  ~Descriptors() {
    const BlasLibrary& blas = *LoadBlas();
    if (operation) blas.cublasLtMatmulDescDestroy(operation);
    for (cublasLtMatrixLayout_t layout : {a, b, d}) {
      if (layout) blas.cublasLtMatrixLayoutDestroy(layout);
    }
  }
  Descriptors(const Descriptors&) = delete;
  Descriptors& operator=(const Descriptors&) = delete;

  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr;
  cublasLtMatrixLayout_t b = nullptr;
  cublasLtMatrixLayout_t d = nullptr;
};

// The bytes that an address of the tensor is surely a multiple of.
unsigned AlignmentOf(const Tensor& tensor) {
  const auto bytes = static_cast<uint64_t>(tensor.offset) * SizeOf(tensor.stored_type);
  // Callers' tensors are aligned to 16 bytes at least, or copied: see CompiledGraph.
  return static_cast<unsigned>(bytes == 0 ? 16 : std::min<uint64_t>(16, bytes & -bytes));
}

class ProductCall : public EpilogueCall {
 public:
  // Operands: a, b, then the bias and the residual if there are such.
  ProductCall(Context& context, const TensorRef& a, const TensorRef& b, const ProductShape& shape,
              float alpha)
      : EpilogueCall({a, b}), context_(context), type_(a->type), shape_(shape), alpha_(alpha) {}
  ProductCall(const ProductCall& other)
      : EpilogueCall(other),
        context_(other.context_),
        type_(other.type_),
        shape_(other.shape_),
        alpha_(other.alpha_),
        has_bias_(other.has_bias_),
        has_residual_(other.has_residual_),
        epilogue_(other.epilogue_) {}

  const char* name() const override { return "product"; }
  const std::string* source() const override { return source_.empty() ? nullptr : &source_; }
  Status Load() override;
  std::shared_ptr<Call> Add(Planner& planner, const Shape& shape,
                            const TensorRef& other) const override;
  std::shared_ptr<Call> Activate(Activation activation) const override;
  Status Prepare() override;
  Status Run(CUstream stream, std::span<void* const> arguments) override;

 private:
  Status Describe();
  Status ChooseAlgorithm();
  bool HasFewRows() const;
  Status RunFewRows(CUstream stream, std::span<void* const> arguments);

  Context& context_;
  DataType type_;
  ProductShape shape_;
  float alpha_;
  bool has_bias_ = false;
  bool has_residual_ = false;
  int epilogue_ = 0;  // RELU or GELU
  std::unique_ptr<Descriptors> descriptors_;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
  // Of the kernel for few rows.
  std::string source_;
  int64_t together_ = 1;  // rows of a block
  int64_t columns_ = 1;   // of a warp
  CUfunction function_ = nullptr;
};

std::shared_ptr<Call> ProductCall::Add(Planner& planner, const Shape& shape,
                                       const TensorRef& other) const {
  if (epilogue_ != 0 || other->type != type_) return nullptr;
  const int64_t count = ElementCount(other->shape);
  const bool is_row = !other->shape.empty() && other->shape.size() <= shape.size() &&
                      other->shape.back() == shape_.n && count == shape_.n;
  const bool is_bias = is_row && !has_bias_ && !has_residual_;
  const bool is_residual = !has_residual_ && other->shape == shape;
  if (!is_bias && !is_residual) return nullptr;
  const auto operand = planner.Contiguous(other);
  if (!operand.ok() || (*operand)->stored_type != type_) return nullptr;
  auto extended = std::make_shared<ProductCall>(*this);
  extended->operands.push_back(*operand);
  (is_bias ? extended->has_bias_ : extended->has_residual_) = true;
  return extended;
}

std::shared_ptr<Call> ProductCall::Activate(Activation activation) const {
  if (epilogue_ != 0) return nullptr;
  auto extended = std::make_shared<ProductCall>(*this);
  extended->epilogue_ =
      activation == Activation::kRelu ? CUBLASLT_EPILOGUE_RELU : CUBLASLT_EPILOGUE_GELU;
  return extended;
}

// cuBLAS stores columns one after another: what it sees of row-major memory is each matrix
// transposed. So it computes d' = b' x a', with b first.
Status ProductCall::Describe() {
  const BlasLibrary& blas = *LoadBlas();
  descriptors_ = std::make_unique<Descriptors>();
  Descriptors& d = *descriptors_;
  const bool is_tf32 = type_ == DataType::kFloat && context_.options.use_tf32;
  PLUGIN_RETURN_IF_ERROR(CheckBlas(
      blas.cublasLtMatmulDescCreate(
          &d.operation, is_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
      "cublasLtMatmulDescCreate"));
  const auto set = [&](int attribute, int value) {
    return CheckBlas(
        blas.cublasLtMatmulDescSetAttribute(d.operation, attribute, &value, sizeof(value)),
        "cublasLtMatmulDescSetAttribute");
  };
  if (shape_.b.is_transposed) {
    PLUGIN_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T));
  }
  if (shape_.a.is_transposed) {
    PLUGIN_RETURN_IF_ERROR(set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_T));
  }
  const int epilogue = epilogue_ | (has_bias_ ? CUBLASLT_EPILOGUE_BIAS : 0);
  PLUGIN_RETURN_IF_ERROR(
      set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue ? epilogue : CUBLASLT_EPILOGUE_DEFAULT));
  const auto layout = [&](cublasLtMatrixLayout_t& made, int64_t rows, int64_t columns,
                          const Matrix& matrix) {
    if (matrix.is_transposed) std::swap(rows, columns);
    PLUGIN_RETURN_IF_ERROR(CheckBlas(
        blas.cublasLtMatrixLayoutCreate(&made, CudaType(type_), static_cast<uint64_t>(rows),
                                        static_cast<uint64_t>(columns), matrix.leading),
        "cublasLtMatrixLayoutCreate"));
    if (shape_.batch == 1) return Status();
    const auto count = static_cast<int32_t>(shape_.batch);
    PLUGIN_RETURN_IF_ERROR(
        CheckBlas(blas.cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                                        &count, sizeof(count)),
                  "cublasLtMatrixLayoutSetAttribute"));
    return CheckBlas(
        blas.cublasLtMatrixLayoutSetAttribute(made, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                              &matrix.batch_stride, sizeof(matrix.batch_stride)),
        "cublasLtMatrixLayoutSetAttribute");
  };
  PLUGIN_RETURN_IF_ERROR(layout(d.b, shape_.n, shape_.k, shape_.b));
  PLUGIN_RETURN_IF_ERROR(layout(d.a, shape_.k, shape_.m, shape_.a));
  return layout(d.d, shape_.n, shape_.m, {false, shape_.n, shape_.m * shape_.n});
}

Status ProductCall::ChooseAlgorithm() {
  const BlasLibrary& blas = *LoadBlas();
  const Descriptors& d = *descriptors_;
  cublasLtMatmulPreference_t preference = nullptr;
  PLUGIN_RETURN_IF_ERROR(CheckBlas(blas.cublasLtMatmulPreferenceCreate(&preference),
                                   "cublasLtMatmulPreferenceCreate"));
  const auto set = [&](int attribute, const auto& value) {
    blas.cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value));
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspaceBytes);
  uint32_t alignment = 16;
  for (const TensorRef& operand : operands) alignment = std::min(alignment, AlignmentOf(*operand));
  for (int which = 0; which < 4; ++which) {  // a, b, c, d
    set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES + which, alignment);
  }
  cublasLtMatmulHeuristicResult_t result{};
  int found = 0;
  const int error = blas.cublasLtMatmulAlgoGetHeuristic(handle_, d.operation, d.b, d.a, d.d, d.d,
                                                        preference, 1, &result, &found);
  blas.cublasLtMatmulPreferenceDestroy(preference);
  PLUGIN_RETURN_IF_ERROR(CheckBlas(error, "cublasLtMatmulAlgoGetHeuristic"));
  if (found == 0) {
    return Failure("cuBLAS has no product of {} matrices [{}, {}] x [{}, {}]", shape_.batch,
                   shape_.m, shape_.k, shape_.k, shape_.n);
  }
  algorithm_ = result.algo;
  workspace_bytes = result.workspaceSize;
  return Status();
}

// Such a product reads each weight once: memory limits it, not arithmetic. The kernel is for
// weights whose columns lie side by side.
bool ProductCall::HasFewRows() const {
  constexpr int64_t kMost = 4;
  constexpr int64_t kMostBytes = 96 * 1024;  // of shared memory, for the rows
  const bool is_short = type_ == DataType::kFloat16 || type_ == DataType::kBFloat16;
  if (!is_short || shape_.batch != 1 || shape_.m > kMost || shape_.k % 8 != 0) return false;
  if (!shape_.b.is_transposed || shape_.a.is_transposed || shape_.b.leading % 8 != 0) return false;
  if (shape_.m > 1 && shape_.a.leading % 8 != 0) return false;
  for (size_t i = 0; i < 2; ++i) {
    if (AlignmentOf(*operands[i]) < 16) return false;
  }
  return kMost * shape_.k * 2 <= kMostBytes;
}

Status ProductCall::Prepare() {
  if (HasFewRows()) {
    together_ = shape_.m > 2 ? 4 : shape_.m;
    columns_ = together_ == 1 && shape_.n >= 8192 ? 2 : 1;
    const int activation = epilogue_ == CUBLASLT_EPILOGUE_RELU ? 1 : epilogue_ == 0 ? 0 : 2;
    source_ = fmt::format(
                  "#define ELEMENT {}\n#define ROWS {}\n#define COLUMNS {}\n#define HAS_BIAS {}\n"
                  "#define HAS_RESIDUAL {}\n#define ACTIVATION {}\n",
                  type_ == DataType::kFloat16 ? 1 : 2, together_, columns_, has_bias_ ? 1 : 0,
                  has_residual_ ? 1 : 0, activation) +
              kFewRowsSource;
    return Status();
  }
  PLUGIN_ASSIGN_OR_RETURN(handle_, context_.device.blas());
  PLUGIN_RETURN_IF_ERROR(Describe());
  for (const TensorRef& operand : operands) {
    if (operand->storage < 0 || operand->deferred) return Failure("expected operands in memory");
  }
  return ChooseAlgorithm();
}

Status ProductCall::Load() {
  if (source_.empty()) return Status();
  PLUGIN_ASSIGN_OR_RETURN(function_, context_.device.programs().Find(source_, "few_rows"));
  const auto shared = static_cast<int>(together_ * shape_.k * 2);
  return CU_CHECK(cuFuncSetAttribute, function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                  shared);
}

Status ProductCall::RunFewRows(CUstream stream, std::span<void* const> arguments) {
  constexpr int64_t kWarps = 8;
  const auto number = [](int64_t value) { return static_cast<int32_t>(value); };
  const auto blocks = [](int64_t count, int64_t size) {
    return static_cast<unsigned>((count + size - 1) / size);
  };
  Number numbers[] = {number(shape_.m), number(shape_.n), number(shape_.k),
                      alpha_,           shape_.a.leading, shape_.b.leading};
  return LaunchKernel(function_,
                      {blocks(shape_.n, kWarps * columns_), blocks(shape_.m, together_), 1},
                      {static_cast<unsigned>(kWarps * 32), 1, 1},
                      static_cast<unsigned>(together_ * shape_.k * 2), stream, arguments, numbers);
}

Status ProductCall::Run(CUstream stream, std::span<void* const> arguments) {
  if (function_) return RunFewRows(stream, arguments);
  const BlasLibrary& blas = *LoadBlas();
  const Descriptors& d = *descriptors_;
  size_t next = 2;
  if (has_bias_) {
    PLUGIN_RETURN_IF_ERROR(CheckBlas(
        blas.cublasLtMatmulDescSetAttribute(d.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                            &arguments[next++], sizeof(void*)),
        "cublasLtMatmulDescSetAttribute"));
  }
  const void* residual = has_residual_ ? arguments[next++] : nullptr;
  void* result = arguments[next++];
  void* workspace = workspace_bytes > 0 ? arguments[next] : nullptr;
  const float beta = residual ? 1.0f : 0.0f;
  return CheckBlas(
      blas.cublasLtMatmul(handle_, d.operation, &alpha_, arguments[1], d.b, arguments[0], d.a,
                          &beta, residual ? residual : result, d.d, result, d.d, &algorithm_,
                          workspace, workspace_bytes, stream),
      "cublasLtMatmul");
}

// The last two axes as a matrix that cuBLAS can read; nothing if they must be copied first.
std::optional<Matrix> ReadMatrix(const Tensor& tensor) {
  const size_t rank = tensor.shape.size();
  const int64_t rows = tensor.shape[rank - 2];
  const int64_t columns = tensor.shape[rank - 1];
  const int64_t row = tensor.strides[rank - 2];
  const int64_t column = tensor.strides[rank - 1];
  if ((column == 1 || columns == 1) && (row >= columns || rows == 1)) {
    return Matrix{false, rows == 1 ? std::max(columns, int64_t{1}) : row, 0};
  }
  if ((row == 1 || rows == 1) && (column >= rows || columns == 1)) {
    return Matrix{true, columns == 1 ? std::max(rows, int64_t{1}) : column, 0};
  }
  return std::nullopt;
}

// The distance between the matrices of a batch of this shape; nothing if it varies.
std::optional<int64_t> BatchStride(const Tensor& tensor, const Shape& batch) {
  Tensor leading;
  leading.shape.assign(tensor.shape.begin(), tensor.shape.end() - 2);
  leading.strides.assign(tensor.strides.begin(), tensor.strides.end() - 2);
  const Shape strides = BroadcastStrides(leading, batch);
  std::optional<int64_t> stride;
  int64_t inner = 1;  // matrices within one step of the axis
  for (size_t i = batch.size(); i-- > 0;) {
    if (batch[i] == 1) continue;
    if (!stride)
      stride = strides[i];
    else if (strides[i] != *stride * inner)
      return std::nullopt;
    inner *= batch[i];
  }
  return stride.value_or(0);
}

// The operand in a layout that cuBLAS reads.
struct Operand {
  TensorRef tensor;
  Matrix matrix;
};

Result<Operand> MakeOperand(Planner& planner, TensorRef tensor, const Shape& batch) {
  PLUGIN_RETURN_IF_ERROR(planner.Store(tensor));
  // A view of a shorter type as float: the memory must be of the type of the product.
  if (tensor->stored_type != tensor->type) {
    const TensorRef converted = planner.Expression(tensor->type, tensor->shape, "$0", {tensor});
    PLUGIN_RETURN_IF_ERROR(planner.Store(converted));
    tensor = converted;
  }
  const auto read = [&]() -> std::optional<Operand> {
    auto matrix = ReadMatrix(*tensor);
    const auto stride = BatchStride(*tensor, batch);
    if (!matrix || !stride) return std::nullopt;
    matrix->batch_stride = *stride;
    return Operand{tensor, *matrix};
  };
  if (auto operand = read()) return std::move(*operand);
  Shape shape = batch;
  shape.insert(shape.end(), tensor->shape.end() - 2, tensor->shape.end());
  PLUGIN_ASSIGN_OR_RETURN(tensor, planner.Contiguous(planner.Expression(
                                      tensor->type, std::move(shape), "$0", {tensor})));
  if (auto operand = read()) return std::move(*operand);
  return Failure("expected a matrix, got {} with strides {}", tensor->shape, tensor->strides);
}

// All matrices of `a` as one, if each is multiplied by the same b.
TensorRef AsOneMatrix(Planner& planner, const TensorRef& a) {
  if (a->deferred || a->storage < 0 || a->stored_type != a->type) return nullptr;
  const size_t rank = a->shape.size();
  int64_t rows = 1;
  for (size_t i = rank - 1; i-- > 0;) {
    if (a->shape[i] != 1 && rows != 1 && a->strides[i] != a->strides[rank - 2] * rows)
      return nullptr;
    if (a->shape[i] != 1 && rows == 1 && i + 2 != rank) return nullptr;
    rows *= a->shape[i];
  }
  auto view =
      planner.View(a, {rows, a->shape[rank - 1]}, {a->strides[rank - 2], a->strides[rank - 1]}, 0);
  return view.ok() ? *view : nullptr;
}

Status LowerMatMul(Planner& planner, const Node& node) {
  if (!ContextOf(planner).HasBlas()) return FindGenerated(node)->lower(planner, node);
  TensorRef a = planner.Input(node, 0);
  TensorRef b = planner.Input(node, 1);
  if (a->shape.empty() || b->shape.empty()) return Failure("expected no scalars");
  const bool a_is_vector = a->shape.size() == 1;
  const bool b_is_vector = b->shape.size() == 1;
  if (a_is_vector) {
    PLUGIN_ASSIGN_OR_RETURN(a, planner.Reshape(a, {1, a->shape[0]}));
  }
  if (b_is_vector) {
    PLUGIN_ASSIGN_OR_RETURN(b, planner.Reshape(b, {b->shape[0], 1}));
  }
  PLUGIN_ASSIGN_OR_RETURN(TensorRef result, Multiply(planner, a, b));
  if (a_is_vector || b_is_vector) {
    Shape shape = result->shape;
    if (b_is_vector) shape.pop_back();
    if (a_is_vector) shape.erase(shape.end() - (b_is_vector ? 1 : 2));
    PLUGIN_ASSIGN_OR_RETURN(result, planner.Reshape(result, std::move(shape)));
  }
  return planner.SetOutput(node, 0, result);
}

Result<TensorRef> Transposed(Planner& planner, const TensorRef& matrix, bool is_transposed) {
  if (matrix->shape.size() != 2) return Failure("expected a matrix, got shape {}", matrix->shape);
  if (!is_transposed) return matrix;
  PLUGIN_RETURN_IF_ERROR(planner.Store(matrix));
  return planner.View(matrix, {matrix->shape[1], matrix->shape[0]},
                      {matrix->strides[1], matrix->strides[0]}, 0);
}

Status LowerGemm(Planner& planner, const Node& node) {
  if (!ContextOf(planner).HasBlas()) return FindGenerated(node)->lower(planner, node);
  PLUGIN_ASSIGN_OR_RETURN(const TensorRef a,
                          Transposed(planner, planner.Input(node, 0), node.Int("transA", 0) != 0));
  PLUGIN_ASSIGN_OR_RETURN(const TensorRef b,
                          Transposed(planner, planner.Input(node, 1), node.Int("transB", 0) != 0));
  PLUGIN_ASSIGN_OR_RETURN(TensorRef result, Multiply(planner, a, b, node.Float("alpha", 1)));
  const float beta = node.Float("beta", 1);
  if (planner.HasInput(node, 2) && beta != 0) {
    const TensorRef c = planner.Input(node, 2);
    const EpilogueCall* call = Extensible(*result);
    auto extended = call && beta == 1 ? call->Add(planner, result->shape, c) : nullptr;
    const std::string sum = beta == 1 ? "$0 + $1" : fmt::format("$0 + $1 * ({:.9e}f)", beta);
    result = extended ? planner.FromCall(result->type, result->shape, std::move(extended))
                      : planner.Expression(result->type, result->shape, sum, {result, c});
  }
  return planner.SetOutput(node, 0, result);
}

}  // namespace

const EpilogueCall* Extensible(const Tensor& tensor) {
  if (!tensor.deferred || !tensor.deferred->call) return nullptr;
  return dynamic_cast<const EpilogueCall*>(tensor.deferred->call.get());
}

Result<TensorRef> Multiply(Planner& planner, const TensorRef& a, const TensorRef& b, float alpha) {
  const size_t ra = a->shape.size();
  const size_t rb = b->shape.size();
  if (a->shape[ra - 1] != b->shape[rb - 2]) {
    return Failure("input 1: expected {} rows to match input 0 {}, got {}", a->shape[ra - 1],
                   a->shape, b->shape);
  }
  PLUGIN_ASSIGN_OR_RETURN(Shape batch, BroadcastShape({a->shape.begin(), a->shape.end() - 2},
                                                      {b->shape.begin(), b->shape.end() - 2}));
  Shape shape = batch;
  shape.push_back(a->shape[ra - 2]);
  shape.push_back(b->shape[rb - 1]);
  ProductShape product{.m = shape[shape.size() - 2],
                       .n = shape.back(),
                       .k = a->shape[ra - 1],
                       .batch = ElementCount(batch),
                       .a = {},
                       .b = {}};
  if (ElementCount(shape) > 0 && product.k == 0) {
    auto zero = std::make_shared<Tensor>(a->type, Shape{});
    zero->scalar = 0.0f;
    return planner.Expression(a->type, std::move(shape), "$0", {zero});
  }
  PLUGIN_RETURN_IF_ERROR(planner.Store(a));
  TensorRef left = a;
  if (ElementCount({b->shape.begin(), b->shape.end() - 2}) == 1 && product.batch > 1) {
    const TensorRef one = AsOneMatrix(planner, a);
    if (one) {
      left = one;
      batch.clear();
      product.m *= product.batch;
      product.batch = 1;
    }
  }
  TensorRef right = b;
  if (batch.empty() && rb > 2) {
    PLUGIN_RETURN_IF_ERROR(planner.Store(b));
    PLUGIN_ASSIGN_OR_RETURN(right, planner.View(b, {b->shape[rb - 2], b->shape[rb - 1]},
                                                {b->strides[rb - 2], b->strides[rb - 1]}, 0));
  }
  PLUGIN_ASSIGN_OR_RETURN(const Operand x, MakeOperand(planner, left, batch));
  PLUGIN_ASSIGN_OR_RETURN(const Operand y, MakeOperand(planner, right, batch));
  product.a = x.matrix;
  product.b = y.matrix;
  return planner.FromCall(
      a->type, std::move(shape),
      std::make_shared<ProductCall>(ContextOf(planner), x.tensor, y.tensor, product, alpha));
}

std::span<const Operator> ProductOperators() {
  static constexpr Operator kRows[] = {
      {.type = "MatMul", .lower = LowerMatMul, .types = kFloats},
      {.type = "Gemm", .lower = LowerGemm, .types = kFloats, .since = 7},
  };
  return kRows;
}

}  // namespace cuda
