// GridSample: a tensor sampled at given positions.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/arithmetic.h"
#include "kernels/resize.h"
#include "ops/framework/element.h"
#include "ops/framework/op_row.h"
#include "ops/framework/sample_taps.h"

namespace tenon {
namespace {

// GridSample-20; GridSample-16 calls its modes bilinear and bicubic.
struct GridSampleAttrs {
  bool align_corners = false;
  std::string mode = "linear";
  std::string padding_mode = "zeros";
  static constexpr auto Fields() {
    return std::tuple(Field("align_corners", &GridSampleAttrs::align_corners),
                      Field("mode", &GridSampleAttrs::mode),
                      Field("padding_mode", &GridSampleAttrs::padding_mode));
  }
};

enum class SampleMode : uint8_t { kNearest, kLinear, kCubic };
enum class Padding : uint8_t { kZeros, kBorder, kReflection };

struct SampleOptions {
  SampleMode mode;
  Padding padding;
  bool align_corners;
};

Result<SampleOptions> OptionsOf(const GridSampleAttrs& attrs) {
  SampleOptions options{SampleMode::kNearest, Padding::kZeros, attrs.align_corners};
  if (attrs.mode == "linear" || attrs.mode == "bilinear") {
    options.mode = SampleMode::kLinear;
  } else if (attrs.mode == "cubic" || attrs.mode == "bicubic") {
    options.mode = SampleMode::kCubic;
  } else if (attrs.mode != "nearest") {
    return InvalidArgument("attribute 'mode': expected nearest, linear or cubic, got '{}'",
                           attrs.mode);
  }
  if (attrs.padding_mode == "border") {
    options.padding = Padding::kBorder;
  } else if (attrs.padding_mode == "reflection") {
    options.padding = Padding::kReflection;
  } else if (attrs.padding_mode != "zeros") {
    return InvalidArgument(
        "attribute 'padding_mode': expected zeros, border or reflection, got '{}'",
        attrs.padding_mode);
  }
  return options;
}

Status InferGridSample(const GridSampleAttrs& attrs, ShapeContext& context) {
  TENON_RETURN_IF_ERROR(OptionsOf(attrs));
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape grid, context.Input(1));
  if (y.rank() < 3) return InvalidArgument("input 0: expected [N, C, spatial...], got {}", y);
  const size_t spatial = y.rank() - 2;
  const auto differ = [](const Dim& a, const Dim& b) {
    return a.is_number() && b.is_number() && a.value() != b.value();
  };
  if (grid.rank() != y.rank() || differ(grid[0], y[0]) ||
      differ(grid[spatial + 1], Dim(static_cast<int64_t>(spatial)))) {
    return InvalidArgument("input 1: expected positions [{}, spatial..., {}] in input 0 {}, got {}",
                           y[0], spatial, y, grid);
  }
  for (size_t i = 0; i < spatial; ++i) y[i + 2] = grid[i + 1];
  // The schema of com.microsoft does not relate them.
  return context.SetOutput(0, std::move(y), context.ElementType(0));
}

// One spatial axis. T, float or double, is what positions and samples are computed in.
template <class T>
class SampledAxis {
 public:
  SampledAxis() = default;
  SampledAxis(int64_t dim, const SampleOptions& options)
      : dim_(dim),
        options_(options),
        least_(options.align_corners ? T(0) : T(-0.5)),
        most_(static_cast<T>(dim) - (options.align_corners ? T(1) : T(0.5))) {}

