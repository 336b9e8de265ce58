// GridSampleGrad of com.microsoft: the gradients of the maps that GridSample reads, and of the
// positions.
#include <algorithm>

#include "base/arithmetic.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/op_row.h"
#include "ops/image/sampling_grid.h"

namespace tenon {
namespace {

enum Input : size_t { kDy, kX, kGrid };

[[gnu::cold]] Status InferGradient(const GridSampleAttrs& attrs, ShapeContext& context) {
  TENON_RETURN_IF_ERROR(OptionsOf(attrs));
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(kX));
  TENON_ASSIGN_OR_RETURN(SymbolicShape grid, context.Input(kGrid));
  if (x.rank() < 3 || x.rank() - 2 > kMaxSampledRank || grid.rank() != x.rank()) {
    return InvalidArgument("input 2: expected positions in maps {} of at most {} axes, got {}", x,
                           kMaxSampledRank, grid);
  }
  const size_t axes = x.rank() - 2;
  SymbolicShape expected = grid;
  expected[0] = x[0];
  expected[axes + 1] = Dim(static_cast<int64_t>(axes));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kGrid, expected));
  SymbolicShape y = x;
  for (size_t i = 0; i < axes; ++i) y[i + 2] = grid[i + 1];
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kDy, y));
  TENON_RETURN_IF_ERROR(context.SetOutput(0, std::move(x)));
  return context.SetOutput(1, std::move(grid));
}

class GridGradient {
 public:
  GridGradient(const SampleOptions& options, KernelContext& context)
      : context_(context),
        dims_(context.Input(kX).shape().dims().subspan(2)),
        grid_(context.Input(kGrid), context.Input(kX), options) {
    const Shape &x = context.Input(kX).shape(), &dy = context.Input(kDy).shape();
    images_ = static_cast<size_t>(x[0]);
    channels_ = static_cast<size_t>(x[1]);
    in_ = static_cast<size_t>(x.Product(2, x.rank()));
    out_ = static_cast<size_t>(dy.Product(2, dy.rank()));
    per_axis_ = options.taps();
    for (size_t i = 0; i < dims_.size(); ++i) taps_ *= per_axis_;
    constexpr size_t kMostTaps = 4096;  // of all positions of a block: they fit in the L1 cache
    block_ = std::max<size_t>(16, kMostTaps / taps_);
  }

  Status Run() const {
    if (in_ > INT32_MAX) return NotImplemented("maps of {} elements", in_);
    constexpr size_t kChannels = 8;  // which share the taps of their positions
    const size_t groups = CeilDiv(channels_, kChannels), blocks = CeilDiv(out_, block_);
    const size_t entries = taps_ * block_, room = 2 * per_axis_ * block_;
    if (context_.HasOutput(0) && in_ > 0) {
      const auto add = [&](size_t task, std::byte* memory) {
        const size_t first = task % groups * kChannels;
        AddToMaps(task / groups, first, std::min(channels_, first + kChannels),
                  reinterpret_cast<float*>(memory));
      };
      TENON_RETURN_IF_ERROR(
          context_.ForEachTask(images_ * groups, (2 * entries + room) * sizeof(float), add));
    }
    if (!context_.HasOutput(1)) return OkStatus();
    return context_.ForEachTask(images_ * blocks,
                                (3 * entries + dims_.size() * room) * sizeof(float),
                                [&](size_t task, std::byte* memory) {
                                  const size_t begin = task % blocks * block_;
                                  TakeSlopes(task / blocks, begin, std::min(block_, out_ - begin),
                                             reinterpret_cast<float*>(memory));
                                });
  }

 private:
  const float* Dy(size_t map) const { return context_.Input(kDy).data<float>() + map * out_; }

  // Adds dY, times the weights, to the elements that maps [first, last) of an image were sampled
  // from.
  void AddToMaps(size_t image, size_t first, size_t last, float* weights) const {
    auto* const indices = reinterpret_cast<int32_t*>(weights + taps_ * block_);
    float* const dx = context_.Output(0).data<float>() + image * channels_ * in_;
    std::fill(dx + first * in_, dx + last * in_, 0.0f);
    for (size_t begin = 0; begin < out_; begin += block_) {
      const size_t count = std::min(block_, out_ - begin);
      float* const work = weights + 2 * taps_ * block_;
      grid_.FindTaps(image * out_ + begin, count, indices, weights, work);
      for (size_t c = first; c < last; ++c) {
        const float* const dy = Dy(image * channels_ + c) + begin;
        float* const to = dx + c * in_;
        for (size_t t = 0; t < taps_; ++t) {
          for (size_t i = 0; i < count; ++i) work[i] = weights[t * count + i] * dy[i];
          for (size_t i = 0; i < count; ++i) {
            const int32_t index = indices[t * count + i];
            if (index >= 0) to[index] += work[i];
          }
        }
      }
    }
  }

