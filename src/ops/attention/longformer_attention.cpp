// LongformerAttention of com.microsoft: each token attends to its neighbours and to some global
// tokens. These attend to all tokens, with separate projections.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/arithmetic.h"
#include "kernels/gemm/gemm.h"
#include "kernels/softmax.h"
#include "ops/attention/head_rows.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

enum Input : size_t { kX, kWeights, kBias, kMask, kGlobalWeights, kGlobalBias, kGlobal };

struct LongformerAttrs {
  int64_t heads = 1, window = 1;
  static constexpr auto Fields() {
    using A = LongformerAttrs;
    return std::tuple(Field("num_heads", &A::heads), Field("window", &A::window));
  }
};

Status CheckInput(const ShapeContext& context, size_t i, const SymbolicShape& wanted) {
  const Result<SymbolicShape> shape = context.InputOfRank(i, wanted.rank());
  if (!shape) return IsUnknownShape(shape.error()) ? OkStatus() : shape.error();
  for (size_t axis = 0; axis < wanted.rank(); ++axis) {
    if (MayEqual((*shape)[axis], wanted[axis])) continue;
    return InvalidArgument("input {}: expected {}, got {}", i, wanted, *shape);
  }
  return OkStatus();
}

Status InferLongformer(const LongformerAttrs& attrs, ShapeContext& context) {
  if (attrs.heads < 1 || attrs.window < 1) {
    return InvalidArgument("expected num_heads and window >= 1, got {} and {}", attrs.heads,
                           attrs.window);
  }
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.InputOfRank(kX, 3));
  if (x[2].is_number() && x[2].value() % attrs.heads != 0) {
    return InvalidArgument("input 0: expected {} heads of one size, got {}", attrs.heads, x);
  }
  const Dim width = Dim(3) * x[2];
  for (const size_t i : {kWeights, kGlobalWeights}) {
    TENON_RETURN_IF_ERROR(CheckInput(context, i, {x[2], width}));
    TENON_RETURN_IF_ERROR(CheckInput(context, i + 1, {width}));
    if (i == kWeights) TENON_RETURN_IF_ERROR(CheckInput(context, kMask, {x[0], x[1]}));
  }
  TENON_RETURN_IF_ERROR(CheckInput(context, kGlobal, {x[0], x[1]}));
  return context.SetOutput(0, x);
}

constexpr float kHidden = -std::numeric_limits<float>::infinity();

class LongformerRun {
 public:
  LongformerRun(const LongformerAttrs& attrs, KernelContext& context)
      : context_(context), heads_(static_cast<size_t>(attrs.heads)) {
    const Shape& x = context.Input(kX).shape();
    batch_ = static_cast<size_t>(x[0]);
    length_ = static_cast<size_t>(x[1]);
    hidden_ = static_cast<size_t>(x[2]);
    size_ = hidden_ / heads_;
    window_ = std::min(static_cast<size_t>(attrs.window), length_);
    scale_ = 1 / std::sqrt(static_cast<float>(size_));
    for (size_t b = 0; b < batch_; ++b) {
      size_t count = 0;
      for (size_t i = 0; i < length_; ++i) count += IsGlobal(b, i) ? 1 : 0;
      most_globals_ = std::max(most_globals_, count);
    }
    block_ = std::min<size_t>(length_, std::clamp<size_t>(window_, 16, 64));
  }