  // `normalized` is -1 and 1 at the ends of the axis.
  AxisTaps<T> Taps(T normalized) const {
    T x = Position(normalized);
    if (options_.mode == SampleMode::kNearest) x = std::nearbyint(x);
    // At a border, the taps of cubic interpolation are moved inside one by one, as in PyTorch.
    const bool moves_taps =
        options_.mode == SampleMode::kCubic && options_.padding == Padding::kBorder;
    if (!(x >= least_ && x <= most_) && !moves_taps) x = Pad(x);
    if (options_.mode == SampleMode::kNearest) return {1, {Element(x)}, {1}};
    const T floor = std::floor(x);
    const T ratio = x - floor;
    if (options_.mode == SampleMode::kLinear) {
      return {2, {Element(floor), Element(floor + 1)}, {1 - ratio, ratio}};
    }
    return {4,
            {Element(floor - 1), Element(floor), Element(floor + 1), Element(floor + 2)},
            {Far(1 + ratio), Near(ratio), Near(1 - ratio), Far(2 - ratio)}};
  }

  T Position(T normalized) const {
    const T dim = static_cast<T>(dim_);
    if (options_.align_corners) return (normalized + 1) / 2 * (dim - 1);
    return ((normalized + 1) * dim - 1) / 2;
  }

 private:
  static constexpr T kA = T(-0.75);  // the coefficient of cubic interpolation
  static T Near(T x) { return ((kA + 2) * x - (kA + 3)) * x * x + 1; }
  static T Far(T x) { return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA; }

  // A position outside the axis, moved inside by the padding mode.
  T Pad(T x) const {
    if (options_.padding == Padding::kBorder) {
      return std::isnan(x) ? T(0) : std::clamp<T>(x, 0, static_cast<T>(dim_ - 1));
    }
    return options_.padding == Padding::kReflection ? Reflect(x) : x;
  }

  T Reflect(T x) const {
    const T range = most_ - least_;
    if (!(range > 0) || !std::isfinite(x)) return least_;
    const T beyond = std::fmod(x < least_ ? least_ - x : x - least_, 2 * range);
    return beyond < range ? least_ + beyond : most_ - (beyond - range);
  }

  // The element at a whole position, or -1 for a padding of 0.
  int64_t Element(T x) const {
    if (x >= 0 && x < static_cast<T>(dim_)) return static_cast<int64_t>(x);
    if (options_.padding == Padding::kZeros) return -1;
    const T inside = options_.padding == Padding::kBorder ? x : std::trunc(Reflect(x));
    if (!(inside > 0)) return 0;
    return inside < static_cast<T>(dim_) ? static_cast<int64_t>(inside) : dim_ - 1;
  }

  int64_t dim_ = 1;
  SampleOptions options_{};
  T least_ = 0, most_ = 0;
};

// The division of the work: a task computes some neighbouring positions of one image in some
// channels, which share the positions' taps.
struct SampleSizes {
  size_t rank, images, channels;
  size_t in, out;  // elements of a map
  size_t taps, block, channel_block;

  size_t blocks() const { return CeilDiv(out, block); }
  size_t channel_blocks() const { return CeilDiv(channels, channel_block); }
  size_t tasks() const { return images * channel_blocks() * blocks(); }
};

Result<SampleSizes> SizesOf(const Shape& x, const Shape& y, SampleMode mode) {
  constexpr size_t kMostTaps = 4096;  // of all positions of a task: they fit in the L1 cache
  constexpr size_t kChannels = 64;
  SampleSizes sizes;
  sizes.rank = x.rank() - 2;
  if (sizes.rank > kMaxSampledRank) {
    return NotImplemented("{} spatial axes; at most {} are served", sizes.rank, kMaxSampledRank);
  }
  sizes.images = static_cast<size_t>(x[0]);
  sizes.channels = static_cast<size_t>(x[1]);
  sizes.in = static_cast<size_t>(x.Product(2, x.rank()));
  sizes.out = static_cast<size_t>(y.Product(2, y.rank()));
  if (sizes.in > INT32_MAX) return NotImplemented("maps of {} elements", sizes.in);
  const size_t per_axis = mode == SampleMode::kNearest ? 1 : mode == SampleMode::kLinear ? 2 : 4;
  sizes.taps = 1;
  for (size_t i = 0; i < sizes.rank; ++i) sizes.taps *= per_axis;
  sizes.block = std::max<size_t>(16, kMostTaps / sizes.taps);
  sizes.channel_block = kChannels;
  return sizes;
}

// Positions as T, whatever the type of the grid.
template <class T>
class Grid {
 public:
  Grid(const Tensor& grid, const Tensor& x, const SampleOptions& options)
      : grid_(grid),
        rank_(x.rank() - 2),
        dims_(x.shape().dims().subspan(2)),
        is_bilinear_(rank_ == 2 && options.mode == SampleMode::kLinear &&
                     options.padding == Padding::kZeros) {
    for (size_t i = 0; i < rank_; ++i) axes_[i] = SampledAxis<T>(dims_[i], options);
  }