  // The gradients of `count` positions: what each tap's weight is multiplied by, summed over the
  // channels, times the derivatives of the weight.
  void TakeSlopes(size_t image, size_t begin, size_t count, float* sums) const {
    float* const weights = sums + taps_ * block_;
    auto* const indices = reinterpret_cast<int32_t*>(weights + taps_ * block_);
    float* const work = weights + 2 * taps_ * block_;
    grid_.FindTaps(image * out_ + begin, count, indices, weights, work);
    std::fill_n(sums, taps_ * count, 0.0f);
    for (size_t c = 0; c < channels_; ++c) {
      const size_t map = image * channels_ + c;
      const float* const x = context_.Input(kX).data<float>() + map * in_;
      const float* const dy = Dy(map) + begin;
      kernels::AddSampled(taps_, indices, x, dy, sums, count);
    }
    const size_t at = (image * out_ + begin) * dims_.size();
    TakeWeights(image * out_ + begin, count, indices, work);
    for (size_t axis = 0; axis < dims_.size(); ++axis) {
      PutSlopes(axis, count, sums, work, weights, context_.Output(1).data<float>() + at);
    }
  }

  // The weights of the taps along one axis, and their derivatives, each for all positions.
  float* WeightsOf(size_t axis, size_t count, float* all) const {
    return all + 2 * axis * per_axis_ * count;
  }
  float* SlopesOf(size_t axis, size_t count, float* all) const {
    return WeightsOf(axis, count, all) + per_axis_ * count;
  }

  void TakeWeights(size_t begin, size_t count, int32_t* indices, float* all) const {
    for (size_t axis = 0; axis < dims_.size(); ++axis) {
      float* const weights = WeightsOf(axis, count, all);
      float* const slopes = SlopesOf(axis, count, all);
      grid_.CopyPositions(axis, begin, count, weights);
      if (grid_.IsServed()) {
        kernels::FindAxisTaps(grid_.Axis(axis), count, indices, weights, slopes);
        continue;
      }
      const SampledAxis<float> own = grid_.axis(axis);
      for (size_t i = 0; i < count; ++i) {
        const float position = weights[i];
        const AxisTaps<float> taps = own.Taps(position);
        const std::array<float, 4> derivatives = own.Slopes(position);
        for (size_t k = 0; k < per_axis_; ++k) {
          weights[k * count + i] = taps.weights[k];
          slopes[k * count + i] = derivatives[k];
        }
      }
    }
  }

  // Contracts the sums, of which tap t's are sums[t * count], the last axis fastest, with the
  // weights of the taps of each axis; with their derivatives for `axis`. `work` has room for them.
  void PutSlopes(size_t axis, size_t count, const float* sums, float* all, float* work,
                 float* slopes) const {
    const size_t rank = dims_.size();
    const float* from = sums;
    size_t rows = taps_;
    for (size_t other = rank; other-- > 0; from = work) {
      rows /= per_axis_;
      const float* const factors =
          other == axis ? SlopesOf(other, count, all) : WeightsOf(other, count, all);
      for (size_t row = 0; row < rows; ++row) {
        // In place: later rows are read later.
        const float* const terms = from + row * per_axis_ * count;
        float* const to = work + row * count;
        kernels::ContractTaps(per_axis_, terms, factors, to, count);
      }
    }
    for (size_t i = 0; i < count; ++i) slopes[i * rank + rank - 1 - axis] = work[i];
  }

  KernelContext& context_;
  const std::span<const int64_t> dims_;
  const Grid<float> grid_;
  size_t images_ = 0, channels_ = 0;
  size_t in_ = 0, out_ = 0;  // elements of a map
  size_t per_axis_ = 1, taps_ = 1, block_ = 1;
};

Status RunGradient(const GridSampleAttrs& attrs, KernelContext& context) {
  TENON_ASSIGN_OR_RETURN(const SampleOptions options, OptionsOf(attrs));
  return GridGradient(options, context).Run();
}

constexpr OpRow kRows[] = {
    Op<InferGradient, RunGradient>("GridSampleGrad",
                                   {.domain = "com.microsoft", .types = kFloat32Only}),
};

}  // namespace

TENON_OP_FAMILY(GridSampleGradient, kRows);

}  // namespace tenon
