#include "ops/linear/expert_weights.h"

#include <algorithm>

#include "base/arithmetic.h"
#include "ops/framework/element_conversion.h"
#include "ops/framework/expected_shape.h"

namespace tenon {
namespace {

// E2M1: the values of 4 bits.
constexpr float kFp4Values[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                  -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

float ElementAt(const Tensor& tensor, size_t i) {
  if (tensor.type() == DataType::kFloat) return tensor.data<float>()[i];
  double value = 0;
  LoadElements(tensor, i, 1, &value);
  return static_cast<float>(value);
}

const Tensor* InputOrNull(const KernelContext& context, size_t i) {
  return context.HasInput(i) ? &context.Input(i) : nullptr;
}

}  // namespace

int64_t ExpertQuantization::BlockOf(int64_t k) const {
  if (type == "fp4" || type == "wfp4afp8") return 32;
  if (type == "nvfp4") return 16;
  return block_size > 0 ? block_size : std::max<int64_t>(1, k);
}

Status ExpertQuantization::Check() const {
  if (!is_integer() && !is_fp4() && type != "fp8") {
    return InvalidArgument(
        "attribute 'quant_type': expected int, fp8, fp4, nvfp4 or wfp4afp8, got '{}'", type);
  }
  for (const int64_t width :
       {bits, fc1_bits.value_or(bits), fc2_bits.value_or(bits), fc3_bits.value_or(bits)}) {
    if (!is_integer() || width == 2 || width == 4 || width == 8) continue;
    return InvalidArgument("attribute 'expert_weight_bits': expected 2, 4 or 8, got {}", width);
  }
  const bool is_power = (block_size & (block_size - 1)) == 0;
  if (block_size <= 0 || (block_size >= 16 && is_power)) return OkStatus();
  return InvalidArgument("attribute 'block_size': expected a power of 2 of at least 16, got {}",
                         block_size);
}

Status ExpertQuantization::CheckLayer(const ShapeContext& context, const LayerInputs& in,
                                      std::optional<int64_t> layer_bits,
                                      const SymbolicShape& weights) const {
  if (!context.HasInput(in.weights)) return OkStatus();
  const Dim &experts = weights[0], &n = weights[1], &k = weights[2];
  const int64_t per_element = PerElement(layer_bits);
  if (k.is_number() && k.value() % per_element != 0) {
    return InvalidArgument("input {}: rows of {} elements do not fill whole bytes", in.weights, k);
  }
  TENON_RETURN_IF_ERROR(
      CheckInputShape(context, in.weights, {experts, n, FloorDiv(k, Dim(per_element))}));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, in.global_scale, {experts}));
  if (type == "fp8") {
    if (block_size <= 0) return OkStatus();
    return CheckInputShape(context, in.scales,
                           {experts, CeilDiv(n, block_size), CeilDiv(k, block_size)});
  }
  if (!context.HasInput(in.scales)) {
    return InvalidArgument("input {}: expected the scales of the weights", in.scales);
  }
  const int64_t block = BlockOf(k.is_number() ? k.value() : 1);
  const int64_t width = layer_bits.value_or(bits);
  if (is_integer() && block_size <= 0) {
    TENON_RETURN_IF_ERROR(CheckInputShape(context, in.scales, {experts, n}));
    return CheckInputShape(context, in.zero_points, {experts, CeilDiv(n, 8 / width)});
  }
  if (k.is_number() && k.value() % block != 0) {
    return InvalidArgument("input {}: expected rows of whole blocks of {}, got {} elements",
                           in.weights, block, k);
  }
  const Dim blocks = FloorDiv(k, Dim(block));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, in.scales, {experts, n, blocks}));
  return CheckInputShape(context, in.zero_points, {experts, n, CeilDiv(blocks, 8 / width)});
}

ExpertWeights::ExpertWeights(const ExpertQuantization& quantization, const KernelContext& context,
                             const LayerInputs& in, std::optional<int64_t> layer_bits, size_t n,
                             size_t k)
    : quantization_(quantization),
      weights_(context.Input(in.weights)),
      scales_(InputOrNull(context, in.scales)),
      zero_points_(InputOrNull(context, in.zero_points)),
      global_scale_(InputOrNull(context, in.global_scale)),
      n_(n),
      k_(k),
      bits_(static_cast<size_t>(layer_bits.value_or(quantization.bits))),
      block_(static_cast<size_t>(quantization.BlockOf(static_cast<int64_t>(k)))),
      blocks_(CeilDiv(k, block_)) {}

float ExpertWeights::ScaleOf(size_t expert, size_t row, size_t block) const {
  float scale = global_scale_ ? ElementAt(*global_scale_, expert) : 1;
  if (scales_ == nullptr) return scale;
  if (quantization_.type != "fp8") {
    return scale * ElementAt(*scales_, (expert * n_ + row) * blocks_ + block);
  }
  if (quantization_.block_size <= 0) return scale;
  const size_t row_blocks = CeilDiv(n_, block_);
  return scale * ElementAt(*scales_, (expert * row_blocks + row / block_) * blocks_ + block);
}

float ExpertWeights::ZeroPointOf(size_t expert, size_t row, size_t block) const {
  if (zero_points_ == nullptr) return static_cast<float>(1u << (bits_ - 1));
  // With one block per row, the zero points of an expert's rows are packed together; otherwise
  // those of each row.
  const bool has_blocks = quantization_.block_size > 0;
  const size_t line = has_blocks ? expert * n_ + row : expert;
  const size_t count = has_blocks ? blocks_ : n_, i = has_blocks ? block : row;
  const uint8_t* packed = zero_points_->data<uint8_t>() + line * CeilDiv(count * bits_, size_t{8});
  return static_cast<float>(packed[i * bits_ / 8] >> (i * bits_ % 8) & ((1u << bits_) - 1));
}

void ExpertWeights::FillRow(size_t expert, size_t row, float* out) const {
  const size_t first = (expert * n_ + row) * k_;
  for (size_t block = 0; block < blocks_; ++block) {
    const size_t begin = block * block_, end = std::min(k_, begin + block_);
    const float scale = ScaleOf(expert, row, block);
    if (quantization_.is_integer()) {
      const float zero = ZeroPointOf(expert, row, block);
      const uint8_t* packed = weights_.data<uint8_t>();
      const unsigned mask = (1u << bits_) - 1;
      for (size_t i = begin; i < end; ++i) {
        const size_t bit = (first + i) * bits_;
        out[i] = (static_cast<float>(packed[bit / 8] >> (bit % 8) & mask) - zero) * scale;
      }
    } else if (quantization_.is_fp4()) {
      const uint8_t* packed = weights_.data<uint8_t>();
      for (size_t i = begin; i < end; ++i) {
        out[i] = kFp4Values[packed[(first + i) / 2] >> ((first + i) % 2 * 4) & 15] * scale;
      }
    } else {
      for (size_t i = begin; i < end; ++i) out[i] = ElementAt(weights_, first + i) * scale;
    }
  }
}

}  // namespace tenon
