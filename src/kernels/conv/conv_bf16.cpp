#include "kernels/conv/conv_bf16.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels/conv/conv_dims.h"
#include "kernels/elementwise/convert.h"
#include "kernels/gemm/gemm_bf16.h"
#include "kernels/gemm/gemm_grid.h"

namespace tenon::kernels {
#if defined(__x86_64__) && defined(__linux__)
namespace {

constexpr Bf16Parts kOne = Bf16Parts::kOne;
constexpr size_t kPanel = 32;       // columns of a panel of B
constexpr size_t kGroupRows = 16;   // of A
constexpr size_t kWantedTasks = 8;  // for a few threads

// x rounded to bfloat16, so that what a tap reads for many output pixels lies side by side: for
// each channel, a plane for every phase of the strides, with pads. Rows of a plane have room for
// all taps of a phase, so they are `pitch` long, and output pixels are numbered in rows of that
// length, too. Pixels between two rows of the output are computed, or are zero in dy, and not used.
struct PhasePlanes {
  explicit PhasePlanes(const ConvGeneralShape& shape)
      : height(shape.dims[1]),
        width(shape.dims[2]),
        rows(height.out + Last(height) / height.stride),
        pitch(width.out + Last(width) / width.stride),
        row_phases(std::min(height.stride, Last(height) + 1)),
        column_phases(std::min(width.stride, Last(width) + 1)),
        channel_size(row_phases * column_phases * rows * pitch),
        pixels((height.out - 1) * pitch + width.out) {}

  // The distance of the last tap from the first one.
  static size_t Last(const ConvDim& dim) { return (dim.kernel - 1) * dim.dilation; }

  // Where in a channel a tap's element for pixel 0 is. That for pixel i is i elements further.
  size_t OffsetOf(size_t ky, size_t kx) const {
    const size_t y = ky * height.dilation, x = kx * width.dilation;
    const size_t phase = y % height.stride * column_phases + x % width.stride;
    return (phase * rows + y / height.stride) * pitch + x / width.stride;
  }
  bool has_gaps() const { return pitch != width.out; }

  const ConvDim &height, &width;
  const size_t rows, pitch;  // of a plane
  const size_t row_phases, column_phases;
  const size_t channel_size;
  const size_t pixels;  // up to the last one of the output
};

// Every kind is a product whose left operand is packed by a first step for all tasks of the second:
// the weights, or dy of each range of pixels of each image. The first step rounds x, too. A task of
// the second step gathers its columns of the right operand, a range of pixels or of weights, and
// packs them itself. What it gathers should stay in the L2 cache.
struct Bf16ConvPlan {
  explicit Bf16ConvPlan(const ConvBf16Args& args)
      : shape(args.shape),
        product(args.product),
        planes(shape),
        taps(KernelTaps(shape)),
        is_pointwise(IsPointwise(shape)),
        pixels(product == ConvProduct::kInputGradient ? OutPixels(shape) : planes.pixels),
        depth(shape.in_channels * taps) {
    switch (product) {
      case ConvProduct::kOutput:
        PlanOutput();
        break;
      case ConvProduct::kInputGradient:
        PlanInputGradient();
        break;
      case ConvProduct::kWeightGradient:
        PlanWeightGradient();
        break;
    }
  }

  // [out_channels, depth] by [depth, a range of pixels].
  void PlanOutput() {
    constexpr size_t kGathered = 256 << 10;
    const size_t most = std::clamp<size_t>(kGathered / depth / kPanel, 2, 16) * kPanel;
    steps = DivideUp(pixels, most);
    sizes = {shape.out_channels, DivideUp(pixels, steps), depth};
    tasks = shape.batch * steps;
    gathered_bytes = RoundUp(sizes.n * depth * sizeof(uint16_t), 64);
    if (planes.has_gaps()) sums_bytes = RoundUp(sizes.m * sizes.n * sizeof(float), 64);
  }