  // The taps of positions [begin, begin + count), counted through all images.
  void FindTaps(size_t begin, size_t count, int32_t* indices, T* weights) const {
    VisitNumber(grid_.type(), [&]<class G>(G) {
      const G* positions = grid_.data<G>() + begin * rank_;
      if constexpr (std::is_same_v<G, T>) {
        if (is_bilinear_) return FindSquares(positions, count, indices, weights);
      }
      for (size_t i = 0; i < count; ++i, positions += rank_) {
        std::array<AxisTaps<T>, kMaxSampledRank> taps;
        // The last axis comes first.
        for (size_t axis = 0; axis < rank_; ++axis) {
          taps[axis] = axes_[axis].Taps(static_cast<T>(Widen(positions[rank_ - 1 - axis])));
        }
        CombineTaps<T>({taps.data(), rank_}, dims_, count, indices + i, weights + i);
      }
    });
  }

 private:
  // `x` as an element's number if it is in [-1, dim]; otherwise, and for NaN, one of these limits.
  static uint32_t Number(T x, T dim) {
    x = x > -1 ? x : T(-1);
    return static_cast<uint32_t>(static_cast<int32_t>(x < dim ? x : dim));
  }

  // The four taps of each position where is_bilinear_, in a loop for vectors.
  void FindSquares(const T* positions, size_t count, int32_t* indices, T* weights) const {
    const SampledAxis<T> rows = axes_[0], columns = axes_[1];
    const T height = static_cast<T>(dims_[0]), width = static_cast<T>(dims_[1]);
    const auto row_size = static_cast<uint32_t>(dims_[1]);
    for (size_t i = 0; i < count; ++i) {
      const T x = columns.Position(positions[2 * i]), y = rows.Position(positions[2 * i + 1]);
      const T left = std::floor(x), top = std::floor(y);
      const T of_right = x - left, of_bottom = y - top;
      const bool has_left = (left >= 0) & (left < width), has_top = (top >= 0) & (top < height);
      const bool has_right = (left >= -1) & (left < width - 1);
      const bool has_bottom = (top >= -1) & (top < height - 1);
      const uint32_t at = Number(top, height) * row_size + Number(left, width);
      const auto set = [&](size_t tap, bool is_inside, uint32_t index, T weight) {
        indices[tap * count + i] = is_inside ? static_cast<int32_t>(index) : -1;
        weights[tap * count + i] = weight;
      };
      set(0, has_top & has_left, at, (1 - of_bottom) * (1 - of_right));
      set(1, has_top & has_right, at + 1, (1 - of_bottom) * of_right);
      set(2, has_bottom & has_left, at + row_size, of_bottom * (1 - of_right));
      set(3, has_bottom & has_right, at + row_size + 1, of_bottom * of_right);
    }
  }