  Status Run() {
    FloatPieces pieces;
    const size_t rows = batch_ * length_;
    const size_t local_piece = pieces.Add(rows * 3 * hidden_);
    const size_t global_piece = most_globals_ > 0 ? pieces.Add(rows * 3 * hidden_) : 0;
    const size_t local_bytes = LocalFloats() * sizeof(float) + GemmInt8();
    const size_t tasks = CeilDiv(length_, block_) * batch_ * heads_;
    const kernels::GemmSizes product = {rows, 3 * hidden_, hidden_};
    const size_t product_tasks = kernels::GemmTaskCount(product, false);
    const size_t product_bytes = kernels::GemmScratchSize(product, false);
    const size_t bytes = std::max(context_.TaskScratchBytes(tasks, local_bytes),
                                  context_.TaskScratchBytes(product_tasks, product_bytes));
    const auto all = CheckedAdd(pieces.bytes(), bytes);
    auto* memory = static_cast<std::byte*>(context_.Scratch(all.value_or(SIZE_MAX)));
    if (memory == nullptr) return RuntimeException("out of memory for {} tokens", rows);
    auto* floats = reinterpret_cast<float*>(memory);
    memory += pieces.bytes();
    const auto project = [&](size_t weights, float* into) {
      kernels::GemmArgs args;
      args.sizes = product;
      args.a = kernels::RowMajor(context_.Input(kX).data<float>(), hidden_);
      args.b = kernels::RowMajor(context_.Input(weights).data<float>(), 3 * hidden_);
      args.c = into;
      args.ldc = 3 * hidden_;
      args.epilogue.bias_columns =
          context_.Input(weights == kWeights ? kBias : kGlobalBias).data<float>();
      context_.ForEachTaskIn(memory, product_tasks, product_bytes,
                             [&](size_t task, std::byte* scratch) {
                               kernels::RunGemmTask(args, task, reinterpret_cast<float*>(scratch));
                             });
    };
    project(kWeights, floats + local_piece);
    context_.ForEachTaskIn(memory, tasks, local_bytes, [&](size_t task, std::byte* scratch) {
      RunLocal(floats + local_piece, task, reinterpret_cast<float*>(scratch));
    });
    if (most_globals_ == 0) return OkStatus();
    project(kGlobalWeights, floats + global_piece);
    context_.ForEachTaskIn(
        memory, batch_ * heads_, local_bytes, [&](size_t task, std::byte* scratch) {
          RunGlobal(floats + global_piece, task, reinterpret_cast<float*>(scratch));
        });
    return OkStatus();
  }

 private:
  bool IsGlobal(size_t b, size_t i) const {
    return context_.Input(kGlobal).data<int32_t>()[b * length_ + i] > 0;
  }
  float MaskOf(size_t b, size_t i) const {
    return context_.Input(kMask).data<float>()[b * length_ + i];
  }
  size_t MostKeys() const { return std::min(length_, block_ + 2 * window_); }
  // Scores of a block, or of one global token; keys and values of the global tokens.
  size_t LocalFloats() const {
    const size_t scores = block_ * (MostKeys() + most_globals_);
    return RoundUp<size_t>(std::max(scores, length_), 16) +
           2 * RoundUp<size_t>(most_globals_ * size_, 16);
  }
  size_t GemmInt8() const {
    size_t bytes = kernels::GemmScratchSize({1, length_, size_}, false);
    bytes = std::max(bytes, kernels::GemmScratchSize({1, size_, length_}, false));
    for (size_t first = 0; first < length_; first += block_) {
      const KeyRange keys = KeysOf(first);
      const size_t rows = std::min(block_, length_ - first);
      for (size_t n : {keys.size(), most_globals_}) {
        bytes = std::max({bytes, kernels::GemmScratchSize({rows, n, size_}, false),
                          kernels::GemmScratchSize({rows, size_, n}, false)});
      }
    }
    for (size_t n = 0; n < most_globals_; ++n) {
      bytes = std::max({bytes, kernels::GemmScratchSize({block_, n, size_}, false),
                        kernels::GemmScratchSize({block_, size_, n}, false)});
    }
    return RoundUp<size_t>(bytes, 64);
  }
  KeyRange KeysOf(size_t first) const {
    return {first - std::min(first, window_), std::min(length_, first + block_ + window_)};
  }

