#include "ops/conv/conv_in_steps.h"

#include <algorithm>

namespace tenon {
namespace {

using kernels::Conv2dShape;
using kernels::ConvGeneralShape;
using kernels::WinogradTile;

// Nothing for three spatial dimensions. One is a row of height 1.
std::optional<Conv2dShape> Shape2d(const ConvGeneralShape& shape) {
  const auto& [depth, height, width] = shape.dims;
  if (depth.in != 1 || depth.out != 1 || depth.kernel != 1) return std::nullopt;
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
                     .pad_left = width.pad_begin};
}

std::optional<kernels::ConvWinogradPlanarArgs> PlanarArgs(const kernels::ConvGeneralArgs& args,
                                                          const Conv2dShape& shape) {
  if (args.epilogue.residual != nullptr) return std::nullopt;
  const WinogradTile tile = kernels::ChoosePlanarWinogradTile(shape);
  if (tile == WinogradTile::kNone) return std::nullopt;
  return kernels::ConvWinogradPlanarArgs{shape, tile,     args.in,      args.weights,
                                         false, args.out, args.epilogue};
}

}  // namespace

std::optional<ConvInSteps> ConvInSteps::OfConv(const kernels::ConvGeneralArgs& args) {
  const std::optional<Conv2dShape> shape = Shape2d(args.shape);
  if (!shape) return std::nullopt;
  ConvInSteps result;
  result.conv_ = PlanarArgs(args, *shape);
  if (!result.conv_) return std::nullopt;
  result.steps_ = kernels::ConvWinogradPlanarSteps(*shape, result.conv_->tile);
  return result;
}

std::optional<ConvInSteps> ConvInSteps::OfTranspose(const kernels::ConvGeneralArgs& args) {
  std::optional<Conv2dShape> shape = Shape2d(args.shape);
  if (!shape || shape->pad_top >= shape->kernel_height || shape->pad_left >= shape->kernel_width) {
    return std::nullopt;
  }
  // With a stride of 1, it is the convolution with the taps in reverse order.
  shape->pad_top = shape->kernel_height - 1 - shape->pad_top;
  shape->pad_left = shape->kernel_width - 1 - shape->pad_left;
  ConvInSteps result;
  result.conv_ = PlanarArgs(args, *shape);
  if (!result.conv_) return std::nullopt;
  result.conv_->of_transpose = true;
  result.steps_ = kernels::ConvWinogradPlanarSteps(*shape, result.conv_->tile);
  return result;
}

std::optional<ConvInSteps> ConvInSteps::OfWeightGradient(
    const kernels::ConvWeightGradientArgs& args) {
  const std::optional<Conv2dShape> shape = Shape2d(args.shape);
  if (!shape || !kernels::WinogradGradientWorthwhile(*shape)) return std::nullopt;
  ConvInSteps result;
  result.gradient_ = {*shape, args.in, args.dy, args.dw};
  result.steps_ = kernels::WinogradGradientSteps(*shape);
  return result;
}

size_t ConvInSteps::TaskCount(size_t step) const {
  return conv_ ? kernels::ConvWinogradPlanarTaskCount(*conv_, step)
               : kernels::WinogradGradientTaskCount(gradient_.shape, step);
}

size_t ConvInSteps::MostTasks() const {
  size_t most = 0;
  for (size_t step = 0; step < steps_.count; ++step) most = std::max(most, TaskCount(step));
  return most;
}

size_t ConvInSteps::ScratchBytes(const KernelContext& context) const {
  return steps_.shared_bytes + context.TaskScratchBytes(MostTasks(), steps_.scratch_bytes);
}

void ConvInSteps::Run(KernelContext& context, std::byte* memory) const {
  auto* const shared = reinterpret_cast<float*>(memory);
  for (size_t step = 0; step < steps_.count; ++step) {
    context.ForEachTaskIn(memory + steps_.shared_bytes, TaskCount(step), steps_.scratch_bytes,
                          [&](size_t task, std::byte* bytes) {
                            auto* const scratch = reinterpret_cast<float*>(bytes);
                            if (conv_) {
                              RunConvWinogradPlanarTask(*conv_, step, task, shared, scratch);
                            } else {
                              RunWinogradGradientTask(gradient_, step, task, shared, scratch);
                            }
                          });
  }
}

}  // namespace tenon
