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

// to[stride i] += from[i].
void AddStrided(const float* __restrict from, size_t count, size_t stride, float* __restrict to) {
  if (stride == 1) {
    for (size_t i = 0; i < count; ++i) to[i] += from[i];
  } else {
    for (size_t i = 0; i < count; ++i) to[i * stride] += from[i];
  }
}

// to[2 i] += even[i] and to[2 i + 1] += odd[i].
void AddPairs(const float* __restrict even, const float* __restrict odd, size_t count,
              float* __restrict to) {
  for (size_t i = 0; i < count; ++i) {
    to[2 * i] += even[i];
    to[2 * i + 1] += odd[i];
  }
}

// Adds to a row of a transposed convolution's output what the width taps make of the columns of an
// input row, tap by tap. Tap kx has its products at products + kx step.
void AddRowTaps(const ConvDim& width, const Range& columns, const float* products, size_t step,
                float* row) {
  const auto inside = [&](size_t kx) {
    const Range valid = StridedInside(width.in, width.stride, TapShift(width, kx), width.out);
    const size_t first = std::clamp(valid.first, columns.first, columns.last);
    return Range{first, std::clamp(valid.last, first, columns.last)};
  };
  const auto from = [&](size_t kx, size_t column) {
    return products + kx * step + (column - columns.first);
  };
  const auto to = [&](size_t kx, size_t column) {
    return row + (TapShift(width, kx) + static_cast<ptrdiff_t>(column * width.stride));
  };
  const auto add = [&](size_t kx, size_t first, size_t last) {
    if (first >= last) return;
    AddStrided(from(kx, first), last - first, width.stride, to(kx, first));
  };
  for (size_t kx = 0; kx < width.kernel; ++kx) {
    const Range own = inside(kx);
    if (width.stride != 2 || width.dilation != 1 || kx + 1 == width.kernel) {
      add(kx, own.first, own.last);
      continue;
    }
    // With the next tap, which fills the columns between.
    const Range next = inside(kx + 1);
    const size_t first = std::max(own.first, next.first), last = std::min(own.last, next.last);
    if (first >= last) {
      add(kx, own.first, own.last);
      continue;
    }
    add(kx, own.first, first);
    add(kx + 1, next.first, first);
    AddPairs(from(kx, first), from(kx + 1, first), last - first, to(kx, first));
    add(kx, last, own.last);
    add(kx + 1, last, next.last);
    ++kx;
  }
}

}  // namespace

void AddTaps(const ConvGeneralShape& shape, const float* products, const Range& pixels, size_t kz,
             size_t ky, float* plane) {
  // Not a structured binding: Clang 14 cannot capture one.
  const ConvDim &depth = shape.dims[0], &height = shape.dims[1], &width = shape.dims[2];
  ForEachRowPiece(pixels, width.in, [&](size_t row, const Range& columns, size_t offset) {
    const ptrdiff_t z =
        static_cast<ptrdiff_t>(row / height.in * depth.stride) + TapShift(depth, kz);
    const ptrdiff_t y =
        static_cast<ptrdiff_t>(row % height.in * height.stride) + TapShift(height, ky);
    if (z < 0 || z >= static_cast<ptrdiff_t>(depth.out)) return;
    if (y < 0 || y >= static_cast<ptrdiff_t>(height.out)) return;
    const ptrdiff_t out_row = z * static_cast<ptrdiff_t>(height.out) + y;
    AddRowTaps(width, columns, products + offset, pixels.size(),
               plane + out_row * static_cast<ptrdiff_t>(width.out));
  });
}

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
