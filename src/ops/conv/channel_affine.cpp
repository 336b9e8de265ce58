#include "ops/conv/channel_affine.h"

#include <cmath>

#include "ir/batch_normalization.h"

namespace tenon {

bool IsFloatVector(const Tensor* tensor, int64_t size) {
  return tensor && tensor->type() == DataType::kFloat && tensor->rank() == 1 &&
         tensor->size() == size;
}

std::optional<ChannelAffine> AffineOfNormalization(const Graph& graph, const Node& node,
                                                   int64_t channels) {
  const bool is_inference =
      node.opset >= 7 && !UsesBatchStatistics(node) && node.GetInt("spatial", 1) == 1;
  if (!is_inference || node.inputs.size() != 5) return std::nullopt;
  const float* parameters[4];
  for (size_t i = 0; i < 4; ++i) {
    const Tensor* constant = node.has_input(i + 1) ? graph.ConstantOf(node.inputs[i + 1]) : nullptr;
    if (!IsFloatVector(constant, channels)) return std::nullopt;
    parameters[i] = constant->data<float>();
  }
  const auto [gamma, beta, mean, variance] = parameters;
  const double epsilon = node.GetFloat("epsilon", 1e-5F);
  ChannelAffine affine;
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
    const double scale = gamma[c] / std::sqrt(double{variance[c]} + epsilon);
    affine.scale.push_back(scale);
    affine.shift.push_back(beta[c] - mean[c] * scale);
  }
  return affine;
}

std::optional<std::vector<double>> PerChannel(const Tensor& constant, size_t rank,
                                              int64_t channels) {
  if (constant.type() != DataType::kFloat || constant.rank() > rank) return std::nullopt;
  for (size_t i = 0; i < constant.rank(); ++i) {
    const bool is_channel_axis = i + rank - constant.rank() == 1;
    const int64_t size = constant.shape()[i];
    if (size != 1 && !(is_channel_axis && size == channels)) return std::nullopt;
  }
  std::vector<double> values;
  for (int64_t c = 0; c < channels; ++c) {
    values.push_back(constant.data<float>()[constant.size() == 1 ? 0 : c]);
  }
  return values;
}

std::optional<ChannelAffine> AffineOf(const Graph& graph, const Node& node, size_t image,
                                      size_t rank, int64_t channels) {
  if (!node.domain.empty()) return std::nullopt;
  if (node.op_type == "BatchNormalization" && image == 0) {
    return AffineOfNormalization(graph, node, channels);
  }
  const bool is_sum = node.op_type == "Add" || node.op_type == "Sub";
  const bool is_difference = node.op_type == "Sub";
  if (node.inputs.size() != 2 || !(is_sum || node.op_type == "Mul")) return std::nullopt;
  if (is_difference && image != 0) return std::nullopt;
  const Tensor* constant = graph.ConstantOf(node.inputs[1 - image]);
  std::optional<std::vector<double>> values =
      constant ? PerChannel(*constant, rank, channels) : std::nullopt;
  if (!values) return std::nullopt;
  const auto count = static_cast<size_t>(channels);
  if (!is_sum) return ChannelAffine{*std::move(values), std::vector<double>(count, 0)};
  for (double& value : *values) value *= is_difference ? -1 : 1;
  return ChannelAffine{std::vector<double>(count, 1), *std::move(values)};
}

}  // namespace tenon