  const Tensor& grid_;
  size_t rank_;
  std::span<const int64_t> dims_;
  bool is_bilinear_;  // over two axes, with zeros around
  std::array<SampledAxis<T>, kMaxSampledRank> axes_;
};

// Calls sample(taps, offset of the map, offset of the result) for every map and part of its result.
template <class T, class Sample>
Status SampleMaps(const SampleSizes& sizes, const Grid<T>& grid, KernelContext& context,
                  std::byte* memory, Sample&& sample) {
  const size_t entries = sizes.taps * sizes.block;
  context.ForEachTaskIn(
      memory, sizes.tasks(), entries * (sizeof(T) + sizeof(int32_t)),
      [&](size_t task, std::byte* scratch) {
        const size_t begin = task % sizes.blocks() * sizes.block;
        const size_t count = std::min(sizes.block, sizes.out - begin);
        const size_t first = task / sizes.blocks() % sizes.channel_blocks() * sizes.channel_block;
        const size_t last = std::min(sizes.channels, first + sizes.channel_block);
        const size_t image = task / sizes.blocks() / sizes.channel_blocks();
        T* const weights = reinterpret_cast<T*>(scratch);
        auto* const indices = reinterpret_cast<int32_t*>(weights + entries);
        grid.FindTaps(image * sizes.out + begin, count, indices, weights);
        const kernels::ResizeTaps<T> taps = {sizes.in, count, sizes.taps, indices, weights};
        for (size_t c = first; c < last; ++c) {
          const size_t map = image * sizes.channels + c;
          sample(taps, map * sizes.in, map * sizes.out + begin);
        }
      });
  return OkStatus();
}

template <class T>
size_t TaskBytes(const SampleSizes& sizes, const KernelContext& context) {
  return context.TaskScratchBytes(sizes.tasks(),
                                  sizes.taps * sizes.block * (sizeof(T) + sizeof(int32_t)));
}

// The nearest elements, of any type; positions are computed in P.
template <class P>
Status PickElements(const SampleSizes& sizes, const SampleOptions& options,
                    KernelContext& context) {
  const Tensor& x = context.Input(0);
  auto* memory = static_cast<std::byte*>(context.Scratch(TaskBytes<P>(sizes, context)));
  if (memory == nullptr) return RuntimeException("out of memory for {} positions", sizes.block);
  const Grid<P> grid(context.Input(1), x, options);
  return VisitElement(x.type(), [&]<class T>(const T& zero) {
    const T* from = x.data<T>();
    T* to = context.Output(0).data<T>();
    return SampleMaps(sizes, grid, context, memory,
                      [&](const kernels::ResizeTaps<P>& taps, size_t map, size_t result) {
                        for (size_t i = 0; i < taps.out; ++i) {
                          const int32_t index = taps.indices[i];
                          to[result + i] =
                              index < 0 ? zero : from[map + static_cast<size_t>(index)];
                        }
                      });
  });
}

// Truncated towards zero and clipped to the range of T.
template <class T, class A>
T FromArithmetic(A value) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    if (!(value > static_cast<A>(std::numeric_limits<T>::min()))) {
      return std::numeric_limits<T>::min();
    }
    if (value >= static_cast<A>(std::numeric_limits<T>::max())) {
      return std::numeric_limits<T>::max();
    }
  }
  return static_cast<T>(value);
}

