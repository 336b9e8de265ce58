// The quantized weights of com.microsoft QMoE-1.
#pragma once

#include <optional>
#include <string>

#include "ir/shape_context.h"
#include "ops/framework/attributes.h"
#include "runtime/kernel_context.h"

namespace tenon {

// The inputs of one layer of all experts; absent ones are beyond the inputs.
struct LayerInputs {
  static constexpr size_t kNone = 99;
  size_t weights = kNone, bias = kNone, scales = kNone, zero_points = kNone, global_scale = kNone;
};

// The attributes that say how weights are stored.
struct ExpertQuantization {
  // Or fp8, fp4, nvfp4, wfp4afp8. With the last one, the inputs of a layer stay floats: the model's
  // values for rounding them to float8 are not used.
  std::string type = "int";
  int64_t bits = 4;
  int64_t block_size = 0;  // along the rows; 0: one scale for a row, or for an expert of type fp8
  std::optional<int64_t> fc1_bits, fc2_bits, fc3_bits;  // `bits` unless given
  static constexpr auto Fields() {
    using A = ExpertQuantization;
    return std::tuple(Field("quant_type", &A::type), Field("expert_weight_bits", &A::bits),
                      Field("block_size", &A::block_size),
                      Field("fc1_expert_weight_bits", &A::fc1_bits),
                      Field("fc2_expert_weight_bits", &A::fc2_bits),
                      Field("fc3_expert_weight_bits", &A::fc3_bits));
  }

  bool is_integer() const { return type == "int"; }
  bool is_fp4() const { return type == "fp4" || type == "nvfp4" || type == "wfp4afp8"; }
  // Weights in an element of the tensor of weights.
  int64_t PerElement(std::optional<int64_t> layer_bits) const {
    return is_integer() ? 8 / layer_bits.value_or(bits) : is_fp4() ? 2 : 1;
  }
  // Elements of a row, of `k`, that share a scale.
  int64_t BlockOf(int64_t k) const;

  // Errors: kInvalidArgument naming the attribute.
  Status Check() const;
  // Checks that the inputs of a layer, if they are present, fit weights of this shape, [experts, n,
  // k].
  Status CheckLayer(const ShapeContext& context, const LayerInputs& in,
                    std::optional<int64_t> layer_bits, const SymbolicShape& weights) const;
};

// One layer's weights, [experts, n, k], as floats.
class ExpertWeights {
 public:
  ExpertWeights(const ExpertQuantization& quantization, const KernelContext& context,
                const LayerInputs& in, std::optional<int64_t> layer_bits, size_t n, size_t k);

  // Row `row` of one expert, k floats.
  void FillRow(size_t expert, size_t row, float* out) const;

 private:
  float ScaleOf(size_t expert, size_t row, size_t block) const;
  float ZeroPointOf(size_t expert, size_t row, size_t block) const;

  const ExpertQuantization& quantization_;
  const Tensor& weights_;
  const Tensor* scales_ = nullptr;
  const Tensor* zero_points_ = nullptr;
  const Tensor* global_scale_ = nullptr;
  const size_t n_, k_, bits_, block_;
  const size_t blocks_;  // of a row
};

}  // namespace tenon
