#include "kernels/conv/conv_general.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "kernels/conv/conv_dims.h"
#include "kernels/conv/conv_planar.h"
#include "kernels/gemm/gemm.h"

namespace tenon::kernels {
namespace {

// Each group of an image is a product: weights [group_out, depth] by gathered inputs
// [depth, pixels]. The pixels are split.
struct GeneralPlan {
  explicit GeneralPlan(const ConvGeneralShape& shape)
      : group_out(shape.out_channels / shape.groups),
        depth(shape.in_channels / shape.groups * KernelTaps(shape)),
        pixels(OutPixels(shape)),
        gathers(!IsPointwise(shape)) {
    // The gathered inputs stay in L2; a product has some 4 MFLOP.
    constexpr size_t kGatheredFloats = (384 << 10) / sizeof(float);
    constexpr size_t kTaskProducts = 2 << 20;
    const size_t deep = std::max<size_t>(1, depth);
    const size_t fitting = gathers ? kGatheredFloats / deep : pixels;
    const size_t wanted = kTaskProducts / std::max<size_t>(1, deep * group_out);
    constexpr size_t kLeast = 48;  // with fewer, the product waits for its weights
    parts = CeilDiv(pixels, std::max(kLeast, std::min(fitting, wanted)));
    part_pixels = parts == 0 ? 0 : CeilDiv(pixels, parts);
    // The gathered floats, rounded up so that the product's scratch stays aligned.
    gathered_floats = gathers ? CeilDiv(depth * part_pixels, 16) * 16 : 0;
  }

  // Whether the input itself is the matrix, so that nothing is gathered.
  static bool IsPointwise(const ConvGeneralShape& shape) {
    return std::all_of(std::begin(shape.dims), std::end(shape.dims), [](const ConvDim& dim) {
      return dim.kernel == 1 && dim.stride == 1 && dim.pad_begin == 0 && dim.in == dim.out;
    });
  }

  size_t group_out;
  size_t depth;
  size_t pixels;
  bool gathers;
  size_t parts;
  size_t part_pixels;  // at most
  size_t gathered_floats;
};

void Gather(const ConvGeneralShape& shape, const float* in, const Range& pixels, float* out) {
  const size_t channels = shape.in_channels / shape.groups;
  for (size_t c = 0; c < channels; ++c) {
    const float* plane = in + c * InPixels(shape);
    ForEachTap(shape, [&](size_t z, size_t y, size_t x) {
      GatherTap(shape, plane, pixels, z, y, x, out);
      out += pixels.size();
    });
  }
}

}  // namespace

size_t ConvGeneralTaskCount(const ConvGeneralShape& shape) {
  if (ConvPlanarSupports(shape)) return ConvPlanarTaskCount(shape);
  return shape.batch * shape.groups * GeneralPlan(shape).parts;
}

size_t ConvGeneralScratchSize(const ConvGeneralShape& shape) {
  if (ConvPlanarSupports(shape)) return ConvPlanarScratchSize(shape);
  const GeneralPlan plan(shape);
  size_t product = 0;
  // Parts have at most two different sizes.
  for (const size_t pixels : {plan.part_pixels, plan.part_pixels - (plan.part_pixels > 0)}) {
    product = std::max(product, GemmScratchSize({plan.group_out, pixels, plan.depth}, false));
  }
  if (plan.pixels == 1) {
    product = std::max(product, GemmScratchSize({1, plan.group_out, plan.depth}, false));
  }
  return plan.gathered_floats * sizeof(float) + product;
}

void RunConvGeneralTask(const ConvGeneralArgs& args, size_t task, void* scratch) {
  if (ConvPlanarSupports(args.shape)) return RunConvPlanarTask(args, task, scratch);
  const ConvGeneralShape& shape = args.shape;
  const GeneralPlan plan(shape);
  const size_t part = task % plan.parts;
  const size_t group = task / plan.parts % shape.groups;
  const size_t image = task / plan.parts / shape.groups;
  const Range pixels = PartOf(plan.pixels, plan.parts, part);
  const size_t group_in = shape.in_channels / shape.groups;
  const float* in = args.in + (image * shape.in_channels + group * group_in) * InPixels(shape);
  const size_t first_out = group * plan.group_out;
  const size_t out_offset = (image * shape.out_channels + first_out) * plan.pixels + pixels.first;
  float* gathered = static_cast<float*>(scratch);

  GemmArgs product;
  product.sizes = {plan.group_out, pixels.size(), plan.depth};
  product.a = RowMajor(args.weights + first_out * plan.depth, plan.depth);
  if (plan.gathers) {
    Gather(shape, in, pixels, gathered);
    product.b = RowMajor(gathered, pixels.size());
  } else {
    product.b = RowMajor(in + pixels.first, plan.pixels);
  }
  product.c = args.out + out_offset;
  product.ldc = plan.pixels;
  if (args.epilogue.bias) product.epilogue.bias_rows = args.epilogue.bias + first_out;
  if (args.epilogue.residual) product.epilogue.residual = args.epilogue.residual + out_offset;
  product.epilogue.ldr = plan.pixels;
  product.epilogue.activation = args.epilogue.activation;
  if (plan.pixels == 1) {
    // A single column W x is computed as the row x' W': whole vectors of outputs.
    product.sizes = {1, plan.group_out, plan.depth};
    product.a = RowMajor(product.b.data, plan.depth);
    product.b = Transposed(args.weights + first_out * plan.depth, plan.depth);
    product.ldc = product.epilogue.ldr = plan.group_out;
    std::swap(product.epilogue.bias_rows, product.epilogue.bias_columns);
  }
  Gemm(product, gathered + plan.gathered_floats);
}

}  // namespace tenon::kernels
