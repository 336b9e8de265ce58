#include "kernels/conv/winograd_gradient.h"

#include <algorithm>

#include "kernels/conv/reorder.h"
#include "kernels/conv/winograd_tile.h"
#include "kernels/dispatch.h"
#include "kernels/gemm/gemm.h"
#include "kernels/transpose_tiles.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/winograd_gradient.cpp"
#include <hwy/foreach_target.h>

#include "kernels/conv/winograd_transform-inl.h"

#ifndef TENON_KERNELS_CONV_WINOGRAD_GRADIENT_PLAN_
#define TENON_KERNELS_CONV_WINOGRAD_GRADIENT_PLAN_
namespace tenon::kernels {
namespace {

constexpr size_t kOutSide = static_cast<size_t>(WinogradTile::k4x4), kInSide = kOutSide + 2;
constexpr size_t kPositions = kInSide * kInSide;
constexpr size_t kTaps = 9;

// For some images at a time, their tiles are transformed, and then multiplied, position by
// position, into sums over all images. The last step transforms these.
enum Step : size_t { kTransform, kMultiply, kStepsOfImages };

struct GradientPlan {
  explicit GradientPlan(const Conv2dShape& shape)
      : in_pixels(shape.in_height * shape.in_width),
        out_pixels(shape.out_height * shape.out_width),
        in_blocks(ChannelBlocks(shape.in_channels)),
        out_blocks(ChannelBlocks(shape.out_channels)),
        tile_rows(CeilDiv(shape.out_height, kOutSide)),
        tile_columns(CeilDiv(shape.out_width, kOutSide)),
        in_width(in_blocks * kChannelBlock),
        out_width(out_blocks * kChannelBlock),
        sums(shape.out_channels * in_width) {
    // The transformed tiles stay in a shared cache; the sums are read and written once a round.
    constexpr size_t kRoundFloats = (8 << 20) / sizeof(float);
    const size_t floats = kPositions * image_tiles() * (in_width + out_width);
    const size_t wanted = std::max(kRoundFloats, kPositions * sums);
    const size_t most = std::max<size_t>(1, wanted / std::max<size_t>(1, floats));
    rounds = CeilDiv(shape.batch, most);
    round_images = rounds == 0 ? 0 : CeilDiv(shape.batch, rounds);
  }

  size_t image_tiles() const { return tile_rows * tile_columns; }
  // Floats from one position to the next, with a line more than what may be a power of two.
  size_t in_stride() const { return round_images * image_tiles() * in_width + kChannelBlock; }
  size_t out_stride() const { return round_images * image_tiles() * out_width + kChannelBlock; }

