// Operators of com.microsoft that gate rows of elements; hybrid language models use them between
// their layers. They compute in float, whatever the type.
#include <algorithm>
#include <cmath>

#include "kernels/elementwise/elementwise.h"
#include "kernels/normalization.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/float_rows.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

constexpr const char* kMicrosoft = "com.microsoft";

void Apply(UnaryOp op, const float* x, float* y, size_t n) {
  kernels::FindUnary(op)(x, y, n, 1, 0);
}

void Apply(kernels::BinaryOp op, const float* a, const float* b, float* y, size_t n) {
  kernels::FindBinary(op, kernels::ElementType::kFloat).vector_vector(a, b, y, n);
}

void Scale(float factor, const float* x, float* y, size_t n) {
  kernels::FindBinary(kernels::BinaryOp::kMul, kernels::ElementType::kFloat)
      .scalar_vector(&factor, x, y, n);
}

// Cuts `size` elements into tiles of whole rows of `n`, each worth a task, and calls
// body(first row, rows, floats) with `buffers` pieces of memory of `tile` floats each.
struct RowTiles {
  size_t rows, n, rows_per_tile;

  RowTiles(int64_t size, size_t row_size)
      : rows(row_size == 0 ? 0 : static_cast<size_t>(size) / row_size),
        n(row_size),
        rows_per_tile(row_size == 0 ? 1 : std::max<size_t>(1, 2048 / row_size)) {}

  size_t floats() const { return rows_per_tile * n; }
  template <class Body>
  Status ForEach(KernelContext& context, size_t buffers, Body&& body) const {
    const size_t tiles = (rows + rows_per_tile - 1) / rows_per_tile;
    return context.ForEachTask(
        tiles, buffers * floats() * sizeof(float), [&](size_t tile, std::byte* scratch) {
          const size_t first = tile * rows_per_tile;
          body(first, std::min(rows_per_tile, rows - first), reinterpret_cast<float*>(scratch));
        });
  }
};

// --- GatedAdd-1: x + y * gate, the product rounded to the type ---

Status InferGatedAdd(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  if (x.rank() < 1) return InvalidArgument("input 0: expected rank >= 1, got a scalar");
  TENON_RETURN_IF_ERROR(CheckInputShape(context, 1, x));
  SymbolicShape gate = x;
  gate[x.rank() - 1] = Dim(1);
  TENON_RETURN_IF_ERROR(CheckInputShape(context, 2, gate));
  return context.SetOutput(0, std::move(x));
}

Status RunGatedAdd(const NoAttrs&, KernelContext& context) {
  const Tensor& x = context.Input(0);
  const RowTiles tiles(x.size(), static_cast<size_t>(x.shape().back()));
  const size_t n = tiles.n;
  return tiles.ForEach(context, 4, [&](size_t first, size_t rows, float* buffer) {
    const size_t at = first * n, size = rows * n, tile = tiles.floats();
    const float* y = FloatRow(context.Input(1), at, size, buffer);
    const float* gate = FloatRow(context.Input(2), first, rows, buffer + tile);
    float* product = buffer + 2 * tile;
    for (size_t r = 0; r < rows; ++r) Scale(gate[r], y + r * n, product + r * n, n);
    RoundFloats(x.type(), product, size, reinterpret_cast<uint16_t*>(buffer));
    Apply(kernels::BinaryOp::kAdd, FloatRow(x, at, size, buffer + 3 * tile), product, product,
          size);
    StoreFloatRow(product, size, at, context.Output(0));
  });
}

// --- ScaledSiLU-1: z * sigmoid(z) of z = scale * x, each step rounded to the type ---

struct ScaledSiluAttrs {
  float alpha = 1;
  static constexpr auto Fields() { return std::tuple(Field("alpha", &ScaledSiluAttrs::alpha)); }
};

Status InferScaledSilu(const ScaledSiluAttrs&, ShapeContext& context) {
  TENON_RETURN_IF_ERROR(CheckInputShape(context, 1, {}));
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  return context.SetOutput(0, std::move(x));
}

