#include "ops/conv/conv_work.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace tenon {
namespace {

using kernels::Conv2dShape;
using kernels::ConvDim;
using kernels::ConvGeneralShape;
using kernels::WinogradTile;

// Of three dimensions, the first one are the frames. A single one is a row of height 1.
Conv2dShape ShapeOfFrames(const ConvGeneralShape& shape) {
  const auto& [depth, height, width] = shape.dims;
  return Conv2dShape{.batch = shape.batch,
                     .in_channels = shape.in_channels,
                     .in_height = height.in,
                     .in_width = width.in,
                     .out_channels = shape.out_channels,
                     .out_height = height.out,
                     .out_width = width.out,
                     .groups = shape.groups,
                     .kernel_height = height.kernel,
                     .kernel_width = width.kernel,
                     .stride_height = height.stride,
                     .stride_width = width.stride,
                     .dilation_height = height.dilation,
                     .dilation_width = width.dilation,
                     .pad_top = height.pad_begin,
                     .pad_left = width.pad_begin,
                     .frames = depth};
}

// Nothing for three dimensions.
std::optional<Conv2dShape> Shape2d(const ConvGeneralShape& shape) {
  const ConvDim& depth = shape.dims[0];
  if (depth.in != 1 || depth.out != 1 || depth.kernel != 1) return std::nullopt;
  Conv2dShape flat = ShapeOfFrames(shape);
  flat.frames = {};
  return flat;
}

std::optional<kernels::ConvWinogradPlanarArgs> PlanarArgs(const kernels::ConvGeneralArgs& args,
                                                          const Conv2dShape& shape) {
  const WinogradTile tile = kernels::ChoosePlanarWinogradTile(shape);
  if (tile == WinogradTile::kNone) return std::nullopt;
  return kernels::ConvWinogradPlanarArgs{shape, tile,     args.in,      args.weights,
                                         false, args.out, args.epilogue};
}

// One function for each alternative of a variant.
template <class... Functions>
struct ByKind : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
ByKind(Functions...) -> ByKind<Functions...>;

// A single step without memory that its tasks share.
kernels::ConvSteps OneStep(size_t scratch_bytes) { return {1, 0, scratch_bytes}; }

}  // namespace

ConvGeneralShape TransposedShape(ConvGeneralShape shape) {
  std::swap(shape.in_channels, shape.out_channels);
  for (ConvDim& dim : shape.dims) std::swap(dim.in, dim.out);
  return shape;
}

using kernels::ConvBf16Args;
using kernels::ConvWeightGradientArgs;
using kernels::ConvWinogradPlanarArgs;
using kernels::WinogradGradientArgs;

ConvWork ConvWork::OfConv(const kernels::ConvGeneralArgs& args, bool may_round) {
  if (const auto planar = PlanarArgs(args, ShapeOfFrames(args.shape))) return ConvWork(*planar);
  if (may_round && !args.epilogue.residual && kernels::ConvBf16Worthwhile(args.shape)) {
    return ConvWork(ConvBf16Args{kernels::ConvProduct::kOutput, args.shape, args.in, args.weights,
                                 nullptr, args.out, args.epilogue});
  }
  return ConvWork(General{args});
}

ConvWork ConvWork::OfTranspose(const kernels::ConvGeneralArgs& args, bool may_round) {
  std::optional<Conv2dShape> shape = Shape2d(args.shape);
  if (shape && shape->pad_top < shape->kernel_height && shape->pad_left < shape->kernel_width) {
    // With a stride of 1, it is the convolution with the taps in reverse order.
    shape->pad_top = shape->kernel_height - 1 - shape->pad_top;
    shape->pad_left = shape->kernel_width - 1 - shape->pad_left;
    if (auto planar = PlanarArgs(args, *shape)) {
      planar->of_transpose = true;
      return ConvWork(*planar);
    }
  }
  const ConvGeneralShape of_conv = TransposedShape(args.shape);
  if (may_round && kernels::ConvBf16Worthwhile(of_conv)) {
    return ConvWork(ConvBf16Args{kernels::ConvProduct::kInputGradient,
                                 of_conv,
                                 nullptr,
                                 args.weights,
                                 args.in,
                                 args.out,
                                 {}});
  }
  return ConvWork(Transposed{args});
}

