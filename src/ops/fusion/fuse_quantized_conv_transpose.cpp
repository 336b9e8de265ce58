// Transposed convolutions of quantized images. With strides s, each input gives s x s outputs that
// lie together, a block. So a convolution makes s x s times the channels, one for each place in a
// block, and DepthToSpace brings their elements to these places:
//
//   QuantizeLinear(ConvTranspose(DequantizeLinear(x), DequantizeLinear(w), b))
//   becomes  Slice(DepthToSpace(QLinearConv))
//
// Along an axis, output s q + r is the sum of the inputs q, q - 1, ... times the taps r, s + r,
// ...; pads cut outputs off.
#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include "ir/graph.h"
#include "ops/framework/registry.h"
#include "ops/fusion/quantized_operands.h"
#include "ops/fusion/window_values.h"

namespace tenon {
namespace {

constexpr size_t kAxes = 2;

struct BlockConv {
  int64_t block = 0;         // s
  int64_t taps[kAxes] = {};  // of the convolution
  int64_t crop_begin[kAxes] = {}, crop_end[kAxes] = {};

  int64_t places() const { return block * block; }
  bool is_cropped() const {
    const auto is_some = [](int64_t v) { return v != 0; };
    return std::any_of(crop_begin, crop_begin + kAxes, is_some) ||
           std::any_of(crop_end, crop_end + kAxes, is_some);
  }
};

std::optional<BlockConv> BlockConvOf(const Match& match) {
  const Node& node = match.node("conv");
  const Tensor& w = *match.graph().StoredConstantOf(match[kB.integers]);
  const auto strides = WindowValues(node, "strides", kAxes, 1);
  const auto pads = WindowValues(node, "pads", 2 * kAxes, 0);
  const auto more = WindowValues(node, "output_padding", kAxes, 0);
  const bool is_plain = node.GetInt("group", 1) == 1 && node.GetInts("output_shape").empty() &&
                        node.GetString("auto_pad", "NOTSET") == "NOTSET" &&
                        WindowValues(node, "dilations", kAxes, 1) == std::vector<int64_t>{1, 1};
  if (w.rank() != 2 + kAxes || w.size() == 0 || !is_plain || strides.empty() || pads.empty() ||
      more.empty() || strides[0] != strides[1] || strides[0] < 2) {
    return std::nullopt;
  }
  BlockConv conv = {.block = strides[0]};
  double products = 1, useful = 1;  // of an input
  for (size_t i = 0; i < kAxes; ++i) {
    const int64_t kernel = w.shape()[2 + i];
    conv.taps[i] = (kernel + conv.block - 1) / conv.block;
    conv.crop_begin[i] = pads[i];
    conv.crop_end[i] = conv.taps[i] * conv.block - kernel - more[i] + pads[kAxes + i];
    if (conv.crop_end[i] < 0) return std::nullopt;
    products *= static_cast<double>(conv.taps[i] * conv.block);
    useful *= static_cast<double>(kernel);
  }
  constexpr double kMostPerUseful = 2;  // the others are with zeros
  return products <= kMostPerUseful * useful ? std::optional(conv) : std::nullopt;
}

bool IsQuantizedConvTranspose(const Match& match) {
  static const bool has_rows = HasOpRow("", "DepthToSpace") && HasOpRow("", "Slice");
  return has_rows && QuantizesOrBounds(match) && HasOneScale(match, kA) &&
         HasLineScales(match, kB, 1) && BlockConvOf(match) &&
         HasIntegerBias(match, match.graph().StoredConstantOf(match[kB.integers])->shape()[1]);
}

// The weights [C, M, height, width] as [places, M, C, taps, taps], with the taps turned; zeros, of
// each output channel or of all, where there are none.
Result<Tensor> BlockWeights(const Tensor& w, const Tensor* zeros, const BlockConv& conv) {
  const int64_t channels = w.shape()[0], out = w.shape()[1];
  const int64_t height = w.shape()[2], width = w.shape()[3];
  TENON_ASSIGN_OR_RETURN(
      Tensor made, Tensor::Allocate(w.type(), Shape({conv.places() * out, channels, conv.taps[0],
                                                     conv.taps[1]})));
  const auto* from = static_cast<const uint8_t*>(w.raw());
  auto* to = static_cast<uint8_t*>(made.raw());
  for (int64_t place = 0; place < conv.places(); ++place) {
    for (int64_t m = 0; m < out; ++m) {
      const auto* all_zeros = zeros ? static_cast<const uint8_t*>(zeros->raw()) : nullptr;
      const uint8_t zero = all_zeros ? all_zeros[zeros->size() > 1 ? m : 0] : 0;
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t i = conv.taps[0]; i-- > 0;) {
          for (int64_t j = conv.taps[1]; j-- > 0;) {
            const int64_t y = i * conv.block + place / conv.block;
            const int64_t x = j * conv.block + place % conv.block;
            const bool is_there = y < height && x < width;
            *to++ = is_there ? from[((c * out + m) * height + y) * width + x] : zero;
          }
        }
      }
    }
  }
  return made;
}