Status RunScaledSilu(const ScaledSiluAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  float buffer;
  const float scale =
      context.HasInput(1) ? *FloatRow(context.Input(1), 0, 1, &buffer) : attrs.alpha;
  const RowTiles tiles(x.size(), 1);
  return tiles.ForEach(context, 3, [&](size_t first, size_t n, float* z) {
    float* sigmoid = z + tiles.floats();
    auto* work = reinterpret_cast<uint16_t*>(sigmoid + tiles.floats());
    Scale(scale, FloatRow(x, first, n, z), z, n);
    RoundFloats(x.type(), z, n, work);
    Apply(UnaryOp::kSigmoid, z, sigmoid, n);
    RoundFloats(x.type(), sigmoid, n, work);
    Apply(kernels::BinaryOp::kMul, z, sigmoid, z, n);
    StoreFloatRow(z, n, first, context.Output(0));
  });
}

// --- GatedRMSNorm-1: groups of as many elements as `scale` has, normalized and gated ---

struct GatedNormAttrs {
  std::string activation = "silu";
  float epsilon = 1e-5f;
  static constexpr auto Fields() {
    return std::tuple(Field("activation", &GatedNormAttrs::activation),
                      Field("epsilon", &GatedNormAttrs::epsilon));
  }
};

Status InferGatedNorm(const GatedNormAttrs& attrs, ShapeContext& context) {
  if (attrs.activation != "silu" && attrs.activation != "swish" && attrs.activation != "sigmoid") {
    return InvalidArgument("attribute 'activation': expected silu, swish or sigmoid, got '{}'",
                           attrs.activation);
  }
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  if (x.rank() < 1) return InvalidArgument("input 0: expected rank >= 1, got a scalar");
  TENON_RETURN_IF_ERROR(CheckInputShape(context, 2, x));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape scale, context.InputOfRank(1, 1));
  const Dim& size = x[x.rank() - 1];
  const bool divides = !scale[0].is_number() || !size.is_number() ||
                       (scale[0].value() > 0 && size.value() % scale[0].value() == 0);
  if (!divides) {
    return InvalidArgument("input 1: expected a divisor of the last dimension of {}, got {}", x,
                           scale);
  }
  return context.SetOutput(0, std::move(x));
}

Status RunGatedNorm(const GatedNormAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  const auto n = static_cast<size_t>(context.Input(1).size());
  const auto activation = attrs.activation == "sigmoid" ? UnaryOp::kSigmoid : UnaryOp::kSwish;
  const RowTiles tiles(x.size(), n);
  return tiles.ForEach(context, 4, [&](size_t first, size_t rows, float* y) {
    const size_t at = first * n, size = rows * n, tile = tiles.floats();
    const float* scale = FloatRow(context.Input(1), 0, n, y + tile);
    kernels::RmsNorm({FloatRow(x, at, size, y)}, y, rows, n, {attrs.epsilon, scale});
    float* gate = y + 3 * tile;
    Apply(activation, FloatRow(context.Input(2), at, size, y + 2 * tile), gate, size);
    Apply(kernels::BinaryOp::kMul, y, gate, y, size);
    StoreFloatRow(y, size, at, context.Output(0));
  });
}

// --- LinearAttentionGate-1: decay_scale * softplus(a + dt_bias), sigmoid(b) ---

enum LinearGateInput : size_t { kA, kStepBias, kDecayScale, kB };

Status InferLinearGate(const NoAttrs&, ShapeContext& context) {
  if (context.HasOutput(1) && !context.HasInput(kB)) {
    return InvalidArgument("output 1 needs input 3, which is left out");
  }
  TENON_ASSIGN_OR_RETURN(SymbolicShape a, context.InputOfRank(kA, 3));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kStepBias, {a[2]}));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kDecayScale, {a[2]}));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kB, a));
  TENON_RETURN_IF_ERROR(context.SetOutput(1, a));
  return context.SetOutput(0, std::move(a));
}

Status RunLinearGate(const NoAttrs&, KernelContext& context) {
  const Tensor& a = context.Input(kA);
  const float* bias = context.Input(kStepBias).data<float>();
  const float* scale = context.Input(kDecayScale).data<float>();
  const RowTiles tiles(a.size(), static_cast<size_t>(a.shape()[2]));
  const size_t n = tiles.n;
  return tiles.ForEach(context, 2, [&](size_t first, size_t rows, float* decay) {
    const size_t at = first * n, size = rows * n;
    const float* from = FloatRow(a, at, size, decay);
    for (size_t r = 0; r < rows; ++r) {
      Apply(kernels::BinaryOp::kAdd, from + r * n, bias, decay + r * n, n);
    }
    Apply(UnaryOp::kSoftplus, decay, decay, size);
    for (size_t r = 0; r < rows; ++r) {
      Apply(kernels::BinaryOp::kMul, decay + r * n, scale, decay + r * n, n);
    }
    StoreFloatRow(decay, size, at, context.Output(0));
    if (!context.HasOutput(1)) return;
    float* beta = decay + tiles.floats();
    Apply(UnaryOp::kSigmoid, FloatRow(context.Input(kB), at, size, beta), beta, size);
    StoreFloatRow(beta, size, at, context.Output(1));
  });
}

