// Transposed convolutions whose strides are 1 are convolutions with turned weights.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include "ir/graph.h"
#include "ops/fusion/fusion.h"
#include "ops/fusion/window_values.h"

namespace tenon {
namespace {

bool AllAre(const std::vector<int64_t>& values, int64_t wanted) {
  return !values.empty() &&
         std::all_of(values.begin(), values.end(), [wanted](int64_t v) { return v == wanted; });
}

// The pads of the convolution; none if it cannot have them.
std::optional<std::vector<int64_t>> TurnedPads(const Node& node, const Shape& weights) {
  const size_t rank = weights.rank() - 2;
  const std::vector<int64_t> dilations = WindowValues(node, "dilations", rank, 1);
  std::vector<int64_t> pads = WindowValues(node, "pads", 2 * rank, 0);
  if (dilations.empty() || pads.empty()) return std::nullopt;
  for (size_t i = 0; i < 2 * rank; ++i) {
    if (dilations[i % rank] == 0 || weights[i % rank + 2] > INT32_MAX) return std::nullopt;
    pads[i] = dilations[i % rank] * (weights[i % rank + 2] - 1) - pads[i];
    if (pads[i] < 0) return std::nullopt;
  }
  return pads;
}

bool CanBeTurned(const Match& match) {
  const Node& node = match.root();
  const Tensor& weights = *match.graph().StoredConstantOf(match["W"]);
  const std::string_view padding = node.GetString("auto_pad", "NOTSET");
  const int64_t groups = node.GetInt("group", 1);
  if (weights.rank() < 3 || weights.size() == 0 || DataTypeBits(weights.type()) % 8 != 0) {
    return false;
  }
  const size_t rank = weights.rank() - 2;
  return groups > 0 && weights.shape()[0] % groups == 0 &&
         (padding == "NOTSET" || padding == "VALID") && node.GetInts("output_shape").empty() &&
         AllAre(WindowValues(node, "strides", rank, 1), 1) &&
         AllAre(WindowValues(node, "output_padding", rank, 0), 0) &&
         TurnedPads(node, weights.shape());
}

// [groups * in, out, taps...] -> [groups * out, in, taps...], the taps in reverse order.
Result<Tensor> TurnedWeights(const Tensor& weights, int64_t groups) {
  Shape shape = weights.shape();
  const int64_t in = shape[0] / groups, out = shape[1], taps = weights.size() / (shape[0] * out);
  shape[0] = groups * out;
  shape[1] = in;
  TENON_ASSIGN_OR_RETURN(Tensor turned, Tensor::Allocate(weights.type(), shape));
  const size_t bytes = DataTypeBits(weights.type()) / 8;
  auto* to = static_cast<std::byte*>(turned.raw());
  const auto* from = static_cast<const std::byte*>(weights.raw());
  for (int64_t row = 0; row < groups * out; ++row) {
    for (int64_t i = 0; i < in; ++i) {
      const int64_t plane = (row / out * in + i) * out + row % out;
      for (int64_t tap = taps - 1; tap >= 0; --tap, to += bytes) {
        std::memcpy(to, from + static_cast<size_t>(plane * taps + tap) * bytes, bytes);
      }
    }
  }
  return turned;
}

ValueId TurnIntoConv(Replacement& r) {
  const Node& node = r.root();
  const Tensor& weights = *r.graph().StoredConstantOf(r["W"]);
  Result<Tensor> turned = TurnedWeights(weights, node.GetInt("group", 1));
  if (!turned) return ValueId::kNone;
  std::vector<Attribute> attributes;
  attributes.emplace_back("pads", *TurnedPads(node, weights.shape()));
  attributes.emplace_back("group", node.GetInt("group", 1));
  if (const std::vector<int64_t> dilations = node.GetInts("dilations"); !dilations.empty()) {
    attributes.emplace_back("dilations", dilations);
  }
  return r.Op("Conv", {r["X"], r.Constant("turned", std::move(*turned)), r["B"]},
              std::move(attributes));
}

}  // namespace

std::vector<Fusion> ConvTransposeRewrites() {
  std::vector<Fusion> fusions;
  fusions.push_back({"",
                     "Conv",
                     {.name = "transposed conv of stride 1",
                      .pattern = Op("ConvTranspose", {Any("X"), Constant("W"), Maybe("B")}),
                      .when = CanBeTurned,
                      .replace = TurnIntoConv}});
  return fusions;
}

}  // namespace tenon
