#include "kernels/conv/conv_general.h"

#include <algorithm>

#include "kernels/conv/conv_dims.h"
#include "kernels/conv/conv_planar.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/gemm_grid.h"

namespace tenon::kernels {
namespace {

// Whether the windows of a group lie in its input as the rows of a matrix, one for each pixel,
// which overlap if the stride is less than the kernel: signals in long windows, without pads.
bool IsRowOfWindows(const ConvGeneralShape& shape) {
  const ConvDim &depth = shape.dims[0], &height = shape.dims[1], &width = shape.dims[2];
  const auto is_one = [](const ConvDim& dim) {
    return dim.in == 1 && dim.out == 1 && dim.kernel == 1 && dim.pad_begin == 0;
  };
  constexpr size_t kLeastTaps = 64;  // of fewer the planar form reads the taps from few lines
  return is_one(depth) && is_one(height) && shape.in_channels == shape.groups &&
         width.kernel >= kLeastTaps && width.dilation == 1 && width.pad_begin == 0 &&
         width.out > 0 && (width.out - 1) * width.stride + width.kernel <= width.in;
}

// Each group of an image is a product: weights [group_out, depth] by gathered inputs
// [depth, pixels]. Pixels and outputs are split. Few pixels would fill no vectors, so theirs is the
// product of the transposed matrices, whose outputs are split. An input that is the matrix itself,
// or has it in it, is left to the product's own tasks.
struct GeneralPlan {
  explicit GeneralPlan(const ConvGeneralShape& shape)
      : group_out(shape.out_channels / shape.groups),
        depth(shape.in_channels / shape.groups * KernelTaps(shape)),
        pixels(OutPixels(shape)),
        has_few_pixels(pixels <= kGemmFlatRows),
        has_windows(!has_few_pixels && IsRowOfWindows(shape)),
        // The input of a pointwise convolution is the matrix itself.
        gathers(has_few_pixels || !(has_windows || IsPointwise(shape))) {
    if (!gathers) {
      parts = GemmTaskCount({group_out, pixels, depth}, false);
      return;
    }
    if (has_few_pixels) {
      constexpr size_t kTaskWeights = 64 << 10;
      constexpr size_t kLeastOutputs = 16;
      out_parts = pixels == 0 ? 0
                              : std::clamp<size_t>(group_out * depth / kTaskWeights, 1,
                                                   CeilDiv(group_out, kLeastOutputs));
      part_outputs = out_parts == 0 ? 0 : CeilDiv(group_out, out_parts);
      parts = out_parts;
      gathered_floats = RoundUp((depth + 2 * part_outputs) * pixels);
      return;
    }
    // The gathered inputs stay in L2, in whole panels of the product, which has some 4 MFLOP. Each
    // part of the outputs gathers them again, so it is not small.
    constexpr size_t kGatheredFloats = (384 << 10) / sizeof(float);
    constexpr size_t kTaskProducts = 2 << 20;
    constexpr size_t kLeastOutputs = 512;
    const size_t panel = GemmPanelColumns();
    const size_t deep = std::max<size_t>(1, depth);
    const size_t outputs = std::clamp<size_t>(group_out, 1, kLeastOutputs);
    const size_t fitting = kGatheredFloats / (deep * panel);
    const size_t wanted = CeilDiv(kTaskProducts, deep * outputs * panel);
    constexpr size_t kLeastPanels = 2;  // with fewer, the product waits for its weights
    part_pixels = std::max(kLeastPanels, std::min(fitting, wanted)) * panel;
    const size_t pixel_parts = CeilDiv(pixels, part_pixels);
    part_pixels = CeilDiv(CeilDiv(pixels, pixel_parts), panel) * panel;
    out_parts = std::clamp<size_t>(part_pixels * deep * group_out / kTaskProducts, 1,
                                   CeilDiv(group_out, kLeastOutputs));
    part_outputs = CeilDiv(group_out, out_parts);
    parts = CeilDiv(pixels, part_pixels) * out_parts;
    gathered_floats = RoundUp(depth * part_pixels);
  }

  size_t pixel_parts() const { return out_parts == 0 ? 0 : parts / out_parts; }
  Range PixelsOf(size_t part) const {
    if (has_few_pixels) return {0, pixels};
    return {part * part_pixels, std::min(pixels, (part + 1) * part_pixels)};
  }