// --- EngramGate-1: a value gated by how well a normalized key fits a normalized query ---

enum EngramInput : size_t { kKey, kQuery, kValue, kKeyScale, kQueryScale, kConvScale };

struct EpsilonAttrs {
  float epsilon = 1e-5f;
  static constexpr auto Fields() { return std::tuple(Field("epsilon", &EpsilonAttrs::epsilon)); }
};

Status InferEngram(const EpsilonAttrs&, ShapeContext& context) {
  if (context.HasOutput(1) && !context.HasInput(kConvScale)) {
    return InvalidArgument("output 1 needs input 5, which is left out");
  }
  TENON_ASSIGN_OR_RETURN(SymbolicShape key, context.InputOfRank(kKey, 4));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kQuery, key));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kValue, {key[0], key[1], key[3]}));
  for (const size_t scale : {kKeyScale, kQueryScale, kConvScale}) {
    TENON_RETURN_IF_ERROR(CheckInputShape(context, scale, {key[2], key[3]}));
  }
  TENON_RETURN_IF_ERROR(context.SetOutput(1, key));
  return context.SetOutput(0, std::move(key));
}

// sigmoid(sign(fit) * sqrt(max(|fit|, 1e-6)))
float EngramGateOf(double fit) {
  const double root = std::sqrt(std::max(std::abs(fit), 1e-6));
  const double x = fit > 0 ? root : fit < 0 ? -root : fit;
  return static_cast<float>(1 / (1 + std::exp(-x)));
}

Status RunEngram(const EpsilonAttrs& attrs, KernelContext& context) {
  const Tensor& key = context.Input(kKey);
  const auto branches = static_cast<size_t>(key.shape()[2]);
  const auto n = static_cast<size_t>(key.shape()[3]);
  if (key.size() == 0) return OkStatus();
  const size_t rows = static_cast<size_t>(key.size()) / n;
  return context.ForEachTask(rows, 3 * n * sizeof(float), [&](size_t row, std::byte* scratch) {
    auto* k = reinterpret_cast<float*>(scratch);
    float *q = k + n, *buffer = q + n;
    const size_t scale_at = row % branches * n;
    const auto normalize = [&](size_t input, size_t scale, float* y) {
      kernels::RmsNorm({FloatRow(context.Input(input), row * n, n, y)}, y, 1, n,
                       {attrs.epsilon, FloatRow(context.Input(scale), scale_at, n, buffer)});
    };
    normalize(kKey, kKeyScale, k);
    normalize(kQuery, kQueryScale, q);
    double fit = 0;
    for (size_t i = 0; i < n; ++i) fit += double{k[i]} * q[i];
    const float gate = EngramGateOf(fit / std::sqrt(static_cast<double>(n)));
    Scale(gate, FloatRow(context.Input(kValue), row / branches * n, n, k), k, n);
    StoreFloatRow(k, n, row * n, context.Output(0));
    if (!context.HasOutput(1)) return;
    const float* scale = FloatRow(context.Input(kConvScale), scale_at, n, buffer);
    kernels::RmsNorm({k}, k, 1, n, {attrs.epsilon, scale});
    StoreFloatRow(k, n, row * n, context.Output(1));
  });
}

constexpr OpRow kRows[] = {
    Op<InferGatedAdd, RunGatedAdd>("GatedAdd", {.domain = kMicrosoft, .types = kFloatRowTypes}),
    Op<InferScaledSilu, RunScaledSilu>("ScaledSiLU",
                                       {.domain = kMicrosoft, .types = kFloatRowTypes}),
    Op<InferGatedNorm, RunGatedNorm>("GatedRMSNorm",
                                     {.domain = kMicrosoft, .types = kFloatRowTypes}),
    Op<InferLinearGate, RunLinearGate>("LinearAttentionGate",
                                       {.domain = kMicrosoft, .types = kFloatRowTypes}),
    Op<InferEngram, RunEngram>("EngramGate", {.domain = kMicrosoft, .types = kFloatRowTypes}),
};

}  // namespace

TENON_OP_FAMILY(GatedRows, kRows);

}  // namespace tenon
