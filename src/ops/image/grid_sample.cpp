// GridSample: a tensor sampled at given positions.
#include <algorithm>
#include <limits>

#include "base/arithmetic.h"
#include "kernels/resize.h"
#include "ops/framework/op_row.h"
#include "ops/image/sampling_grid.h"

namespace tenon {
namespace {

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

// The division of the work: a task computes some neighbouring positions of one image in some
// channels, which share the positions' taps.
struct SampleSizes {
  size_t rank, images, channels;
  size_t in, out;  // elements of a map
  size_t taps, axis_taps, block, channel_block;

  // Of a task, with A's: the taps' weights and indices, and room to find them.
  template <class A>
  size_t task_bytes() const {
    return block * (taps * (sizeof(A) + sizeof(int32_t)) + 2 * axis_taps * sizeof(A));
  }
  size_t blocks() const { return CeilDiv(out, block); }
  size_t channel_blocks() const { return CeilDiv(channels, channel_block); }
  size_t tasks() const { return images * channel_blocks() * blocks(); }
};

Result<SampleSizes> SizesOf(const Shape& x, const Shape& y, const SampleOptions& options) {
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
  sizes.axis_taps = options.taps();
  sizes.taps = 1;
  for (size_t i = 0; i < sizes.rank; ++i) sizes.taps *= sizes.axis_taps;
  sizes.block = std::max<size_t>(16, kMostTaps / sizes.taps);
  sizes.channel_block = kChannels;
  return sizes;
}

// Calls sample(taps, offset of the map, offset of the result) for every map and part of its result.
template <class T, class Sample>
Status SampleMaps(const SampleSizes& sizes, const Grid<T>& grid, KernelContext& context,
                  std::byte* memory, Sample&& sample) {
  const size_t entries = sizes.taps * sizes.block;
  context.ForEachTaskIn(
      memory, sizes.tasks(), sizes.task_bytes<T>(), [&](size_t task, std::byte* scratch) {
        const size_t begin = task % sizes.blocks() * sizes.block;
        const size_t count = std::min(sizes.block, sizes.out - begin);
        const size_t first = task / sizes.blocks() % sizes.channel_blocks() * sizes.channel_block;
        const size_t last = std::min(sizes.channels, first + sizes.channel_block);
        const size_t image = task / sizes.blocks() / sizes.channel_blocks();
        T* const weights = reinterpret_cast<T*>(scratch);
        T* const work = weights + entries;
        auto* const indices = reinterpret_cast<int32_t*>(work + 2 * sizes.axis_taps * sizes.block);
        grid.FindTaps(image * sizes.out + begin, count, indices, weights, work);
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
  return context.TaskScratchBytes(sizes.tasks(), sizes.task_bytes<T>());
}

// An element is read for each index, without a branch: where positions lie outside is hard to
// predict.
template <class T>
void PickFrom(const int32_t* indices, size_t count, const T* x, T* to, const T& zero) {
  for (size_t i = 0; i < count; ++i) {
    const int32_t index = indices[i];
    const T* const element = x + std::max(index, 0);
    to[i] = *(index < 0 ? &zero : element);
  }
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
                        PickFrom(taps.indices, taps.out, from + map, to + result, zero);
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
                         SizesOf(x.shape(), context.Output(0).shape(), options));
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
