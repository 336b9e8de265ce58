#include "kernels/conv/conv_weight_gradient.h"

#include <algorithm>

#include "kernels/conv/conv_dims.h"
#include "kernels/gemm/gemm.h"

namespace tenon::kernels {
namespace {

// The gradient of a group is one product, dy [group_out, pixels] by the inputs of each weight
// [columns, pixels], transposed. A task has some of the columns, which no other task gathers, and
// adds up the products of ranges of pixels, whose inputs stay in L2.
struct GradientPlan {
  explicit GradientPlan(const ConvGeneralShape& shape)
      : group_in(shape.in_channels / shape.groups),
        group_out(shape.out_channels / shape.groups),
        taps(KernelTaps(shape)),
        pixels(OutPixels(shape)),
        columns(group_in * taps) {
    constexpr size_t kColumns = 96, kFewColumns = 32;
    constexpr size_t kWantedTasks = 8;
    const size_t wanted = CeilDiv(kWantedTasks, std::max<size_t>(1, shape.groups));
    parts = std::max(CeilDiv(columns, kColumns), std::min(wanted, CeilDiv(columns, kFewColumns)));
    part_columns = parts == 0 ? 0 : CeilDiv(columns, parts);
    constexpr size_t kPanelFloats = (256 << 10) / sizeof(float);
    const size_t most = std::max<size_t>(64, kPanelFloats / std::max<size_t>(1, part_columns));
    steps = CeilDiv(pixels, most);
    step_pixels = steps == 0 ? 0 : CeilDiv(pixels, steps);
    panel_floats = CeilDiv(part_columns * step_pixels, 16) * 16;
  }

  size_t group_in;
  size_t group_out;
  size_t taps;
  size_t pixels;
  size_t columns;       // weights of an output channel
  size_t parts;         // of the columns of a group
  size_t part_columns;  // at most
  size_t steps;         // over the pixels of an image
  size_t step_pixels;   // at most
  size_t panel_floats;  // rounded up so that the product's scratch stays aligned
};

}  // namespace

size_t ConvWeightGradientTaskCount(const ConvGeneralShape& shape) {
  return shape.groups * GradientPlan(shape).parts;
}

size_t ConvWeightGradientScratchSize(const ConvGeneralShape& shape) {
  const GradientPlan plan(shape);
  size_t product = 0;
  // Parts have at most two different sizes, and so have steps.
  for (const size_t columns : {plan.part_columns, plan.part_columns - (plan.part_columns > 0)}) {
    for (const size_t pixels : {plan.step_pixels, plan.step_pixels - (plan.step_pixels > 0)}) {
      product = std::max(product, GemmScratchSize({plan.group_out, columns, pixels}, false));
    }
  }
  return plan.panel_floats * sizeof(float) + product;
}

void RunConvWeightGradientTask(const ConvWeightGradientArgs& args, size_t task, void* scratch) {
  const ConvGeneralShape& shape = args.shape;
  const GradientPlan plan(shape);
  const size_t group = task / plan.parts, in_pixels = InPixels(shape);
  const Range columns = PartOf(plan.columns, plan.parts, task % plan.parts);
  const bool is_pointwise = IsPointwise(shape);
  auto* const panel = static_cast<float*>(scratch);
  GemmArgs product;
  product.c = args.dw + group * plan.group_out * plan.columns + columns.first;
  product.ldc = plan.columns;
  for (size_t image = 0; image < shape.batch; ++image) {
    const float* in = args.in + (image * shape.in_channels + group * plan.group_in) * in_pixels;
    const float* dy = args.dy + (image * shape.out_channels + group * plan.group_out) * plan.pixels;
    for (size_t step = 0; step < plan.steps; ++step) {
      const Range pixels = PartOf(plan.pixels, plan.steps, step);
      if (is_pointwise) {
        product.b = Transposed(in + columns.first * in_pixels + pixels.first, in_pixels);
      } else {
        for (size_t column = columns.first; column < columns.last; ++column) {
          const size_t tap = column % plan.taps, width = shape.dims[2].kernel;
          const size_t row = tap / width, height = shape.dims[1].kernel;
          GatherTap(shape, in + column / plan.taps * in_pixels, pixels, row / height, row % height,
                    tap % width, panel + (column - columns.first) * pixels.size());
        }
        product.b = Transposed(panel, pixels.size());
      }
      product.a = RowMajor(dy + pixels.first, plan.pixels);
      product.sizes = {plan.group_out, columns.size(), pixels.size()};
      Gemm(product, panel + plan.panel_floats);
      product.beta = 1;
    }
  }
}

}  // namespace tenon::kernels