// Elements of T, computed in A. A complex number is `parts` = 2 elements, which are treated as two
// maps in between.
template <class T, class A>
Status Interpolate(const SampleSizes& sizes, const SampleOptions& options, size_t parts,
                   KernelContext& context) {
  const Tensor& x = context.Input(0);
  const T* from = static_cast<const T*>(x.raw());
  T* to = static_cast<T*>(context.Output(0).raw());
  const bool converts = !std::is_same_v<T, A> || parts > 1;
  const size_t maps = sizes.images * sizes.channels;
  const size_t copy_bytes =
      converts
          ? RoundUp<size_t>((maps * sizes.in * parts + sizes.block * sizes.tasks()) * sizeof(A), 64)
          : 0;
  auto* memory =
      static_cast<std::byte*>(context.Scratch(copy_bytes + TaskBytes<A>(sizes, context)));
  if (memory == nullptr) return RuntimeException("out of memory for {} maps", maps);
  const Grid<A> grid(context.Input(1), x, options);
  if constexpr (std::is_same_v<T, A>) {
    if (!converts) {
      return SampleMaps(sizes, grid, context, memory,
                        [&](const kernels::ResizeTaps<A>& taps, size_t map, size_t result) {
                          kernels::SampleElements(taps, from + map, to + result);
                        });
    }
  }
  // The parts of the maps as A, one map after the other, and room for the samples of each task.
  A* const copies = reinterpret_cast<A*>(memory);
  context.threads().ParallelFor(
      maps * sizes.in, CopyGrain(sizeof(A)), [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) {
          for (size_t part = 0; part < parts; ++part) {
            copies[part * maps * sizes.in + i] = static_cast<A>(Widen(from[i * parts + part]));
          }
        }
      });
  A* const rooms = copies + maps * sizes.in * parts;
  return SampleMaps(sizes, grid, context, memory + copy_bytes,
                    [&](const kernels::ResizeTaps<A>& taps, size_t map, size_t result) {
                      const size_t image = map / sizes.in / sizes.channels;
                      const size_t channel = map / sizes.in % sizes.channels;
                      const size_t task =
                          (image * sizes.channel_blocks() + channel / sizes.channel_block) *
                              sizes.blocks() +
                          result % sizes.out / sizes.block;
                      A* const room = rooms + task * sizes.block;
                      for (size_t part = 0; part < parts; ++part) {
                        kernels::SampleElements(taps, copies + part * maps * sizes.in + map, room);
                        for (size_t i = 0; i < taps.out; ++i) {
                          to[(result + i) * parts + part] = FromArithmetic<T>(room[i]);
                        }
                      }
                    });
}

Status InterpolateElements(const SampleSizes& sizes, const SampleOptions& options, bool in_double,
                           KernelContext& context) {
  switch (context.Input(0).type()) {
    case DataType::kString:
      return InvalidArgument("expected mode nearest for strings, got an interpolation");
    case DataType::kComplex64:
      return Interpolate<float, float>(sizes, options, 2, context);
    case DataType::kComplex128:
      return Interpolate<double, double>(sizes, options, 2, context);
    case DataType::kFloat:
      return in_double ? Interpolate<float, double>(sizes, options, 1, context)
                       : Interpolate<float, float>(sizes, options, 1, context);
    default:
      return VisitNumber(context.Input(0).type(), [&]<class T>(T) {
        // A float represents every 16-bit integer.
        using A = std::conditional_t<sizeof(T) <= 2, float, double>;
        return Interpolate<T, A>(sizes, options, 1, context);
      });
  }
}

Status RunGridSample(const GridSampleAttrs& attrs, KernelContext& context) {
  TENON_ASSIGN_OR_RETURN(const SampleOptions options, OptionsOf(attrs));
  const Tensor& x = context.Input(0);
  if (context.Output(0).size() == 0) return OkStatus();
  if (x.size() == 0) {
    return InvalidArgument("input 0: expected maps with elements, got {}", x.shape());
  }
  TENON_ASSIGN_OR_RETURN(const SampleSizes sizes,
                         SizesOf(x.shape(), context.Output(0).shape(), options.mode));
  const bool in_double = context.Input(1).type() == DataType::kDouble;
  if (options.mode == SampleMode::kNearest) {
    return in_double ? PickElements<double>(sizes, options, context)
                     : PickElements<float>(sizes, options, context);
  }
  return InterpolateElements(sizes, options, in_double, context);
}

constexpr OpRow kRows[] = {
    Op<InferGridSample, RunGridSample>("GridSample", {.since = 16, .types = kWholeByteTypes}),
    Op<InferGridSample, RunGridSample>(
        "GridSample",
        // There the grid has the type of the maps.
        {.domain = "com.microsoft", .types = kNumbers | TypeSet{DataType::kBool}}),
};

}  // namespace

TENON_OP_FAMILY(GridSample, kRows);

}  // namespace tenon
