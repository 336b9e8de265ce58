// GroupNorm and SkipGroupNorm of com.microsoft: normalization of groups of channels, also of
// channels-last images (NHWC), with an activation.
#include <algorithm>
#include <cmath>

#include "ops/framework/expected_shape.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

enum Input : size_t { kX, kGamma, kBeta, kSkip, kBias };
enum Output : size_t { kY, kSum };

struct GroupNormAttrs {
  int64_t groups = 1;
  int64_t activation = 0;  // 0: none, 1: SiLU
  bool channels_last = true;
  float epsilon = 1e-5f;
  static constexpr auto Fields() {
    using A = GroupNormAttrs;
    return std::tuple(Field("groups", &A::groups), Field("activation", &A::activation),
                      Field("channels_last", &A::channels_last), Field("epsilon", &A::epsilon));
  }
};

Status CheckChannels(const ShapeContext& context, size_t i, const Dim& channels) {
  if (!context.HasInput(i)) return OkStatus();
  const Result<SymbolicShape> shape = context.InputOfRank(i, 1);
  if (!shape) return IsUnknownShape(shape.error()) ? OkStatus() : shape.error();
  if (MayEqual((*shape)[0], channels)) return OkStatus();
  return InvalidArgument("input {}: expected [{}], got {}", i, channels, *shape);
}

// The input's shape, or one value for each channel of an image: [n, c] or that with axes of 1.
Status CheckSkip(const GroupNormAttrs& attrs, const SymbolicShape& x, const ShapeContext& context) {
  const Result<SymbolicShape> skip = context.Input(kSkip);
  if (!skip) return IsUnknownShape(skip.error()) ? OkStatus() : skip.error();
  const size_t channel = attrs.channels_last ? 3 : 1;
  bool is_same = skip->rank() == 4, is_per_channel = is_same;
  for (size_t axis = 0; axis < 4 && skip->rank() == 4; ++axis) {
    is_same = is_same && MayEqual((*skip)[axis], x[axis]);
    const Dim& wanted = axis == 0 || axis == channel ? x[axis] : Dim(1);
    is_per_channel = is_per_channel && MayEqual((*skip)[axis], wanted);
  }
  if (skip->rank() == 2) {
    is_per_channel = MayEqual((*skip)[0], x[0]) && MayEqual((*skip)[1], x[channel]);
  }
  if (is_same || is_per_channel) return OkStatus();
  return InvalidArgument("input 3: expected {} or one value for each channel, got {}", x, *skip);
}

template <bool has_skip>
Status InferGroupNorm(const GroupNormAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.InputOfRank(kX, 4));
  const Dim channels = x[attrs.channels_last ? 3 : 1];
  const bool divides =
      attrs.groups > 0 && (!channels.is_number() || channels.value() % attrs.groups == 0);
  if (!divides) {
    return InvalidArgument("expected groups that divide the {} channels, got {}", channels,
                           attrs.groups);
  }
  if (attrs.activation != 0 && attrs.activation != 1) {
    return InvalidArgument("expected activation 0 or 1, got {}", attrs.activation);
  }
  TENON_RETURN_IF_ERROR(CheckChannels(context, kGamma, channels));
  TENON_RETURN_IF_ERROR(CheckChannels(context, kBeta, channels));
  if (has_skip) {
    TENON_RETURN_IF_ERROR(CheckChannels(context, kBias, channels));
    TENON_RETURN_IF_ERROR(CheckSkip(attrs, x, context));
    TENON_RETURN_IF_ERROR(context.SetOutput(kSum, x));
  }
  return context.SetOutput(kY, std::move(x));
}

class GroupNormRun {
 public:
  GroupNormRun(const GroupNormAttrs& attrs, KernelContext& context)
      : attrs_(attrs), context_(context) {
    const Shape& s = context.Input(kX).shape();
    const auto dim = [&](size_t axis) { return static_cast<size_t>(s[axis]); };
    batch_ = dim(0);
    channels_ = dim(attrs.channels_last ? 3 : 1);
    pixels_ = attrs.channels_last ? dim(1) * dim(2) : dim(2) * dim(3);
    pixel_stride_ = attrs.channels_last ? channels_ : 1;
    channel_stride_ = attrs.channels_last ? 1 : pixels_;
  }

  void Run() {
    const auto groups = static_cast<size_t>(attrs_.groups);
    context_.threads().ParallelFor(batch_ * groups, 1, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) RunGroup(i / groups, i % groups);
    });
  }

 private:
  // Calls f(offset, channel) for each element of a group.
  template <class F>
  void ForEach(size_t image, size_t group, F&& f) const {
    const size_t count = channels_ / static_cast<size_t>(attrs_.groups);
    const size_t base = image * channels_ * pixels_;
    for (size_t p = 0; p < pixels_; ++p) {
      for (size_t c = group * count; c < (group + 1) * count; ++c) {
        f(base + p * pixel_stride_ + c * channel_stride_, c);
      }
    }
  }

  float Addend(size_t image, size_t offset, size_t channel) const {
    float addend = 0;
    if (context_.HasInput(kSkip)) {
      const Tensor& skip = context_.Input(kSkip);
      const bool is_same = skip.size() == context_.Input(kX).size();
      addend = skip.data<float>()[is_same ? offset : image * channels_ + channel];
    }
    if (context_.HasInput(kBias)) addend += context_.Input(kBias).data<float>()[channel];
    return addend;
  }

  void RunGroup(size_t image, size_t group) {
    const float* x = context_.Input(kX).data<float>();
    float* y = context_.Output(kY).data<float>();
    float* sums = context_.HasOutput(kSum) ? context_.Output(kSum).data<float>() : nullptr;
    double sum = 0;
    ForEach(image, group, [&](size_t at, size_t c) {
      y[at] = x[at] + Addend(image, at, c);
      if (sums) sums[at] = y[at];
      sum += y[at];
    });
    const auto count =
        static_cast<double>(channels_ / static_cast<size_t>(attrs_.groups) * pixels_);
    const double mean = sum / count;
    double squares = 0;
    ForEach(image, group, [&](size_t at, size_t) { squares += (y[at] - mean) * (y[at] - mean); });
    const double factor = 1 / std::sqrt(squares / count + attrs_.epsilon);
    const float* gamma = context_.Input(kGamma).data<float>();
    const float* beta = context_.Input(kBeta).data<float>();
    ForEach(image, group, [&](size_t at, size_t c) {
      const auto t = static_cast<float>((y[at] - mean) * factor) * gamma[c] + beta[c];
      y[at] = attrs_.activation == 1 ? t / (1 + std::exp(-t)) : t;
    });
  }

  const GroupNormAttrs& attrs_;
  KernelContext& context_;
  size_t batch_, channels_, pixels_, pixel_stride_, channel_stride_;
};

Status RunGroupNorm(const GroupNormAttrs& attrs, KernelContext& context) {
  if (context.Input(kX).size() > 0) GroupNormRun(attrs, context).Run();
  return OkStatus();
}

constexpr const char* kMicrosoft = "com.microsoft";

constexpr OpRow kRows[] = {
    Op<InferGroupNorm<false>, RunGroupNorm>("GroupNorm",
                                            {.domain = kMicrosoft, .types = kFloat32Only}),
    Op<InferGroupNorm<true>, RunGroupNorm>("SkipGroupNorm",
                                           {.domain = kMicrosoft, .types = kFloat32Only}),
};

}  // namespace

TENON_OP_FAMILY(GroupNorm, kRows);

}  // namespace tenon
