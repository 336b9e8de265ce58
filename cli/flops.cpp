#include "flops.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <span>

namespace tenon::cli {
namespace {

using Dims = std::vector<int64_t>;

double Product(std::span<const int64_t> dims) {
  return std::accumulate(dims.begin(), dims.end(), 1.0, std::multiplies<double>());
}

// Weights are [channels out, channels in per group, kernel...]; in the blocked layout, images are
// [n, channels / block, spatial..., block], one axis more than the weights have.
double ConvFlops(const Dims& weights, const Dims& image) {
  if (weights.size() < 3 || image.size() < weights.size()) return 0;
  const bool is_blocked = image.size() == weights.size() + 1;
  const std::span<const int64_t> spatial(image.data() + 2, image.size() - 2 - is_blocked);
  return 2 * static_cast<double>(image[0]) * Product(spatial) * Product(weights);
}

// B is [..., k, n] or, transposed, [..., n, k].
double MatMulFlops(const Dims& b, const Dims& y) {
  if (b.empty() || y.empty()) return 0;
  const double n = static_cast<double>(y.back());
  const size_t matrix = std::min<size_t>(b.size(), 2);
  const double kn = Product({b.data() + b.size() - matrix, matrix});
  if (b.size() == 1 || n == 0) return 2 * Product(y) * static_cast<double>(b.back());
  return 2 * Product(y) * kn / n;
}

// Scores of every query and key, and their sums of values: [batch, sequence, hidden] or
// [batch, heads, sequence, size].
double AttentionFlops(const Dims& query, const Dims& key) {
  if (query.size() != key.size() || query.size() < 3) return 0;
  return 4 * Product(query) * static_cast<double>(key[key.size() - 2]);
}

}  // namespace

double FlopsOf(const std::string& op_type, const std::vector<TensorShape>& inputs,
               const std::vector<TensorShape>& outputs) {
  if (inputs.size() < 2 || outputs.empty()) return 0;
  const auto has = [&](const char* word) { return op_type.find(word) != op_type.npos; };
  const Dims &a = inputs[0].dims, &b = inputs[1].dims, &y = outputs[0].dims;
  if (has("ConvTranspose")) return ConvFlops(b, a);
  if (has("Conv") && !has("ConvInteger") && !has("QLinear")) return ConvFlops(b, y);
  if (op_type == "MatMulNBits")
    return 2 * Product(y) * static_cast<double>(a.empty() ? 0 : a.back());
  if (has("QLinear")) {
    // x, its scale and zero point, then the weights.
    if (inputs.size() < 4) return 0;
    if (has("Conv")) return ConvFlops(inputs[3].dims, y);
    return has("MatMul") ? MatMulFlops(inputs[3].dims, y) : 0;
  }
  if (has("ConvInteger")) return ConvFlops(b, y);
  if (has("MatMul") || has("Gemm")) return MatMulFlops(b, y);
  if (has("Attention")) return AttentionFlops(a, b);
  const bool is_recurrent = op_type == "LSTM" || op_type == "GRU" || op_type == "RNN";
  if (is_recurrent && inputs.size() > 2 && a.size() == 3) {
    return 2 * static_cast<double>(a[0] * a[1]) * (Product(b) + Product(inputs[2].dims));
  }
  return 0;
}

double BytesMoved(const std::string& op_type, double inputs, double outputs) {
  const bool reads_a_part = op_type.starts_with("Gather") || op_type == "Slice" ||
                            op_type == "Shape" || op_type == "Size";
  return (reads_a_part ? std::min(inputs, outputs) : inputs) + outputs;
}

}  // namespace tenon::cli