  size_t in_pixels;
  size_t out_pixels;
  size_t in_blocks;
  size_t out_blocks;
  size_t tile_rows;
  size_t tile_columns;
  size_t in_width;  // channels in whole blocks
  size_t out_width;
  size_t sums;          // of a position: [out_channels][in_width]
  size_t rounds;        // over the images
  size_t round_images;  // at most
};

// The memory that all tasks share.
struct GradientMemory {
  GradientMemory(const GradientPlan& plan, float* shared)
      : in(shared),
        out(in + kPositions * plan.in_stride()),
        sums(out + kPositions * plan.out_stride()) {}
  float* in;    // [position][image][tile][in_width]
  float* out;   // [position][image][tile][out_width], of dy
  float* sums;  // [position][out_channels][in_width]
};

}  // namespace
}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
using WinogradGradientTask = void (*)(const WinogradGradientArgs&, size_t, size_t, float*, float*);
namespace HWY_NAMESPACE {
namespace {

// A y, of 4 values.
HWY_INLINE void SpreadOutput(const VBlock (&y)[4], VBlock (&x)[6]) {
  using W = Winograd4;
  const VBlock a_even = AddScaled(y[0], W::kA2, y[2]);
  const VBlock a_odd = Scaled(AddScaled(y[1], W::kA2, y[3]), W::kA);
  const VBlock b_even = AddScaled(y[0], W::kB2, y[2]);
  const VBlock b_odd = Scaled(AddScaled(y[1], W::kB2, y[3]), W::kB);
  x[0] = y[0];
  x[1] = hn::Add(a_even, a_odd);
  x[2] = hn::Sub(a_even, a_odd);
  x[3] = hn::Add(b_even, b_odd);
  x[4] = hn::Sub(b_even, b_odd);
  x[5] = y[3];
}

// G' x, of 6 values.
HWY_INLINE void GatherFilter(const VBlock (&x)[6], VBlock (&g)[3]) {
  using W = Winograd4;
  constexpr double kScaleA = 1 / (2 * W::kA2 * (W::kA2 - W::kB2));
  constexpr double kScaleB = 1 / (2 * W::kB2 * (W::kB2 - W::kA2));
  const VBlock a_sum = hn::Add(x[1], x[2]), a_difference = hn::Sub(x[1], x[2]);
  const VBlock b_sum = hn::Add(x[3], x[4]), b_difference = hn::Sub(x[3], x[4]);
  g[0] = AddScaled(AddScaled(Scaled(x[0], 1 / (W::kA2 * W::kB2)), kScaleA, a_sum), kScaleB, b_sum);
  g[1] = AddScaled(Scaled(a_difference, W::kA * kScaleA), W::kB * kScaleB, b_difference);
  g[2] = AddScaled(AddScaled(x[5], W::kA2 * kScaleA, a_sum), W::kB2 * kScaleB, b_sum);
}

// Transforms a tile of dy, of which `rows` x `columns` pixels exist, to its positions.
HWY_INLINE void TransformOutputTile(const float* dy, size_t row_stride, size_t rows, size_t columns,
                                    float* out, size_t position_stride) {
  const DBlock d;
  VBlock half[kOutSide][kInSide];  // [column][row]
  for (size_t c = 0; c < kOutSide; ++c) {
    VBlock y[kOutSide];
    HWY_UNROLL(4)
    for (size_t r = 0; r < kOutSide; ++r) {
      y[r] = hn::Zero(d);
      if (r < rows && c < columns) y[r] = hn::LoadU(d, dy + r * row_stride + c * kChannelBlock);
    }
    SpreadOutput(y, half[c]);
  }
  for (size_t r = 0; r < kInSide; ++r) {
    VBlock y[kOutSide], x[kInSide];
    HWY_UNROLL(4) for (size_t c = 0; c < kOutSide; ++c) y[c] = half[c][r];
    SpreadOutput(y, x);
    HWY_UNROLL(6)
    for (size_t c = 0; c < kInSide; ++c) {
      hn::StoreU(x[c], d, out + (r * kInSide + c) * position_stride);
    }
  }
}

// The tiles of a block of input channels of one image. `in`: blocked pixels; `out`: of the first.
void TransformInputPlane(const Conv2dShape& shape, const GradientPlan& plan, const float* in,
                         float* out) {
  const size_t row = shape.in_width * kChannelBlock;
  for (size_t t = 0; t < plan.image_tiles(); ++t) {
    const ptrdiff_t y = FirstTap(t / plan.tile_columns * kOutSide, 1, shape.pad_top);
    const ptrdiff_t x = FirstTap(t % plan.tile_columns * kOutSide, 1, shape.pad_left);
    const TapRange rows = ValidTaps(y, 1, kInSide, shape.in_height);
    const TapRange columns = ValidTaps(x, 1, kInSide, shape.in_width);
    const ptrdiff_t offset = y * static_cast<ptrdiff_t>(row) + x * ptrdiff_t{kChannelBlock};
    for (size_t lane = 0; lane < kChannelBlock; lane += kBlockLanes) {
      TransformInput<Winograd4>(in + offset + static_cast<ptrdiff_t>(lane), row,
                                {rows.first, rows.last}, {columns.first, columns.last},
                                out + t * plan.in_width + lane, plan.in_stride());
    }
  }
}

void TransformOutputPlane(const Conv2dShape& shape, const GradientPlan& plan, const float* dy,
                          float* out) {
  const size_t row = shape.out_width * kChannelBlock;
  for (size_t t = 0; t < plan.image_tiles(); ++t) {
    const size_t y = t / plan.tile_columns * kOutSide, x = t % plan.tile_columns * kOutSide;
    for (size_t lane = 0; lane < kChannelBlock; lane += kBlockLanes) {
      TransformOutputTile(dy + y * row + x * kChannelBlock + lane, row, shape.out_height - y,
                          shape.out_width - x, out + t * plan.out_width + lane, plan.out_stride());
    }
  }
}

// Task `task`: a block of channels of an image, first those of the input, then those of dy.
void Transform(const WinogradGradientArgs& args, const GradientPlan& plan, const Range& images,
               size_t task, const GradientMemory& memory, float* scratch) {
  const Conv2dShape& shape = args.shape;
  const size_t image = task / (plan.in_blocks + plan.out_blocks);
  size_t block = task % (plan.in_blocks + plan.out_blocks);
  const bool is_input = block < plan.in_blocks;
  if (!is_input) block -= plan.in_blocks;
  const size_t channels = is_input ? shape.in_channels : shape.out_channels;
  const size_t pixels = is_input ? plan.in_pixels : plan.out_pixels;
  const size_t first = block * kChannelBlock;
  const float* from =
      (is_input ? args.in : args.dy) + ((images.first + image) * channels + first) * pixels;
  RunReorderToBlockedTask({1, std::min(kChannelBlock, channels - first), pixels, from, scratch}, 0);
  const size_t tile = image * plan.image_tiles();
  if (is_input) {
    TransformInputPlane(shape, plan, scratch, memory.in + tile * plan.in_width + first);
  } else {
    TransformOutputPlane(shape, plan, scratch, memory.out + tile * plan.out_width + first);
  }
}

// Task `task`: all products of a position.
void Multiply(const Conv2dShape& shape, const GradientPlan& plan, const Range& images,
              size_t position, const GradientMemory& memory, float* scratch) {
  GemmArgs product;
  product.sizes = {shape.out_channels, plan.in_width, images.size() * plan.image_tiles()};
  product.a = Transposed(memory.out + position * plan.out_stride(), plan.out_width);
  product.b = RowMajor(memory.in + position * plan.in_stride(), plan.in_width);
  product.c = memory.sums + position * plan.sums;
  product.ldc = plan.in_width;
  product.beta = images.first == 0 ? 0 : 1;
  Gemm(product, scratch);
}

// Task `task`: the weights of an output channel.
void Finish(const WinogradGradientArgs& args, const GradientPlan& plan, size_t channel,
            const GradientMemory& memory) {
  const DBlock d;
  const size_t in_channels = args.shape.in_channels;
  float* const dw = args.dw + channel * in_channels * kTaps;
  for (size_t block = 0; block < plan.in_blocks; ++block) {
    const float* from = memory.sums + channel * plan.in_width + block * kChannelBlock;
    float taps[kTaps][kChannelBlock];
    for (size_t lane = 0; lane < kChannelBlock; lane += kBlockLanes) {
      VBlock half[kInSide][3];  // [column][row]
      for (size_t c = 0; c < kInSide; ++c) {
        VBlock x[kInSide];
        HWY_UNROLL(6)
        for (size_t r = 0; r < kInSide; ++r) {
          x[r] = hn::LoadU(d, from + (r * kInSide + c) * plan.sums + lane);
        }
        GatherFilter(x, half[c]);
      }
      for (size_t r = 0; r < 3; ++r) {
        VBlock x[kInSide], g[3];
        HWY_UNROLL(6) for (size_t c = 0; c < kInSide; ++c) x[c] = half[c][r];
        GatherFilter(x, g);
        HWY_UNROLL(3) for (size_t c = 0; c < 3; ++c) hn::StoreU(g[c], d, taps[3 * r + c] + lane);
      }
    }
    const size_t channels = std::min(kChannelBlock, in_channels - block * kChannelBlock);
    TransposeTiles({kTaps, channels, sizeof(taps[0]), kTaps * sizeof(float)}, sizeof(float),
                   reinterpret_cast<const uint8_t*>(taps),
                   reinterpret_cast<uint8_t*>(dw + block * kChannelBlock * kTaps));
  }
}

void RunTask(const WinogradGradientArgs& args, size_t step, size_t task, float* shared,
             float* scratch) {
  const GradientPlan plan(args.shape);
  const GradientMemory memory(plan, shared);
  if (step == plan.rounds * kStepsOfImages) return Finish(args, plan, task, memory);
  const Range images = PartOf(args.shape.batch, plan.rounds, step / kStepsOfImages);
  if (step % kStepsOfImages == kTransform) {
    Transform(args, plan, images, task, memory, scratch);
  } else {
    Multiply(args.shape, plan, images, task, memory, scratch);
  }
}

}  // namespace

const WinogradGradientTask kWinogradGradientTask = &RunTask;

}  // namespace HWY_NAMESPACE