  static size_t RoundUp(size_t floats) { return CeilDiv(floats, 16) * 16; }

  size_t group_out;
  size_t depth;
  size_t pixels;
  bool has_few_pixels;
  bool has_windows;
  bool gathers;
  size_t parts = 0;            // tasks of a group of an image
  size_t out_parts = 1;        // if it gathers
  size_t part_pixels = 0;      // at most
  size_t part_outputs = 0;     // at most
  size_t gathered_floats = 0;  // so many that the product's scratch stays aligned
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

// [rows][columns] to [columns][rows].
void Transpose(const float* in, size_t rows, size_t columns, float* out) {
  for (size_t i = 0; i < columns; ++i) {
    for (size_t j = 0; j < rows; ++j) *out++ = in[j * columns + i];
  }
}

// The inputs for one output pixel, [channels of a group][taps], zero outside the image.
void GatherWindow(const ConvGeneralShape& shape, const float* in, size_t pixel, float* out) {
  const ConvDim &depth = shape.dims[0], &height = shape.dims[1], &width = shape.dims[2];
  const size_t row = pixel / width.out;
  const ptrdiff_t front = FirstTap(row / height.out, depth.stride, depth.pad_begin);
  const ptrdiff_t top = FirstTap(row % height.out, height.stride, height.pad_begin);
  const ptrdiff_t left = FirstTap(pixel % width.out, width.stride, width.pad_begin);
  const TapRange planes = ValidTaps(front, depth.dilation, depth.kernel, depth.in);
  const TapRange rows = ValidTaps(top, height.dilation, height.kernel, height.in);
  const TapRange columns = ValidTaps(left, width.dilation, width.kernel, width.in);
  for (size_t c = 0; c < shape.in_channels / shape.groups; ++c, in += InPixels(shape)) {
    for (size_t kz = 0; kz < depth.kernel; ++kz) {
      for (size_t ky = 0; ky < height.kernel; ++ky, out += width.kernel) {
        if (kz < planes.first || kz >= planes.last || ky < rows.first || ky >= rows.last) {
          std::fill_n(out, width.kernel, 0.0f);
          continue;
        }
        const auto z = static_cast<size_t>(front + static_cast<ptrdiff_t>(kz * depth.dilation));
        const auto y = static_cast<size_t>(top + static_cast<ptrdiff_t>(ky * height.dilation));
        const float* const from = in + (z * height.in + y) * width.in;
        std::fill_n(out, columns.first, 0.0f);
        for (size_t s = columns.first; s < columns.last; ++s) {
          out[s] = from[left + static_cast<ptrdiff_t>(s * width.dilation)];
        }
        std::fill(out + columns.last, out + width.kernel, 0.0f);
      }
    }
  }
}

// Output channels `outputs` of a group at all pixels, from `first_out` on. `in`: the group's
// channels of the image; `out` and `residual`: the image.
void RunFewPixels(const ConvGeneralArgs& args, const GeneralPlan& plan, const float* in,
                  size_t first_out, const Range& outputs, float* out, const float* residual,
                  float* scratch) {
  const size_t pixels = plan.pixels, depth = plan.depth, count = outputs.size();
  const size_t offset = (first_out + outputs.first) * pixels;
  float* const rows = scratch;
  float* const sums = rows + depth * pixels;
  float* const addends = sums + count * pixels;
  for (size_t p = 0; p < pixels; ++p) GatherWindow(args.shape, in, p, rows + p * depth);
  GemmArgs product;
  product.sizes = {pixels, count, depth};
  product.a = RowMajor(rows, depth);
  product.b = Transposed(args.weights + (first_out + outputs.first) * depth, depth);
  product.c = sums;
  product.ldc = product.epilogue.ldr = count;
  if (args.epilogue.bias) {
    product.epilogue.bias_columns = args.epilogue.bias + first_out + outputs.first;
  }
  if (residual) {
    Transpose(residual + offset, count, pixels, addends);
    product.epilogue.residual = addends;
  }
  product.epilogue.activation = args.epilogue.activation;
  Gemm(product, scratch + plan.gathered_floats);
  Transpose(sums, pixels, count, out + offset);
}

bool RunsPlanar(const ConvGeneralShape& shape) {
  return ConvPlanarSupports(shape) && !IsRowOfWindows(shape);
}

}  // namespace

size_t ConvGeneralTaskCount(const ConvGeneralShape& shape) {
  if (RunsPlanar(shape)) return ConvPlanarTaskCount(shape);
  return shape.batch * shape.groups * GeneralPlan(shape).parts;
}

size_t ConvGeneralScratchSize(const ConvGeneralShape& shape) {
  if (RunsPlanar(shape)) return ConvPlanarScratchSize(shape);
  const GeneralPlan plan(shape);
  if (!plan.gathers) return GemmScratchSize({plan.group_out, plan.pixels, plan.depth}, false);
  size_t product = 0;
  const auto include = [&](size_t pixels, size_t outputs) {
    const GemmSizes sizes = plan.has_few_pixels ? GemmSizes{pixels, outputs, plan.depth}
                                                : GemmSizes{outputs, pixels, plan.depth};
    product = std::max(product, GemmScratchSize(sizes, false));
  };
  // Parts have at most two different sizes of either kind.
  for (const size_t part : {size_t{0}, plan.pixel_parts() - std::min<size_t>(plan.parts, 1)}) {
    const size_t pixels = plan.PixelsOf(part).size();
    include(pixels, plan.part_outputs);
    if (plan.part_outputs > 1) include(pixels, plan.part_outputs - 1);
  }
  return plan.gathered_floats * sizeof(float) + product;
}

void RunConvGeneralTask(const ConvGeneralArgs& args, size_t task, void* scratch) {
  if (RunsPlanar(args.shape)) return RunConvPlanarTask(args, task, scratch);
  const ConvGeneralShape& shape = args.shape;
  const GeneralPlan plan(shape);
  const size_t part = task % plan.parts;
  const size_t group = task / plan.parts % shape.groups;
  const size_t image = task / plan.parts / shape.groups;
  const size_t group_in = shape.in_channels / shape.groups;
  const float* in = args.in + (image * shape.in_channels + group * group_in) * InPixels(shape);
  const size_t first_out = group * plan.group_out;
  if (plan.has_few_pixels) {
    const size_t image_offset = image * shape.out_channels * plan.pixels;
    const float* const residual = args.epilogue.residual;
    return RunFewPixels(args, plan, in, first_out, PartOf(plan.group_out, plan.parts, part),
                        args.out + image_offset, residual ? residual + image_offset : nullptr,
                        static_cast<float*>(scratch));
  }
  GemmArgs product;
  product.epilogue.activation = args.epilogue.activation;
  const auto set_outputs = [&](const Range& outputs, size_t first_pixel) {
    const size_t channel = first_out + outputs.first;
    const size_t offset = (image * shape.out_channels + channel) * plan.pixels + first_pixel;
    product.a = RowMajor(args.weights + channel * plan.depth, plan.depth);
    product.c = args.out + offset;
    product.ldc = product.epilogue.ldr = plan.pixels;
    if (args.epilogue.bias) product.epilogue.bias_rows = args.epilogue.bias + channel;
    if (args.epilogue.residual) product.epilogue.residual = args.epilogue.residual + offset;
  };
  if (!plan.gathers) {
    product.sizes = {plan.group_out, plan.pixels, plan.depth};
    product.b = plan.has_windows ? Transposed(in, shape.dims[2].stride) : RowMajor(in, plan.pixels);
    set_outputs({0, plan.group_out}, 0);
    return RunGemmTask(product, part, static_cast<float*>(scratch));
  }
  const Range pixels = plan.PixelsOf(part / plan.out_parts);
  const Range outputs = PartOf(plan.group_out, plan.out_parts, part % plan.out_parts);
  auto* const gathered = static_cast<float*>(scratch);
  Gather(shape, in, pixels, gathered);
  product.sizes = {outputs.size(), pixels.size(), plan.depth};
  product.b = RowMajor(gathered, pixels.size());
  set_outputs(outputs, pixels.first);
  Gemm(product, gathered + plan.gathered_floats);
}

}  // namespace tenon::kernels
