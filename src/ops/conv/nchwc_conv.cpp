// NchwcConv: Conv and FusedConv in the blocked layout.
#include "ops/conv/nchwc_conv.h"

#include "base/arithmetic.h"
#include "kernels/conv/conv_blocked.h"
#include "kernels/conv/conv_blocked_bf16.h"
#include "kernels/conv/conv_depthwise.h"
#include "kernels/conv/conv_grouped.h"
#include "kernels/conv/conv_stem.h"
#include "kernels/conv/conv_weights.h"
#include "kernels/conv/conv_winograd.h"
#include "ops/conv/nchwc.h"
#include "ops/framework/float_rows.h"
#include "ops/framework/fused_activation.h"
#include "ops/framework/lazy_weights.h"
#include "ops/framework/stateful_kernel.h"

namespace tenon {

using kernels::Conv2dShape;

std::optional<NchwcMethod> ChooseNchwcMethod(const Conv2dShape& shape, bool is_planar) {
  if (is_planar) {
    return shape.groups == 1 ? std::optional(NchwcMethod::kStem) : std::nullopt;
  }
  const bool depthwise =
      shape.groups > 1 && shape.groups == shape.in_channels && shape.groups == shape.out_channels;
  if (depthwise) return NchwcMethod::kDepthwise;
  if (kernels::ConvGroupedSupports(shape)) return NchwcMethod::kGrouped;
  if (kernels::ConvWinogradSupports(shape) && kernels::WinogradWorthwhile(shape)) {
    return NchwcMethod::kWinograd;
  }
  if (kernels::ConvBlockedSupports(shape)) return NchwcMethod::kDirect;
  return std::nullopt;
}

std::optional<Conv2dShape> TypicalConvShape(const ConvAttrs& attrs, const SymbolicShape& x,
                                            const Shape& w) {
  constexpr int64_t kTypicalBatch = 1, kTypicalSide = 56;
  if (x.rank() != 4 || w.rank() != 4 || !x[1].is_number()) return std::nullopt;
  const Shape in = {x[0].number().value_or(kTypicalBatch), x[1].value(),
                    x[2].number().value_or(kTypicalSide), x[3].number().value_or(kTypicalSide)};
  const bool fits = attrs.group >= 1 && w[0] % attrs.group == 0 && in[1] == w[1] * attrs.group;
  const Result<Window> window = MakeWindow(attrs, w.dims().subspan(2));
  if (!fits || !window) return std::nullopt;
  Shape out = {in[0], w[0]};
  for (size_t i = 0; i < 2; ++i) {
    const Result<Dim> steps = WindowSteps(*window, i, in[i + 2], false);
    if (!steps || !steps->is_number()) return std::nullopt;
    out.Append(steps->value());
  }
  Conv2dShape shape = WindowShape2d(*window, in, out);
  shape.groups = static_cast<size_t>(attrs.group);
  return shape;
}

namespace {

struct NchwcConvAttrs : ConvAttrs {
  std::vector<float> weights_scale;  // see ops/conv/weights_scale.h
  bool from_bfloat16 = false;        // see ops/framework/widen_narrow.h
  static constexpr auto Fields() {
    return std::tuple_cat(ConvAttrs::Fields(),
                          std::tuple(Field("weights_scale", &NchwcConvAttrs::weights_scale),
                                     Field("from_bfloat16", &NchwcConvAttrs::from_bfloat16)));
  }
};

// Input 0 as [N, C, H, W].
Result<SymbolicShape> NchwInput(const ConvAttrs& attrs, const ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  if (x.rank() == 4) return x;
  TENON_ASSIGN_OR_RETURN(const SymbolicShape w, context.InputOfRank(1, 4));
  return NchwShape(x, w[1] * Dim(attrs.group));
}

Status InferNchwcConv(const NchwcConvAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, NchwInput(attrs, context));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape y, ConvOutput(attrs, x, context));
  SymbolicShape blocked = BlockedShape(y);
  TENON_RETURN_IF_ERROR(CheckConvResidual(context, blocked));
  return context.SetOutput(0, std::move(blocked));
}