// A constant with one element, or with one for each output channel, for all places.
ValueId ForAllPlaces(Replacement& r, std::string_view hint, ValueId id, const BlockConv& conv) {
  const Tensor once = *r.graph().ConstantOf(id);
  if (once.size() == 1) return id;
  Result<Tensor> all = Tensor::Allocate(once.type(), Shape({conv.places() * once.size()}));
  if (!all) return ValueId::kNone;
  for (int64_t i = 0; i < conv.places(); ++i) {
    std::memcpy(static_cast<std::byte*>(all->raw()) + static_cast<size_t>(i) * once.bytes(),
                once.raw(), once.bytes());
  }
  return r.Constant(hint, std::move(*all));
}

ValueId MakeBlockConv(Replacement& r) {
  const BlockConv conv = *BlockConvOf(r);
  const Tensor weights = *r.graph().StoredConstantOf(r[kB.integers]);
  const int64_t channels = weights.shape()[1];
  Result<Tensor> turned = BlockWeights(weights, r.constant(kB.zero), conv);
  if (!turned) return ValueId::kNone;
  ValueId bias = ValueId::kNone;
  if (r["bias"] != ValueId::kNone) {
    const std::vector<int32_t> once = *IntegerBias(r, channels);
    std::vector<int32_t> all;
    for (int64_t i = 0; i < conv.places(); ++i) all.insert(all.end(), once.begin(), once.end());
    bias = r.Constant("bias", Tensor::Of<int32_t>(Shape({conv.places() * channels}), all));
  }
  std::vector<Attribute> attributes;
  attributes.emplace_back("pads", std::vector<int64_t>{conv.taps[0] - 1, conv.taps[1] - 1,
                                                       conv.taps[0] - 1, conv.taps[1] - 1});
  ValueId y =
      r.Op("QLinearConv",
           {r[kA.integers], r[kA.scale], ZeroOf(r, kA), r.Constant("turned", std::move(*turned)),
            ForAllPlaces(r, "scales", r[kB.scale], conv),
            ForAllPlaces(r, "zeros", ZeroOf(r, kB), conv), r[kY.scale], OutputZero(r), bias},
           std::move(attributes));
  std::vector<Attribute> block;
  block.emplace_back("blocksize", conv.block);
  y = r.Op("DepthToSpace", {Bounded(r, y)}, std::move(block));
  if (!conv.is_cropped()) return y;
  const auto pair = [&](std::string_view hint, int64_t first, int64_t second) {
    return r.Constant(hint, Tensor::Of<int64_t>(Shape({2}), {first, second}));
  };
  const auto end = [](int64_t crop) {
    return crop > 0 ? -crop : std::numeric_limits<int64_t>::max();
  };
  return r.Op("Slice",
              {y, pair("starts", conv.crop_begin[0], conv.crop_begin[1]),
               pair("ends", end(conv.crop_end[0]), end(conv.crop_end[1])), pair("axes", 2, 3)});
}

}  // namespace

std::vector<Fusion> QuantizedConvTransposeFusions() {
  const Pattern a = Dequantized(kA), b = Dequantized(kB), bias = Maybe("bias");
  std::vector<Fusion> fusions;
  for (const Pattern& pattern :
       QuantizedOrActivated(Op("ConvTranspose", {a, b, bias}).As("conv"))) {
    fusions.push_back({"",
                       "QLinearConv",
                       {.name = "quantized transposed conv",
                        .pattern = pattern,
                        .when = IsQuantizedConvTranspose,
                        .replace = MakeBlockConv}});
  }
  return fusions;
}

}  // namespace tenon
