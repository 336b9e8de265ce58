// ScaledDotProductAttention and ScaledDotProductAttentionGrad of com.microsoft: attention as it is
// trained, and its gradient, without a matrix of all scores in memory.
#include <algorithm>
#include <cmath>

#include "base/arithmetic.h"
#include "kernels/row_gradient.h"
#include "ops/attention/dot_product_attention.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

struct AttentionAttrs {
  int64_t q_heads = 0, kv_heads = 0;
  std::optional<float> scale;
  bool is_causal = false;
  static constexpr auto Fields() {
    using A = AttentionAttrs;
    return std::tuple(Field("q_num_heads", &A::q_heads), Field("kv_num_heads", &A::kv_heads),
                      Field("scale", &A::scale), Field("is_causal", &A::is_causal));
  }
};

// The inputs of the attention, from `q` on. The gradient has dY first.
struct Inputs {
  size_t q;
  size_t k() const { return q + 1; }
  size_t v() const { return q + 2; }
  size_t mask() const { return q + 3; }
};
constexpr Inputs kForward = {0}, kBackward = {1};

// --- Shapes: Q is [batch, queries, q_heads * size], K and V are [batch, keys, kv_heads * size],
// the mask is [batch or 1, q_heads or 1, queries or 1, keys] ---

Status CheckHeads(const SymbolicShape& x, size_t i, int64_t heads) {
  if (!x[2].is_number() || x[2].value() % heads == 0) return OkStatus();
  return InvalidArgument("input {}: expected {} heads of one size, got {}", i, heads, x);
}

// Returns [batch, queries, q_heads * value size].
Result<SymbolicShape> InferY(const AttentionAttrs& attrs, const ShapeContext& context,
                             const Inputs& in) {
  const auto [q_heads, kv_heads] = std::pair(attrs.q_heads, attrs.kv_heads);
  if (kv_heads < 1 || q_heads < 1 || q_heads % kv_heads != 0) {
    return InvalidArgument("expected q_num_heads to be a multiple of kv_num_heads, got {} and {}",
                           q_heads, kv_heads);
  }
  TENON_ASSIGN_OR_RETURN(const SymbolicShape q, context.InputOfRank(in.q, 3));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape k, context.InputOfRank(in.k(), 3));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape v, context.InputOfRank(in.v(), 3));
  TENON_RETURN_IF_ERROR(CheckHeads(q, in.q, q_heads));
  TENON_RETURN_IF_ERROR(CheckHeads(v, in.v(), kv_heads));
  const Dim size = FloorDiv(q[2], Dim(q_heads));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, in.k(), {q[0], k[1], size * Dim(kv_heads)}));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, in.v(), {q[0], k[1], v[2]}));
  if (context.HasInput(in.mask())) {
    TENON_ASSIGN_OR_RETURN(const SymbolicShape mask, context.InputOfRank(in.mask(), 4));
    const Dim full[] = {q[0], Dim(q_heads), q[1]};
    for (size_t axis = 0; axis < 3; ++axis) {
      if (mask[axis] == Dim(1) || MayEqual(mask[axis], full[axis])) continue;
      return InvalidArgument("input {}: expected 1 or {} along axis {}, got {}", in.mask(),
                             full[axis], axis, mask);
    }
    TENON_RETURN_IF_ERROR(CheckInputShape(context, in.mask(), {mask[0], mask[1], mask[2], k[1]}));
  }
  return SymbolicShape{q[0], q[1], FloorDiv(v[2], Dim(kv_heads)) * Dim(q_heads)};
}

Status InferAttention(const AttentionAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, InferY(attrs, context, kForward));
  TENON_RETURN_IF_ERROR(context.SetOutput(1, {y[0], Dim(attrs.q_heads), y[1]}));
  return context.SetOutput(0, std::move(y));
}

Status InferGradient(const AttentionAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape y, InferY(attrs, context, kBackward));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, 0, y));
  for (size_t i = 0; i < 3; ++i) {
    TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(kBackward.q + i));
    TENON_RETURN_IF_ERROR(context.SetOutput(i, std::move(x)));
  }
  return OkStatus();
}

// --- Operands ---

HeadMatrices MatricesOf(const Shape& shape, int64_t heads) {
  const auto size = [&](size_t axis) { return static_cast<size_t>(shape[axis]); };
  return HeadsLast(size(0), size(1), static_cast<size_t>(heads),
                   static_cast<size_t>(shape[2] / heads));
}

struct VisibleKeys {
  size_t keys = 0;
  bool is_causal = false;
  KeyRange operator()(size_t, size_t query) const {
    return {0, is_causal ? std::min(keys, query + 1) : keys};
  }
};

struct Mask {
  const float* data = nullptr;  // null: none
  size_t strides[3] = {};
  const float* operator()(size_t b, size_t h, size_t query, KeyRange keys, float*) const {
    if (data == nullptr) return nullptr;
    return data + b * strides[0] + h * strides[1] + query * strides[2] + keys.begin;
  }
};