  // [channels * taps, out_channels] by [out_channels, a range of pixels], for some input channels.
  // The products are added to dx where their taps lie.
  void PlanInputGradient() {
    size_t parts = DivideUp(shape.in_channels, 64);
    if (shape.batch * parts < kWantedTasks) parts = DivideUp(shape.in_channels, kGroupRows);
    part = DivideUp(DivideUp(shape.in_channels, parts), kGroupRows) * kGroupRows;
    part = std::min(part, shape.in_channels);
    tasks = shape.batch * DivideUp(shape.in_channels, part);
    constexpr size_t kPatches = 64 << 10;
    const size_t most = std::clamp<size_t>(kPatches / (part * taps) / kPanel, 2, 16) * kPanel;
    steps = DivideUp(pixels, most);
    sizes = {part * taps, DivideUp(pixels, steps), shape.out_channels};
    if (!is_pointwise) sums_bytes = RoundUp(sizes.m * sizes.n * sizeof(float), 64);
  }

  // [out_channels, a range of pixels] by [the pixels, some of the weights], summed over the images.
  void PlanWeightGradient() {
    part = std::clamp<size_t>(DivideUp(DivideUp(depth, kWantedTasks), kPanel), 1, 6) * kPanel;
    tasks = DivideUp(depth, part);
    constexpr size_t kMostPixels = 512;
    steps = DivideUp(pixels, kMostPixels);
    sizes = {shape.out_channels, std::min(part, depth), DivideUp(pixels, steps)};
    gathered_bytes = RoundUp(sizes.n * sizes.k * sizeof(uint16_t), 64);
  }

  // What the first step packs: blocks of rows of the left operand, each in some tasks.
  size_t blocks() const {
    return product == ConvProduct::kWeightGradient ? shape.batch * steps : 1;
  }
  GemmSizes BlockSizes() const {
    GemmSizes all = sizes;
    if (product == ConvProduct::kInputGradient) all.m = depth;
    return all;
  }
  size_t block_bytes() const { return Bf16GemmRowsSize(BlockSizes(), kOne); }
  size_t tasks_of_block() const { return DivideUp(BlockSizes().m, kPackedRows); }
  // What it rounds: all channels, some in each task.
  size_t rounding_tasks() const { return reads_x() ? DivideUp(channels(), kRoundedChannels) : 0; }
  size_t channels() const { return shape.batch * shape.in_channels; }
  bool reads_x() const { return product != ConvProduct::kInputGradient; }
  size_t planes_bytes() const {
    return reads_x() ? RoundUp(channels() * planes.channel_size * sizeof(uint16_t), 64) : 0;
  }

  size_t ScratchBytes(size_t step) const {
    if (step > 0) {
      return gathered_bytes + sums_bytes + PackedBf16GemmBSize(sizes.n, sizes.k, kOne);
    }
    const size_t packing =
        product == ConvProduct::kWeightGradient ? kPackedRows * sizes.k * sizeof(uint16_t) : 0;
    return std::max(packing, reads_x() ? shape.dims[2].in * sizeof(uint16_t) : 0);
  }

  Range PixelsOf(size_t step) const { return PartOf(pixels, steps, step); }
  Range RangeOf(size_t index, size_t size) const {
    return {index * part, std::min(size, (index + 1) * part)};
  }

  static constexpr size_t kPackedRows = 64;  // some groups
  static constexpr size_t kRoundedChannels = 8;

