#include <algorithm>

#include "kernels/conv/conv_dims.h"
#include "kernels/conv/conv_general.h"
#include "kernels/conv/conv_tile.h"
#include "kernels/gemm/gemm.h"

namespace tenon::kernels {
namespace {

// Each input pixel adds a patch of products to the output. For a range of output channels, the
// patches of a range of input pixels are one product, weights [channels * taps, group_in] by input
// [group_in, pixels]; a task adds them to its own output planes, range by range.
struct TransposePlan {
  explicit TransposePlan(const ConvGeneralShape& shape)
      : group_in(shape.in_channels / shape.groups),
        group_out(shape.out_channels / shape.groups),
        taps(KernelTaps(shape)),
        pixels(InPixels(shape)) {
    constexpr size_t kChannels = 16;
    constexpr size_t kWantedTasks = 8;
    const size_t others = std::max<size_t>(1, shape.batch * shape.groups);
    const size_t wanted_parts = CeilDiv(kWantedTasks, others);
    parts = std::max(CeilDiv(group_out, kChannels),
                     std::min(wanted_parts, CeilDiv(group_out, kChannels / 4)));
    part_channels = parts == 0 ? 0 : CeilDiv(group_out, parts);
    // The patches stay in L2 until they are added.
    constexpr size_t kPatchFloats = (256 << 10) / sizeof(float);
    const size_t most =
        std::max<size_t>(48, kPatchFloats / std::max<size_t>(1, part_channels * taps));
    steps = CeilDiv(pixels, most);
    step_pixels = steps == 0 ? 0 : CeilDiv(pixels, steps);
    patch_floats = CeilDiv(part_channels * taps * step_pixels, 16) * 16;
  }

  size_t group_in;
  size_t group_out;
  size_t taps;
  size_t pixels;
  size_t parts;          // of the output channels of a group
  size_t part_channels;  // at most
  size_t steps;          // over the input pixels
  size_t step_pixels;    // at most
  size_t patch_floats;   // rounded up so that the product's scratch stays aligned
};

// Applies the residual and the activation to `count` sums.
void FinishPlane(const ConvEpilogue& epilogue, const float* residual, size_t count, float* out) {
  if (residual) {
    for (size_t i = 0; i < count; ++i) out[i] += residual[i];
  }
  const Activation activate(epilogue.activation);
  if (activate) activate(out, count);
}

}  // namespace

size_t ConvTransposeTaskCount(const ConvGeneralShape& shape) {
  return shape.batch * shape.groups * TransposePlan(shape).parts;
}

size_t ConvTransposeScratchSize(const ConvGeneralShape& shape) {
  const TransposePlan plan(shape);
  size_t product = 0;
  // Parts and steps have at most two different sizes each.
  for (const size_t channels :
       {plan.part_channels, plan.part_channels - (plan.part_channels > 0)}) {
    for (const size_t pixels : {plan.step_pixels, plan.step_pixels - (plan.step_pixels > 0)}) {
      product =
          std::max(product, GemmScratchSize({channels * plan.taps, pixels, plan.group_in}, false));
    }
  }
  return plan.patch_floats * sizeof(float) + product;
}

void RunConvTransposeTask(const ConvGeneralArgs& args, size_t task, void* scratch) {
  const ConvGeneralShape& shape = args.shape;
  const TransposePlan plan(shape);
  const size_t group = task / plan.parts % shape.groups;
  const size_t image = task / plan.parts / shape.groups;
  const Range channels = PartOf(plan.group_out, plan.parts, task % plan.parts);
  const size_t first_out = group * plan.group_out + channels.first;
  const size_t out_pixels = OutPixels(shape);
  const size_t out_offset = (image * shape.out_channels + first_out) * out_pixels;
  const float* in = args.in + (image * shape.in_channels + group * plan.group_in) * plan.pixels;
  const float* weights =
      args.weights + (group * plan.group_in * plan.group_out + channels.first) * plan.taps;
  float* out = args.out + out_offset;
  float* patches = static_cast<float*>(scratch);
  for (size_t c = 0; c < channels.size(); ++c) {
    std::fill_n(out + c * out_pixels, out_pixels,
                args.epilogue.bias ? args.epilogue.bias[first_out + c] : 0.0f);
  }

  GemmArgs product;
  product.a = Transposed(weights, plan.group_out * plan.taps);
  product.c = patches;
  for (size_t s = 0; s < plan.steps; ++s) {
    const Range pixels = PartOf(plan.pixels, plan.steps, s);
    product.sizes = {channels.size() * plan.taps, pixels.size(), plan.group_in};
    product.b = RowMajor(in + pixels.first, plan.pixels);
    product.ldc = pixels.size();
    Gemm(product, patches + plan.patch_floats);
    const float* products = patches;
    for (size_t c = 0; c < channels.size(); ++c) {
      ForEachTapRow(shape, [&](size_t z, size_t y) {
        AddTaps(shape, products, pixels, z, y, out + c * out_pixels);
        products += shape.dims[2].kernel * pixels.size();
      });
    }
  }
  const float* residual = args.epilogue.residual ? args.epilogue.residual + out_offset : nullptr;
  FinishPlane(args.epilogue, residual, channels.size() * out_pixels, out);
}

}  // namespace tenon::kernels