Mask MaskOf(const Tensor& mask) {
  Mask result = {mask.data<float>()};
  for (size_t axis = 0; axis < 3; ++axis) {
    if (mask.shape()[axis] == 1) continue;
    result.strides[axis] = static_cast<size_t>(mask.shape().Product(axis + 1, 4));
  }
  return result;
}

// What attention and its gradient read of their inputs.
class Operands {
 public:
  Operands(const AttentionAttrs& attrs, const KernelContext& context, const Inputs& in) {
    const Tensor &q = context.Input(in.q), &k = context.Input(in.k()), &v = context.Input(in.v());
    operands_.q = MatricesOf(q.shape(), attrs.q_heads);
    operands_.k = MatricesOf(k.shape(), attrs.kv_heads);
    operands_.v = MatricesOf(v.shape(), attrs.kv_heads);
    operands_.q_data = q.data<float>();
    operands_.k_data = k.data<float>();
    operands_.v_data = v.data<float>();
    operands_.scale = attrs.scale.value_or(1 / std::sqrt(static_cast<float>(operands_.q.size)));
    visible_ = {operands_.k.length, attrs.is_causal};
    if (context.HasInput(in.mask())) mask_ = MaskOf(context.Input(in.mask()));
  }
  // The operands refer to it.
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  AttentionOperands& operator*() { return operands_; }

 private:
  VisibleKeys visible_;
  Mask mask_;
  AttentionOperands operands_ = {.visible = visible_, .addends = mask_};
};

Status RunAttention(const AttentionAttrs& attrs, KernelContext& context) {
  Operands operands(attrs, context, kForward);
  AttentionOperands& in = *operands;
  Tensor& y = context.Output(0);
  in.y = MatricesOf(y.shape(), attrs.q_heads);
  in.y_data = y.data<float>();
  if (context.HasOutput(1)) in.log_sums = context.Output(1).data<float>();
  const DotProductAttention attention(in);
  return attention.task_count() == 0 ? OkStatus() : attention.Run(context);
}

// --- The gradient: with weights P = softmax(scale Q K' + mask), which are computed again,
//   dV = P' dY,  dS = P (dY V' - sum(P dY V')),  dQ = scale dS K,  dK = scale dS' Q ---

class AttentionGradient {
 public:
  AttentionGradient(const AttentionAttrs& attrs, KernelContext& context)
      : context_(context), operands_(attrs, context, kBackward), attention_(in_) {
    const Tensor& dy = context.Input(0);
    dy_ = MatricesOf(dy.shape(), attrs.q_heads);
    dy_data_ = dy.data<float>();
    heads_ = in_.k.batch * in_.k.heads;
    if (heads_ == 0) return;
    group_ = in_.q.heads / in_.k.heads;
    // One task adds up the dK and dV of a head. If heads are few, several do, to sums of their own.
    constexpr size_t kEnoughTasks = 16;
    parts_ = std::clamp<size_t>(CeilDiv(kEnoughTasks, heads_), 1, std::max<size_t>(1, blocks()));
    floats_of_k_ = RoundUp<size_t>(heads_ * in_.k.length * in_.k.size, 16);
    floats_of_v_ = RoundUp<size_t>(heads_ * in_.v.length * in_.v.size, 16);
  }

  Status Run() {
    if (heads_ == 0) return OkStatus();
    const size_t tasks = heads_ * parts_;
    const size_t sums = (parts_ - 1) * (floats_of_k_ + floats_of_v_) * sizeof(float);
    const size_t scratch =
        (2 * attention_.weight_floats() + attention_.mask_floats()) * sizeof(float) + GemmBytes();
    const size_t bytes = sums + context_.TaskScratchBytes(tasks, scratch);
    auto* const memory = static_cast<std::byte*>(context_.Scratch(std::max<size_t>(1, bytes)));
    if (memory == nullptr) return RuntimeException("out of memory: {} bytes", bytes);
    sums_ = reinterpret_cast<float*>(memory);
    context_.ForEachTaskIn(memory + sums, tasks, scratch, [&](size_t task, std::byte* own) {
      RunTask(task / parts_, task % parts_, reinterpret_cast<float*>(own));
    });
    for (size_t part = 1; part < parts_; ++part) {
      AddSums(DkOf(part), DkOf(0), in_.k.batch * in_.k.batch_stride);
      AddSums(DvOf(part), DvOf(0), in_.v.batch * in_.v.batch_stride);
    }
    return OkStatus();
  }

 private:
  // The blocks of queries that see the keys of one head.
  size_t blocks() const { return group_ * attention_.blocks_of_head(); }

  float* OutputData(size_t i) { return context_.Output(i).data<float>(); }
  float* DkOf(size_t part) {
    return part == 0 ? OutputData(1) : sums_ + (part - 1) * (floats_of_k_ + floats_of_v_);
  }
  float* DvOf(size_t part) { return part == 0 ? OutputData(2) : DkOf(part) + floats_of_k_; }