ConvWork ConvWork::OfWeightGradient(const ConvWeightGradientArgs& args, bool may_round) {
  const std::optional<Conv2dShape> shape = Shape2d(args.shape);
  if (shape && kernels::WinogradGradientWorthwhile(*shape)) {
    return ConvWork(WinogradGradientArgs{*shape, args.in, args.dy, args.dw});
  }
  if (may_round && kernels::ConvBf16Worthwhile(args.shape)) {
    return ConvWork(ConvBf16Args{
        kernels::ConvProduct::kWeightGradient, args.shape, args.in, nullptr, args.dy, args.dw, {}});
  }
  return ConvWork(args);
}

ConvWork::ConvWork(Way way) : way_(way) {
  steps_ = std::visit(
      ByKind{
          [](const General& g) { return OneStep(kernels::ConvGeneralScratchSize(g.args.shape)); },
          [](const Transposed& t) {
            return OneStep(kernels::ConvTransposeScratchSize(t.args.shape));
          },
          [](const ConvWeightGradientArgs& args) {
            return OneStep(kernels::ConvWeightGradientScratchSize(args.shape));
          },
          [](const ConvWinogradPlanarArgs& args) {
            return kernels::ConvWinogradPlanarSteps(args.shape, args.tile);
          },
          [](const WinogradGradientArgs& args) {
            return kernels::WinogradGradientSteps(args.shape);
          },
          [](const ConvBf16Args& args) { return kernels::ConvBf16Steps(args); },
      },
      way_);
}

size_t ConvWork::TaskCount(size_t step) const {
  return std::visit(
      ByKind{
          [](const General& g) { return kernels::ConvGeneralTaskCount(g.args.shape); },
          [](const Transposed& t) { return kernels::ConvTransposeTaskCount(t.args.shape); },
          [](const ConvWeightGradientArgs& args) {
            return kernels::ConvWeightGradientTaskCount(args.shape);
          },
          [&](const ConvWinogradPlanarArgs& args) {
            return kernels::ConvWinogradPlanarTaskCount(args, step);
          },
          [&](const WinogradGradientArgs& args) {
            return kernels::WinogradGradientTaskCount(args.shape, step);
          },
          [&](const ConvBf16Args& args) { return kernels::ConvBf16TaskCount(args, step); },
      },
      way_);
}

void ConvWork::RunTask(size_t step, size_t task, std::byte* shared, std::byte* scratch) const {
  auto* const shared_floats = reinterpret_cast<float*>(shared);
  auto* const floats = reinterpret_cast<float*>(scratch);
  std::visit(ByKind{
                 [&](const General& g) { kernels::RunConvGeneralTask(g.args, task, scratch); },
                 [&](const Transposed& t) { kernels::RunConvTransposeTask(t.args, task, scratch); },
                 [&](const ConvWeightGradientArgs& args) {
                   kernels::RunConvWeightGradientTask(args, task, scratch);
                 },
                 [&](const ConvWinogradPlanarArgs& args) {
                   kernels::RunConvWinogradPlanarTask(args, step, task, shared_floats, floats);
                 },
                 [&](const WinogradGradientArgs& args) {
                   kernels::RunWinogradGradientTask(args, step, task, shared_floats, floats);
                 },
                 [&](const ConvBf16Args& args) {
                   kernels::RunConvBf16Task(args, step, task, shared, scratch);
                 },
             },
             way_);
}

size_t ConvWork::ScratchBytes(const KernelContext& context) const {
  size_t most_tasks = 0;
  for (size_t step = 0; step < steps_.count; ++step) {
    most_tasks = std::max(most_tasks, TaskCount(step));
  }
  return steps_.shared_bytes + context.TaskScratchBytes(most_tasks, steps_.scratch_bytes);
}

void ConvWork::RunIn(std::byte* memory, KernelContext& context) const {
  for (size_t step = 0; step < steps_.count; ++step) {
    context.ForEachTaskIn(
        memory + steps_.shared_bytes, TaskCount(step), steps_.scratch_bytes,
        [&](size_t task, std::byte* scratch) { RunTask(step, task, memory, scratch); });
  }
}

Status ConvWork::Run(KernelContext& context) const {
  const size_t bytes = ScratchBytes(context);
  auto* const memory = static_cast<std::byte*>(context.Scratch(bytes));
  if (memory == nullptr) return RuntimeException("out of memory: {} bytes of scratch", bytes);
  RunIn(memory, context);
  return OkStatus();
}

}  // namespace tenon