  // A block of tokens: their neighbours, then the global tokens.
  void RunLocal(const float* projected, size_t task, float* scratch) const {
    const size_t blocks = CeilDiv(length_, block_);
    const size_t first = task % blocks * block_, h = task / blocks % heads_;
    const size_t b = task / blocks / heads_;
    const size_t rows = std::min(block_, length_ - first), stride = 3 * hidden_;
    const float* q = projected + b * length_ * stride + h * size_;
    const float *k = q + hidden_, *v = k + hidden_;
    const KeyRange keys = KeysOf(first);
    float* global_k = scratch;
    float* global_v = global_k + RoundUp<size_t>(most_globals_ * size_, 16);
    float* scores = global_v + RoundUp<size_t>(most_globals_ * size_, 16);
    float* gemm_scratch = scratch + LocalFloats();
    size_t globals = 0;
    for (size_t i = 0; most_globals_ > 0 && i < length_; ++i) {
      if (!IsGlobal(b, i)) continue;
      std::copy_n(k + i * stride, size_, global_k + globals * size_);
      std::copy_n(v + i * stride, size_, global_v + globals++ * size_);
    }
    const size_t all = keys.size() + globals;
    kernels::GemmArgs args;
    args.alpha = scale_;
    args.sizes = {rows, keys.size(), size_};
    args.a = kernels::RowMajor(q + first * stride, stride);
    args.b = kernels::Transposed(k + keys.begin * stride, stride);
    args.c = scores;
    args.ldc = all;
    kernels::Gemm(args, gemm_scratch);
    args.sizes.n = globals;
    args.b = kernels::Transposed(global_k, size_);
    args.c = scores + keys.size();
    if (globals > 0) kernels::Gemm(args, gemm_scratch);
    for (size_t i = 0; i < rows; ++i) AddMask(b, first + i, keys, scores + i * all);
    kernels::SoftmaxRows(scores, scores, rows, all, false);
    args = {};
    args.sizes = {rows, size_, keys.size()};
    args.a = kernels::RowMajor(scores, all);
    args.b = kernels::RowMajor(v + keys.begin * stride, stride);
    args.c = context_.Output(0).data<float>() + (b * length_ + first) * hidden_ + h * size_;
    args.ldc = hidden_;
    kernels::Gemm(args, gemm_scratch);
    if (globals == 0) return;
    args.beta = 1;
    args.sizes.k = globals;
    args.a = kernels::RowMajor(scores + keys.size(), all);
    args.b = kernels::RowMajor(global_v, size_);
    kernels::Gemm(args, gemm_scratch);
  }

  // For one token. A global token only counts as a global one.
  void AddMask(size_t b, size_t query, KeyRange keys, float* scores) const {
    for (size_t j = keys.begin; j < keys.end; ++j) {
      const size_t distance = j > query ? j - query : query - j;
      float& score = scores[j - keys.begin];
      score = distance > window_ || IsGlobal(b, j) ? kHidden : score + MaskOf(b, j);
    }
    float* global_scores = scores + keys.size();
    for (size_t j = 0; most_globals_ > 0 && j < length_; ++j) {
      if (IsGlobal(b, j)) *global_scores++ += MaskOf(b, j);
    }
  }

  // The rows of all global tokens of one head.
  void RunGlobal(const float* projected, size_t task, float* scores) const {
    const size_t b = task / heads_, h = task % heads_, stride = 3 * hidden_;
    const float* q = projected + b * length_ * stride + h * size_;
    float* gemm_scratch = scores + LocalFloats();
    for (size_t i = 0; i < length_; ++i) {
      if (!IsGlobal(b, i)) continue;
      kernels::GemmArgs args;
      args.alpha = scale_;
      args.sizes = {1, length_, size_};
      args.a = kernels::RowMajor(q + i * stride, stride);
      args.b = kernels::Transposed(q + hidden_, stride);
      args.c = scores;
      args.ldc = length_;
      kernels::Gemm(args, gemm_scratch);
      for (size_t j = 0; j < length_; ++j) scores[j] += MaskOf(b, j);
      kernels::SoftmaxRows(scores, scores, 1, length_, false);
      args = {};
      args.sizes = {1, size_, length_};
      args.a = kernels::RowMajor(scores, length_);
      args.b = kernels::RowMajor(q + 2 * hidden_, stride);
      args.c = context_.Output(0).data<float>() + (b * length_ + i) * hidden_ + h * size_;
      args.ldc = hidden_;
      kernels::Gemm(args, gemm_scratch);
    }
  }

  KernelContext& context_;
  const size_t heads_;
  size_t batch_ = 0, length_ = 0, hidden_ = 0, size_ = 0, window_ = 0;
  size_t block_ = 1;         // tokens of a task
  size_t most_globals_ = 0;  // of a sequence
  float scale_ = 1;
};

Status RunLongformer(const LongformerAttrs& attrs, KernelContext& context) {
  if (context.Output(0).size() == 0) return OkStatus();
  return LongformerRun(attrs, context).Run();
}

constexpr OpRow kRows[] = {
    Op<InferLongformer, RunLongformer>("LongformerAttention",
                                       {.domain = "com.microsoft", .types = kFloat32Only}),
};

}  // namespace

TENON_OP_FAMILY(LongformerAttention, kRows);

}  // namespace tenon