  const ConvGeneralShape& shape;
  const ConvProduct product;
  const PhasePlanes planes;
  const size_t taps;
  const bool is_pointwise;
  const size_t pixels;                        // of an image, as they are numbered
  const size_t depth;                         // weights of an output channel
  size_t part = 0;                            // input channels or weights of a task
  size_t steps = 0;                           // ranges of an image's pixels
  size_t tasks = 0;                           // of the second step
  GemmSizes sizes = {};                       // of one product, at most
  size_t gathered_bytes = 0, sums_bytes = 0;  // of a task's memory
};

// The shared memory: what the first step packs, and what it rounds.
struct Shared {
  Shared(const Bf16ConvPlan& plan, std::byte* memory)
      : rows(memory), x(reinterpret_cast<uint16_t*>(memory + plan.blocks() * plan.block_bytes())) {}
  std::byte* rows;
  uint16_t* x;  // [batch][in_channels][planes.channel_size]
};

// Packs the right operand and multiplies, all in one task.
void Multiply(const GemmArgs& args, const Bf16Matrix& b, const void* rows, std::byte* packed) {
  const auto& [m, n, k] = args.sizes;
  for (size_t task = 0; task < PackBf16GemmBTaskCount(n); ++task) {
    RunPackBf16GemmBTask(b, n, k, kOne, task, packed);
  }
  for (size_t task = 0; task < Bf16GemmTaskCount(args.sizes); ++task) {
    RunBf16GemmTask(args, kOne, rows, packed, task);
  }
}

// The elements of x for the weights `columns`, one row of pixels for each.
void Gather(const Bf16ConvPlan& plan, const uint16_t* image, const Range& columns,
            const Range& pixels, uint16_t* out) {
  const size_t width = plan.planes.width.kernel;
  for (size_t column = columns.first; column < columns.last; ++column, out += pixels.size()) {
    const size_t tap = column % plan.taps;
    const uint16_t* const channel = image + column / plan.taps * plan.planes.channel_size;
    const size_t offset = plan.planes.OffsetOf(tap / width, tap % width);
    std::copy_n(channel + offset + pixels.first, pixels.size(), out);
  }
}

// Writes the planes of a channel. row: room for one of x.
void RoundChannel(const PhasePlanes& planes, const float* x, uint16_t* to, uint16_t* row) {
  const ConvDim &height = planes.height, &width = planes.width;
  std::fill_n(to, planes.channel_size, uint16_t{0});
  for (size_t y = 0; y < height.in; ++y, x += width.in) {
    const size_t padded = y + height.pad_begin;
    const size_t phase = padded % height.stride, r = padded / height.stride;
    if (phase >= planes.row_phases || r >= planes.rows) continue;
    FloatToBfloat16(x, row, width.in);
    for (size_t p = 0; p < planes.column_phases; ++p) {
      // The first column whose element is in x.
      const size_t first = width.pad_begin > p ? DivideUp(width.pad_begin - p, width.stride) : 0;
      const size_t from = first * width.stride + p - width.pad_begin;
      const size_t there = from < width.in ? DivideUp(width.in - from, width.stride) : 0;
      const size_t last = std::min(planes.pitch, first + there);
      uint16_t* const out =
          to + ((phase * planes.column_phases + p) * planes.rows + r) * planes.pitch;
      for (size_t c = first; c < last; ++c) out[c] = row[from + (c - first) * width.stride];
    }
  }
}

// dy of an output channel at `pixels`, which number the gaps between rows, too: there it is zero.
void RoundPixels(const PhasePlanes& planes, const float* dy, const Range& pixels, uint16_t* to) {
  ForEachRowPiece(pixels, planes.pitch, [&](size_t row, const Range& columns, size_t offset) {
    const size_t out = planes.width.out;
    const size_t count = columns.first < out ? std::min(columns.last, out) - columns.first : 0;
    FloatToBfloat16(dy + row * out + columns.first, to + offset, count);
    std::fill_n(to + offset + count, columns.size() - count, uint16_t{0});
  });
}

// Packs some rows of a block of the left operand.
void RunPackTask(const ConvBf16Args& args, const Bf16ConvPlan& plan, size_t task,
                 const Shared& shared, std::byte* scratch) {
  GemmSizes sizes = plan.BlockSizes();
  const size_t block = task / plan.tasks_of_block();
  const size_t first = task % plan.tasks_of_block() * Bf16ConvPlan::kPackedRows;
  std::byte* const to = shared.rows + block * plan.block_bytes();
  const size_t count = std::min(Bf16ConvPlan::kPackedRows, sizes.m - first);
  Bf16Matrix rows = RowMajor(args.w + first * plan.depth, plan.depth);
  if (args.product == ConvProduct::kInputGradient) rows = Transposed(args.w + first, plan.depth);
  if (args.product == ConvProduct::kWeightGradient) {
    const Range pixels = plan.PixelsOf(block % plan.steps);
    const size_t out_pixels = OutPixels(plan.shape), image = block / plan.steps;
    const float* const dy = args.dy + (image * sizes.m + first) * out_pixels;
    sizes.k = pixels.size();
    rows = RowMajor(dy + pixels.first, out_pixels);
    if (plan.planes.has_gaps()) {
      auto* const rounded = reinterpret_cast<uint16_t*>(scratch);
      for (size_t row = 0; row < count; ++row) {
        RoundPixels(plan.planes, dy + row * out_pixels, pixels, rounded + row * sizes.k);
      }
      rows = Bf16Matrix(rounded, sizes.k, 1);
    }
  }
  const GemmSizes before = {first, sizes.n, sizes.k}, own = {count, sizes.n, sizes.k};
  for (size_t part = 0; part < Bf16GemmRowsTaskCount(own); ++part) {
    RunBf16GemmRowsTask(rows, own, kOne, part, to + Bf16GemmRowsSize(before, kOne));
  }
}

void RunRoundingTask(const ConvBf16Args& args, const Bf16ConvPlan& plan, size_t task,
                     const Shared& shared, std::byte* scratch) {
  const size_t first = task * Bf16ConvPlan::kRoundedChannels;
  const size_t last = std::min(plan.channels(), first + Bf16ConvPlan::kRoundedChannels);
  for (size_t channel = first; channel < last; ++channel) {
    RoundChannel(plan.planes, args.x + channel * InPixels(plan.shape),
                 shared.x + channel * plan.planes.channel_size,
                 reinterpret_cast<uint16_t*>(scratch));
  }
}

// Copies a channel's values at `pixels`, without those between rows.
void CopyPixels(const PhasePlanes& planes, const float* from, const Range& pixels, float* channel) {
  ForEachRowPiece(pixels, planes.pitch, [&](size_t row, const Range& columns, size_t offset) {
    const size_t out = planes.width.out;
    if (columns.first >= out) return;
    std::copy_n(from + offset, std::min(columns.last, out) - columns.first,
                channel + row * out + columns.first);
  });
}

void RunOutputTask(const ConvBf16Args& args, const Bf16ConvPlan& plan, size_t task,
                   const Shared& shared, std::byte* scratch) {
  const ConvGeneralShape& shape = args.shape;
  const size_t image = task / plan.steps, out_pixels = OutPixels(shape);
  const Range pixels = plan.PixelsOf(task % plan.steps);
  auto* const gathered = reinterpret_cast<uint16_t*>(scratch);
  auto* const sums = reinterpret_cast<float*>(scratch + plan.gathered_bytes);
  Gather(plan, shared.x + image * shape.in_channels * plan.planes.channel_size, {0, plan.depth},
         pixels, gathered);
  float* const out = args.result + image * shape.out_channels * out_pixels;
  GemmArgs product;
  product.sizes = {plan.sizes.m, pixels.size(), plan.depth};
  product.c = plan.planes.has_gaps() ? sums : out + pixels.first;
  product.ldc = plan.planes.has_gaps() ? pixels.size() : out_pixels;
  product.epilogue.bias_rows = args.epilogue.bias;
  product.epilogue.activation = args.epilogue.activation;
  Multiply(product, Bf16Matrix(gathered, pixels.size(), 1), shared.rows,
           scratch + plan.gathered_bytes + plan.sums_bytes);
  for (size_t c = 0; plan.planes.has_gaps() && c < plan.sizes.m; ++c) {
    CopyPixels(plan.planes, sums + c * pixels.size(), pixels, out + c * out_pixels);
  }
}

void RunInputGradientTask(const ConvBf16Args& args, const Bf16ConvPlan& plan, size_t task,
                          const Shared& shared, std::byte* scratch) {
  const ConvGeneralShape& shape = args.shape;
  ConvGeneralShape transposed = shape;
  for (ConvDim& dim : transposed.dims) std::swap(dim.in, dim.out);
  const size_t parts = plan.tasks / shape.batch, image = task / parts;
  const Range channels = plan.RangeOf(task % parts, shape.in_channels);
  const size_t in_pixels = InPixels(shape), first_row = channels.first * plan.taps;
  const GemmSizes before = {first_row, 0, plan.sizes.k};
  float* const dx = args.result + (image * shape.in_channels + channels.first) * in_pixels;
  if (!plan.is_pointwise) std::fill_n(dx, channels.size() * in_pixels, 0.0f);
  auto* const patches = reinterpret_cast<float*>(scratch);
  for (size_t step = 0; step < plan.steps; ++step) {
    const Range pixels = plan.PixelsOf(step);
    const float* const dy = args.dy + image * shape.out_channels * plan.pixels + pixels.first;
    GemmArgs product;
    product.sizes = {channels.size() * plan.taps, pixels.size(), plan.sizes.k};
    product.c = plan.is_pointwise ? dx + pixels.first : patches;
    product.ldc = plan.is_pointwise ? in_pixels : pixels.size();
    Multiply(product, RowMajor(dy, plan.pixels), shared.rows + Bf16GemmRowsSize(before, kOne),
             scratch + plan.sums_bytes);
    const float* products = patches;
    for (size_t c = 0; !plan.is_pointwise && c < channels.size(); ++c) {
      ForEachTapRow(shape, [&](size_t z, size_t y) {
        AddTaps(transposed, products, pixels, z, y, dx + c * in_pixels);
        products += shape.dims[2].kernel * pixels.size();
      });
    }
  }
}

void RunWeightGradientTask(const ConvBf16Args& args, const Bf16ConvPlan& plan, size_t task,
                           const Shared& shared, std::byte* scratch) {
  const Range columns = plan.RangeOf(task, plan.depth);
  const size_t image_size = plan.shape.in_channels * plan.planes.channel_size;
  auto* const gathered = reinterpret_cast<uint16_t*>(scratch);
  GemmArgs product;
  product.c = args.result + columns.first;
  product.ldc = plan.depth;
  for (size_t block = 0; block < plan.blocks(); ++block) {
    const Range pixels = plan.PixelsOf(block % plan.steps);
    Gather(plan, shared.x + block / plan.steps * image_size, columns, pixels, gathered);
    product.sizes = {plan.sizes.m, columns.size(), pixels.size()};
    Multiply(product, Bf16Matrix(gathered, 1, pixels.size()),
             shared.rows + block * plan.block_bytes(), scratch + plan.gathered_bytes);
    product.beta = 1;
  }
}

}  // namespace

bool ConvBf16Worthwhile(const ConvGeneralShape& shape) {
  // With fewer, half of what the products compute is padding.
  constexpr size_t kLeastChannels = 16, kLeastDepth = 24, kLeastPixels = 16;
  return IsBf16GemmFast(kOne) && shape.groups == 1 && IsPlanar(shape) &&
         shape.out_channels >= kLeastChannels &&
         shape.in_channels * KernelTaps(shape) >= kLeastDepth && OutPixels(shape) >= kLeastPixels;
}

ConvSteps ConvBf16Steps(const ConvBf16Args& args) {
  const Bf16ConvPlan plan(args);
  return {2, plan.blocks() * plan.block_bytes() + plan.planes_bytes(),
          std::max(plan.ScratchBytes(0), plan.ScratchBytes(1))};
}

size_t ConvBf16TaskCount(const ConvBf16Args& args, size_t step) {
  const Bf16ConvPlan plan(args);
  return step == 0 ? plan.rounding_tasks() + plan.blocks() * plan.tasks_of_block() : plan.tasks;
}

void RunConvBf16Task(const ConvBf16Args& args, size_t step, size_t task, std::byte* memory,
                     std::byte* scratch) {
  const Bf16ConvPlan plan(args);
  const Shared shared(plan, memory);
  if (step == 0) {
    const size_t rounding = plan.rounding_tasks();
    if (task < rounding) return RunRoundingTask(args, plan, task, shared, scratch);
    return RunPackTask(args, plan, task - rounding, shared, scratch);
  }
  switch (args.product) {
    case ConvProduct::kOutput:
      return RunOutputTask(args, plan, task, shared, scratch);
    case ConvProduct::kInputGradient:
      return RunInputGradientTask(args, plan, task, shared, scratch);
    case ConvProduct::kWeightGradient:
      return RunWeightGradientTask(args, plan, task, shared, scratch);
  }
}

#else
bool ConvBf16Worthwhile(const ConvGeneralShape&) { return false; }
ConvSteps ConvBf16Steps(const ConvBf16Args&) { return {}; }
size_t ConvBf16TaskCount(const ConvBf16Args&, size_t) { return 0; }
void RunConvBf16Task(const ConvBf16Args&, size_t, size_t, std::byte*, std::byte*) {}
#endif

}  // namespace tenon::kernels