class NchwcConv final : public StatefulKernel<InferNchwcConv> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    TENON_ASSIGN_OR_RETURN(activation_,
                           FusedActivation(attrs_.activation, attrs_.activation_params));
    const Tensor* weights = info.StoredConstant(1);
    if (weights == nullptr || weights->rank() != 4) {
      return NotImplemented("weights that are no constant of four dimensions");
    }
    const std::optional<SymbolicShape>& x = info.InputType(0).shape;
    if (!x) return NotImplemented("input 0 of unknown rank");
    const bool is_planar = x->rank() == 4;
    const Dim channels = Dim(weights->shape()[1]) * Dim(attrs_.group);
    SymbolicShape nchw = *x;
    if (!is_planar) {
      TENON_ASSIGN_OR_RETURN(nchw, NchwShape(*x, channels));
    }
    const std::optional<Conv2dShape> shape = TypicalConvShape(attrs_, nchw, weights->shape());
    const auto method = shape ? ChooseNchwcMethod(*shape, is_planar) : std::nullopt;
    if (!method) {
      return NotImplemented("a convolution of {} with weights {} and group = {}", nchw,
                            weights->shape(), attrs_.group);
    }
    const size_t factors = attrs_.weights_scale.size();
    if (factors != 0 && factors != shape->out_channels) {
      return InvalidArgument("attribute 'weights_scale': expected {} factors, got {}",
                             shape->out_channels, factors);
    }
    method_ = *method;
    weights_shape_ = weights->shape();
    typical_shape_ = *shape;
    if (method_ == NchwcMethod::kWinograd) tile_ = kernels::ChooseWinogradTile(*shape);
    is_rounded_ = method_ == NchwcMethod::kDirect &&
                  (attrs_.from_bfloat16 || info.weights().precision == MatmulPrecision::kMedium) &&
                  kernels::ConvBlockedBf16Worthwhile(*shape);
    packed_.Keep(*weights, Form(), info.weights());
    info.ReleaseConstant(1);
    return OkStatus();
  }

  // The residual may become the output, and so may an image of which each pixel is read once, right
  // before its place is written.
  KernelTraits traits() const override {
    KernelTraits traits = StatefulKernel::traits();
    traits.in_place_input = 3;
    if (method_ == NchwcMethod::kDepthwise && IsPointwise()) traits.in_place_also = 0;
    return traits;
  }

  Status Run(KernelContext& context) const override {
    Tensor& y = context.Output(0);
    if (y.size() == 0) return OkStatus();
    TENON_ASSIGN_OR_RETURN(const Conv2dShape shape, ShapeOf(context.Input(0).shape(), y.shape()));
    const float* in = context.Input(0).data<float>();
    TENON_ASSIGN_OR_RETURN(const LazyWeights::Source source, Weights(shape, context.threads()));
    const float* const weights = source.weights;
    const bool is_packed = weights != nullptr;
    const auto pack_block = [&](size_t block, float* packed) {
      PackBlock(source.constant, block, packed);
    };
    const kernels::PackConvBlock pack = pack_block;
    float* out = y.data<float>();
    kernels::ConvEpilogue epilogue;
    if (context.HasInput(2)) epilogue.bias = context.Input(2).data<float>();
    if (context.HasInput(3)) epilogue.residual = context.Input(3).data<float>();
    epilogue.activation = activation_;
    using namespace kernels;  // NOLINT(google-build-using-namespace)
    switch (method_) {
      case NchwcMethod::kDirect: {
        const ConvBlockedArgs args = {shape, in, weights, out, epilogue, &pack};
        if (is_rounded_) return RunRounded(context, args);
        return context.ForEachTask(
            ConvBlockedTaskCount(shape, is_packed), ConvBlockedScratchSize(shape, is_packed),
            [&](size_t task, std::byte* scratch) { RunConvBlockedTask(args, task, scratch); });
      }
      case NchwcMethod::kWinograd: {
        const auto threads = static_cast<size_t>(context.threads().threads());
        const ConvWinogradArgs args = {shape, tile_, in, weights, out, epilogue, &pack, threads};
        return context.ForEachTask(
            ConvWinogradTaskCount(shape, tile_, is_packed, threads),
            ConvWinogradScratchSize(shape, tile_, is_packed, threads),
            [&](size_t task, std::byte* scratch) { RunConvWinogradTask(args, task, scratch); });
      }
      case NchwcMethod::kDepthwise: {
        const ConvDepthwiseArgs args = {shape, in, weights, out, epilogue};
        return context.ForEachTask(ConvDepthwiseTaskCount(shape), 0, [&](size_t task, std::byte*) {
          RunConvDepthwiseTask(args, task);
        });
      }
      case NchwcMethod::kGrouped: {
        const ConvGroupedArgs args = {shape, in, weights, out, epilogue};
        return context.ForEachTask(
            ConvGroupedTaskCount(shape), ConvGroupedScratchSize(shape),
            [&](size_t task, std::byte* scratch) { RunConvGroupedTask(args, task, scratch); });
      }
      case NchwcMethod::kStem:
        break;
    }
    const ConvStemArgs args = {shape, in, weights, out, epilogue};
    return context.ForEachTask(
        ConvStemTaskCount(shape), ConvStemScratchSize(shape),
        [&](size_t task, std::byte* scratch) { RunConvStemTask(args, task, scratch); });
  }

 private:
  // The direct method on numbers of bfloat16. args.in is not rounded yet.
  static Status RunRounded(KernelContext& context, kernels::ConvBlockedArgs args) {
    const Conv2dShape& shape = args.shape;
    const size_t tasks = kernels::ConvBlockedTaskCount(shape, args.weights != nullptr);
    const size_t scratch = kernels::ConvBlockedScratchSize(shape, args.weights != nullptr);
    const size_t rounded_bytes =
        RoundUp<size_t>(kernels::RoundedConvInputSize(shape) * sizeof(float), 64);
    auto* const memory = static_cast<std::byte*>(
        context.Scratch(rounded_bytes + context.TaskScratchBytes(tasks, scratch)));
    if (memory == nullptr) {
      return RuntimeException("out of memory for {} bytes of input 0", rounded_bytes);
    }
    auto* const rounded = reinterpret_cast<float*>(memory);
    context.ForEachTaskIn(nullptr, kernels::RoundConvInputTaskCount(shape), 0,
                          [&](size_t task, std::byte*) {
                            kernels::RunRoundConvInputTask(shape, args.in, task, rounded);
                          });
    kernels::ConvBlockedArgs product = args;
    product.in = rounded;
    context.ForEachTaskIn(memory + rounded_bytes, tasks, scratch,
                          [&](size_t task, std::byte* memory_of_task) {
                            kernels::RunConvBlockedBf16Task(product, task, memory_of_task);
                          });
    return OkStatus();
  }

  bool IsPointwise() const {
    const Conv2dShape& s = typical_shape_;
    return s.kernel_height == 1 && s.kernel_width == 1 && s.stride_height == 1 &&
           s.stride_width == 1 && s.in_height == s.out_height && s.in_width == s.out_width;
  }

  // The properties besides the weights that decide the packed form. The sizes of the typical image
  // are among the arguments of the kernels' packing functions.
  std::string Form() const {
    const Conv2dShape& s = typical_shape_;
    std::string form = Format(
        "convolution {} {} {} of {} {} {} {}, {} {}, strides {} {}, dilations {} {}, pads {} {}, "
        "{} groups, factors ",
        static_cast<int>(method_), static_cast<int>(tile_), is_rounded_, s.batch, s.in_height,
        s.in_width, s.out_channels, s.out_height, s.out_width, s.stride_height, s.stride_width,
        s.dilation_height, s.dilation_width, s.pad_top, s.pad_left, s.groups);
    const std::span<const float> factors = attrs_.weights_scale;
    form.append(reinterpret_cast<const char*>(factors.data()), factors.size_bytes());
    return form;
  }

  size_t PackedSize() const { return is_rounded_ ? ExactSize() / 2 : ExactSize(); }

  // Of the packed weights before they are rounded.
  size_t ExactSize() const {
    using namespace kernels;  // NOLINT(google-build-using-namespace)
    switch (method_) {
      case NchwcMethod::kWinograd:
        return PackedWinogradWeightsSize(typical_shape_, tile_);
      case NchwcMethod::kDepthwise:
        return PackedDepthwiseWeightsSize(typical_shape_);
      case NchwcMethod::kGrouped:
        return PackedGroupedWeightsSize(typical_shape_);
      case NchwcMethod::kStem:
        return PackedStemWeightsSize(typical_shape_);
      case NchwcMethod::kDirect:
        break;
    }
    return PackedConvWeightsSize(typical_shape_);
  }

  size_t BlockSize() const { return PackedSize() / Blocks(); }
  size_t Blocks() const { return kernels::ChannelBlocks(typical_shape_.out_channels); }

  // Whether a first run may pack the weights as it reads them: there are tasks for many threads
  // though each packs blocks of its own, they are short enough for a run that is to end early, and
  // their scratch memory is small. Small weights are not worth it.
  bool CanPackOnTheWay(const Conv2dShape& shape) const {
    constexpr size_t kEnoughTasks = 8, kEnoughFloats = (256 << 10) / sizeof(float);
    constexpr size_t kMostScratch = 4 << 20, kMostPixels = 4096;
    const size_t pixels = shape.batch * shape.out_height * shape.out_width;
    if (PackedSize() < kEnoughFloats || pixels > kMostPixels) return false;
    if (method_ == NchwcMethod::kDirect) {
      return kernels::ConvBlockedTaskCount(shape, false) >= kEnoughTasks &&
             kernels::ConvBlockedScratchSize(shape, false) <= kMostScratch;
    }
    return method_ == NchwcMethod::kWinograd &&
           kernels::ConvWinogradTaskCount(shape, tile_, false, kEnoughTasks) >= kEnoughTasks &&
           kernels::ConvWinogradScratchSize(shape, tile_, false, kEnoughTasks) <= kMostScratch;
  }

  void PackBlock(const Tensor& weights, size_t block, float* packed) const {
    if (is_rounded_) {
      std::vector<float> exact(ExactSize() / Blocks());
      PackExactBlock(weights, block, exact);
      return kernels::RoundConvWeights(exact.data(), exact.size(), packed);
    }
    PackExactBlock(weights, block, {packed, BlockSize()});
  }

  void PackExactBlock(const Tensor& weights, size_t block, std::span<float> packed) const {
    if (weights.type() == DataType::kFloat) {
      PackFloats(typical_shape_, weights.data<float>(), block, packed.data());
    } else {
      PackHalves(weights, block, packed.data());
    }
    ScaleBlock(block, packed);
  }

  // Packs the block as the first one of a convolution with its channels alone.
  void PackHalves(const Tensor& weights, size_t block, float* packed) const {
    const size_t first = block * kernels::kChannelBlock;
    const size_t channel = static_cast<size_t>(weights.size()) / typical_shape_.out_channels;
    Conv2dShape shape = typical_shape_;
    shape.out_channels = std::min(kernels::kChannelBlock, typical_shape_.out_channels - first);
    std::vector<float> floats(shape.out_channels * channel);
    CopyFloatRow(weights, first * channel, floats.size(), floats.data());
    PackFloats(shape, floats.data(), 0, packed);
  }

  void PackFloats(const Conv2dShape& shape, const float* weights, size_t block,
                  float* packed) const {
    using namespace kernels;  // NOLINT(google-build-using-namespace)
    switch (method_) {
      case NchwcMethod::kWinograd:
        return PackWinogradWeights(shape, tile_, weights, block, packed);
      case NchwcMethod::kDepthwise:
        return PackDepthwiseWeights(shape, weights, block, packed);
      case NchwcMethod::kGrouped:
        return PackGroupedWeights(shape, weights, block, packed);
      case NchwcMethod::kStem:
        return PackStemWeights(shape, weights, block, packed);
      case NchwcMethod::kDirect:
        break;
    }
    PackConvWeights(shape, weights, block, packed);
  }

  // Multiplies one packed block by the factors of its channels, which are the lanes of its vectors.
  // Winograd's transform is linear, so the factors may be applied after it as well as before.
  void ScaleBlock(size_t block, std::span<float> packed) const {
    const std::span<const float> factors = attrs_.weights_scale;
    if (factors.empty()) return;
    const size_t lanes = kernels::kChannelBlock / (method_ == NchwcMethod::kGrouped ? 2 : 1);
    const size_t part = packed.size() * lanes / kernels::kChannelBlock;
    for (size_t i = 0; i < packed.size(); i += part) {
      float row[kernels::kChannelBlock] = {};
      for (size_t lane = 0; lane < std::size(row); ++lane) {
        const size_t channel = block * kernels::kChannelBlock + i / part * lanes + lane % lanes;
        if (channel < factors.size()) row[lane] = factors[channel];
      }
      for (size_t j = i; j < i + part; j += std::size(row)) {
        for (size_t lane = 0; lane < std::size(row); ++lane) packed[j + lane] *= row[lane];
      }
    }
  }

  // For a run on images of `shape`.
  Result<LazyWeights::Source> Weights(const Conv2dShape& shape, ThreadPool& threads) const {
    // The weights in the method's form; they do not depend on the size of the image.
    const auto pack = [&](const Tensor& constant, float* packed, size_t first, size_t last) {
      threads.ParallelFor(last - first, 1, [&](size_t begin, size_t end) {
        for (size_t block = first + begin; block < first + end; ++block) {
          PackBlock(constant, block, packed + block * BlockSize());
        }
      });
    };
    const float* weights = packed_.ready();
    if (weights == nullptr && CanPackOnTheWay(shape)) {
      return packed_.GetOrRead(PackedSize(), Blocks(), pack, HugePages::kIfQuick);
    }
    const auto pack_all = [&](const Tensor& constant, float* packed) {
      pack(constant, packed, 0, Blocks());
    };
    TENON_ASSIGN_OR_RETURN(weights, packed_.Get(PackedSize(), pack_all, HugePages::kIfQuick));
    return LazyWeights::Source{weights, {}};
  }

  // The sizes of one run; `y` is blocked, `x` unless the method is kStem.
  Result<Conv2dShape> ShapeOf(const Shape& x, const Shape& y) const {
    const int64_t channels = weights_shape_[1] * attrs_.group;
    TENON_ASSIGN_OR_RETURN(const Window window,
                           MakeWindow(attrs_, weights_shape_.dims().subspan(2)));
    Conv2dShape shape = WindowShape2d(window, Shape({x[0], channels, x[2], x[3]}),
                                      Shape({y[0], weights_shape_[0], y[2], y[3]}));
    shape.groups = static_cast<size_t>(attrs_.group);
    if (method_ == NchwcMethod::kDirect && !kernels::ConvBlockedSupports(shape)) {
      return NotImplemented("rows of {} pixels", x[3]);
    }
    return shape;
  }

  kernels::ActivationSpec activation_;
  NchwcMethod method_ = NchwcMethod::kDirect;
  kernels::WinogradTile tile_ = kernels::WinogradTile::kNone;
  bool is_rounded_ = false;  // inputs and weights of the direct method, to bfloat16
  Shape weights_shape_;
  Conv2dShape typical_shape_;
  LazyWeights packed_;
};

constexpr OpRow kRows[] = {
    OpClass<NchwcConv>("NchwcConv",
                       {.domain = kNchwcDomain, .types = kFloat32Only, .half_constants = 1 << 1}),
};

}  // namespace

TENON_OP_FAMILY(NchwcConv, kRows);

}  // namespace tenon