  // Scratch for the products of any block.
  size_t GemmBytes() const {
    size_t bytes = 0;
    for (size_t i = 0; i < attention_.blocks_of_head(); ++i) {
      const QueryBlock block = attention_.Block(0, 0, i);
      const size_t rows = block.rows, keys = block.keys.size();
      for (const kernels::GemmSizes& sizes :
           {attention_.KeyProductSizes(block), kernels::GemmSizes{rows, keys, in_.v.size},
            kernels::GemmSizes{rows, in_.q.size, keys}, kernels::GemmSizes{keys, in_.q.size, rows},
            kernels::GemmSizes{keys, in_.v.size, rows}}) {
        bytes = std::max(bytes, kernels::GemmScratchSize(sizes, false));
      }
    }
    return bytes;
  }

  void RunTask(size_t head, size_t part, float* scratch) {
    const size_t b = head / in_.k.heads, kv_head = head % in_.k.heads;
    ClearMatrix(in_.k, b, kv_head, DkOf(part));
    ClearMatrix(in_.v, b, kv_head, DvOf(part));
    const size_t end = (part + 1) * blocks() / parts_;
    for (size_t i = part * blocks() / parts_; i < end; ++i) {
      const size_t h = kv_head * group_ + i / attention_.blocks_of_head();
      RunBlock(attention_.Block(b, h, i % attention_.blocks_of_head()), part, scratch);
    }
  }

  static void ClearMatrix(const HeadMatrices& matrices, size_t b, size_t h, float* data) {
    data += matrices.Offset(b, h);
    for (size_t i = 0; i < matrices.length; ++i) {
      std::fill_n(data + i * matrices.row_stride, matrices.size, 0.0f);
    }
  }

  void RunBlock(const QueryBlock& block, size_t part, float* weights) {
    const auto [b, h, first, rows, keys] = block;
    float* const slopes = weights + attention_.weight_floats();  // of the scores
    float* const mask_row = slopes + attention_.weight_floats();
    float* const gemm_scratch = mask_row + attention_.mask_floats();
    const size_t kv_head = h / group_, n = keys.size();
    const size_t q_offset = in_.q.Offset(b, h) + first * in_.q.row_stride;
    const size_t k_offset = in_.k.Offset(b, kv_head) + keys.begin * in_.k.row_stride;
    const size_t v_offset = in_.v.Offset(b, kv_head) + keys.begin * in_.v.row_stride;
    const float* const dy = dy_data_ + dy_.Offset(b, h) + first * dy_.row_stride;
    const auto multiply = [&](kernels::GemmSizes sizes, kernels::GemmMatrix left,
                              kernels::GemmMatrix right, float* c, size_t ldc, float alpha,
                              float beta) {
      kernels::GemmArgs args;
      args.sizes = sizes;
      args.alpha = alpha;
      args.beta = beta;
      args.a = left;
      args.b = right;
      args.c = c;
      args.ldc = ldc;
      kernels::Gemm(args, gemm_scratch);
    };
    attention_.TakeWeights(block, weights, mask_row, gemm_scratch);
    multiply({n, in_.v.size, rows}, kernels::Transposed(weights, n),
             kernels::RowMajor(dy, dy_.row_stride), DvOf(part) + v_offset, in_.v.row_stride, 1, 1);
    multiply({rows, n, in_.v.size}, kernels::RowMajor(dy, dy_.row_stride),
             kernels::Transposed(in_.v_data + v_offset, in_.v.row_stride), slopes, n, 1, 0);
    kernels::SoftmaxGradient(slopes, weights, slopes, n, 1, false, 0,
                             kernels::SoftmaxGradientTasks(rows, 1));
    multiply({rows, in_.q.size, n}, kernels::RowMajor(slopes, n),
             kernels::RowMajor(in_.k_data + k_offset, in_.k.row_stride), OutputData(0) + q_offset,
             in_.q.row_stride, in_.scale, 0);
    multiply({n, in_.q.size, rows}, kernels::Transposed(slopes, n),
             kernels::RowMajor(in_.q_data + q_offset, in_.q.row_stride), DkOf(part) + k_offset,
             in_.k.row_stride, in_.scale, 1);
  }

  void AddSums(const float* from, float* to, size_t count) {
    context_.threads().ParallelFor(count, 16384, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) to[i] += from[i];
    });
  }

  KernelContext& context_;
  Operands operands_;
  const AttentionOperands& in_ = *operands_;
  const DotProductAttention attention_;
  HeadMatrices dy_;
  const float* dy_data_ = nullptr;
  size_t heads_ = 0, group_ = 1, parts_ = 1;
  size_t floats_of_k_ = 0, floats_of_v_ = 0;
  float* sums_ = nullptr;  // of the parts but the first
};

Status RunGradient(const AttentionAttrs& attrs, KernelContext& context) {
  return AttentionGradient(attrs, context).Run();
}

constexpr OpOptions kOptions = {.domain = "com.microsoft", .types = kFloat32Only};

constexpr OpRow kRows[] = {
    Op<InferAttention, RunAttention>("ScaledDotProductAttention", kOptions),
    Op<InferGradient, RunGradient>("ScaledDotProductAttentionGrad", kOptions),
};

}  // namespace

TENON_OP_FAMILY(AttentionGradient, kRows);

}  // namespace tenon