#if HWY_ONCE
ConvSteps WinogradGradientSteps(const Conv2dShape& shape) {
  const GradientPlan plan(shape);
  size_t scratch = std::max(plan.in_pixels, plan.out_pixels) * kChannelBlock * sizeof(float);
  // Rounds have at most two different sizes.
  for (const size_t images : {plan.round_images, plan.round_images - (plan.round_images > 0)}) {
    const GemmSizes sizes = {shape.out_channels, plan.in_width, images * plan.image_tiles()};
    scratch = std::max(scratch, GemmScratchSize(sizes, false));
  }
  const size_t floats = kPositions * (plan.in_stride() + plan.out_stride() + plan.sums);
  return {plan.rounds * kStepsOfImages + 1, floats * sizeof(float), scratch};
}

size_t WinogradGradientTaskCount(const Conv2dShape& shape, size_t step) {
  const GradientPlan plan(shape);
  if (step == plan.rounds * kStepsOfImages) return shape.out_channels;
  if (step % kStepsOfImages == kMultiply) return kPositions;
  const size_t images = PartOf(shape.batch, plan.rounds, step / kStepsOfImages).size();
  return images * (plan.in_blocks + plan.out_blocks);
}

void RunWinogradGradientTask(const WinogradGradientArgs& args, size_t step, size_t task,
                             float* shared, float* scratch) {
  TENON_SELECT_TABLE(WinogradGradientTask, kWinogradGradientTask)
  (args, step, task, shared, scratch);
}
#endif

}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();
