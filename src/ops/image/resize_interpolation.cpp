// Resize by linear and cubic interpolation, one axis after the other.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/arithmetic.h"
#include "kernels/elementwise/quantize.h"
#include "kernels/resize.h"
#include "ops/framework/element.h"
#include "ops/framework/float_rows.h"
#include "ops/image/resize.h"

namespace tenon {
namespace {

constexpr size_t kAlignment = 64;

// Divides one piece of memory. Without memory, it computes the size that is needed.
class Carver {
 public:
  explicit Carver(std::byte* memory) : memory_(memory) {}
  template <class T>
  T* Take(size_t count) {
    std::byte* const part = memory_ ? memory_ + used_ : nullptr;
    used_ += RoundUp(count * sizeof(T), kAlignment);
    return reinterpret_cast<T*>(part);
  }
  size_t used() const { return used_; }

 private:
  std::byte* memory_;
  size_t used_ = 0;
};

// The resampling of [outer, in, inner] to [outer, out, inner]. T is float or double. If `inner` is
// too small for a call, its elements are treated as elements of the axis: `spread` of each.
template <class T>
struct Pass {
  size_t axis = 0;
  size_t outer = 1, inner = 1, spread = 1;
  kernels::ResizeTaps<T> taps;
  const uint8_t* outside = nullptr;  // of each element of the axis; null if none is extrapolated
  size_t output_size() const { return outer * taps.out * inner; }
};

// A row of the last axis, extrapolation included.
template <class T>
void RunRow(const Pass<T>& pass, T extrapolation_value, const T* x, T* y) {
  kernels::ResizeRow(pass.taps, x, y);
  if (pass.outside == nullptr) return;
  for (size_t o = 0; o < pass.taps.out; ++o) {
    if (pass.outside[o]) y[o] = extrapolation_value;
  }
}

// Row `o` of an axis that is not the last; rows[k] is that of tap k.
template <class T>
void RunBlend(const Pass<T>& pass, T extrapolation_value, size_t o, const T* const* rows, T* y,
              size_t n) {
  if (pass.outside && pass.outside[o]) {
    std::fill_n(y, n, extrapolation_value);
  } else {
    kernels::BlendRows(rows, pass.taps.weights + o, pass.taps.out, pass.taps.count, y, n);
  }
}

// The passes over a tensor, and their memory. The last two are done together if they are over the
// last two axes, so that a row in between stays in the cache.
template <class T>
class Interpolation {
 public:
  // `trailing` elements are moved together: 2 for complex numbers.
  Interpolation(const ResizePlan& plan, size_t trailing) : plan_(plan), trailing_(trailing) {
    // Axes that become shorter come first: no intermediate result is then larger than both the
    // input and the output.
    for (const bool shrinks : {true, false}) {
      for (size_t i = 0; i < plan.rank; ++i) {
        const ResizeAxis& axis = plan.axes[i];
        if (!axis.is_identity() && (axis.out < axis.in) == shrinks) passes_[count_++].axis = i;
      }
    }
    SetSizes();
    steps_ = count_;
    if (count_ < 2) return;
    const Pass<T>&down = passes_[count_ - 2], &along = passes_[count_ - 1];
    const bool joins = down.axis < along.axis && along.inner == 1 && down.inner == along.taps.in;
    if (joins) --steps_;
  }

  // Allocates memory for the taps and for intermediate results.
  void Carve(Carver& carver) {
    for (size_t p = 0; p < count_; ++p) {
      Pass<T>& pass = passes_[p];
      const size_t entries = pass.taps.count * pass.taps.out;
      indices_[p] = carver.Take<int32_t>(entries);
      weights_[p] = carver.Take<T>(entries);
      outside_[p] = carver.Take<uint8_t>(pass.taps.out);
    }
    size_t most = 0;
    for (size_t p = 0; p + 1 < steps_; ++p) most = std::max(most, passes_[p].output_size());
    for (size_t i = 0; i < 2 && i + 1 < steps_; ++i) between_[i] = carver.Take<T>(most);
  }

  bool is_copy() const { return count_ == 0; }

  // Bytes that a task of any step needs, and the most tasks of a step.
  size_t task_bytes() const {
    size_t bytes = 0;
    for (size_t p = 0; p < count_; ++p) {
      bytes = std::max(bytes, TaskBytes(passes_[p], passes_[count_ - 1].taps.out));
    }
    return bytes;
  }
  size_t most_tasks() const {
    size_t most = 1;
    for (size_t s = 0; s < steps_; ++s) most = std::max(most, TasksOf(s));
    return most;
  }

  void Run(const T* x, T* y, std::byte* task_memory, KernelContext& context) {
    for (size_t p = 0; p < count_; ++p) MakePass(p);
    for (size_t s = 0; s < steps_; ++s) {
      T* const into = s + 1 == steps_ ? y : between_[s % 2];
      context.ForEachTaskIn(
          task_memory, TasksOf(s), task_bytes(),
          [&](size_t task, std::byte* scratch) { RunTask(s, task, x, into, scratch); });
      x = into;
    }
  }

 private:
  // Elements of the output that make a task of reasonable size.
  static constexpr size_t kTaskSize = 16384;

  void SetSizes() {
    std::array<size_t, kMaxResizeRank> dims{};
    for (size_t i = 0; i < plan_.rank; ++i) dims[i] = static_cast<size_t>(plan_.axes[i].in);
    for (size_t p = 0; p < count_; ++p) {
      Pass<T>& pass = passes_[p];
      const ResizeAxis& axis = plan_.axes[pass.axis];
      pass.taps.in = static_cast<size_t>(axis.in);
      pass.taps.out = static_cast<size_t>(axis.out);
      pass.taps.count = TapCount(axis, plan_.interpolation);
      pass.inner = trailing_;
      for (size_t i = 0; i < pass.axis; ++i) pass.outer *= dims[i];
      for (size_t i = pass.axis + 1; i < plan_.rank; ++i) pass.inner *= dims[i];
      dims[pass.axis] = pass.taps.out;
      constexpr size_t kFew = 15;  // less than the longest vector
      if (pass.inner > 1 && pass.inner <= kFew && pass.taps.in <= INT32_MAX / kFew) {
        pass.spread = std::exchange(pass.inner, 1);
        pass.taps.in *= pass.spread;
        pass.taps.out *= pass.spread;
      }
    }
  }

  // The taps of each element of the axis become those of its spread.
  void SpreadTaps(size_t p, size_t spread) {
    const kernels::ResizeTaps<T>& taps = passes_[p].taps;
    for (size_t to = taps.count * taps.out; to-- > 0;) {
      const size_t from = to / spread;
      indices_[p][to] =
          indices_[p][from] * static_cast<int32_t>(spread) + static_cast<int32_t>(to % spread);
      weights_[p][to] = weights_[p][from];
    }
  }

  void MakePass(size_t p) {
    Pass<T>& pass = passes_[p];
    const ResizeAxis& axis = plan_.axes[pass.axis];
    MakeTaps(axis, plan_.interpolation, indices_[p], weights_[p]);
    if (pass.spread > 1) SpreadTaps(p, pass.spread);
    pass.taps.indices = indices_[p];
    pass.taps.weights = weights_[p];
    if constexpr (std::is_same_v<T, float>) {
      pass.taps.doubles = kernels::DoublesHalfPixels(pass.taps);
    }
    for (size_t o = 0; o < pass.taps.out; ++o) {
      const ResizeCoordinates coordinates = plan_.interpolation.coordinates;
      const double position =
          SourcePosition(axis, coordinates, static_cast<int64_t>(o / pass.spread));
      outside_[p][o] = IsExtrapolated(axis, coordinates, position);
      if (outside_[p][o]) pass.outside = outside_[p];
    }
  }

  // A row per tap with a pointer to each, and the number of the input row in each.
  static size_t TaskBytes(const Pass<T>& pass, size_t row) {
    return RoundUp(pass.taps.count * (row * sizeof(T) + sizeof(const T*) + sizeof(int32_t)),
                   kAlignment) +
           kAlignment;
  }

  bool IsJoined(size_t step) const { return steps_ < count_ && step + 1 == steps_; }

  // Units of a step: rows of the output, of which a task does some neighbours.
  size_t UnitsOf(size_t step) const {
    const Pass<T>& pass = passes_[step];
    // With one element after its axis, a joined step would make equal rows.
    return pass.inner == 1 && !IsJoined(step) ? pass.outer : pass.outer * pass.taps.out;
  }
  size_t UnitsPerTask(size_t step) const {
    const Pass<T>& pass = passes_[step];
    size_t row = pass.inner == 1 ? pass.taps.out : pass.inner;
    if (IsJoined(step)) row = passes_[step + 1].taps.out;
    return std::max<size_t>(IsJoined(step) ? 16 : 1, kTaskSize / std::max<size_t>(row, 1));
  }
  size_t TasksOf(size_t step) const { return CeilDiv(UnitsOf(step), UnitsPerTask(step)); }

  void RunTask(size_t step, size_t task, const T* x, T* y, std::byte* scratch) const {
    const size_t begin = task * UnitsPerTask(step);
    const size_t end = std::min(UnitsOf(step), begin + UnitsPerTask(step));
    const Pass<T>& pass = passes_[step];
    const auto outside = static_cast<T>(plan_.extrapolation_value);
    if (IsJoined(step)) {
      RunJoined(step, begin, end, x, y, scratch);
    } else if (pass.inner == 1) {
      for (size_t row = begin; row < end; ++row) {
        RunRow(pass, outside, x + row * pass.taps.in, y + row * pass.taps.out);
      }
    } else {
      auto** rows = reinterpret_cast<const T**>(scratch);
      for (size_t unit = begin; unit < end; ++unit) {
        const size_t o = unit % pass.taps.out;
        const T* plane = x + unit / pass.taps.out * pass.taps.in * pass.inner;
        for (size_t k = 0; k < pass.taps.count; ++k) {
          const auto index = static_cast<size_t>(pass.taps.indices[k * pass.taps.out + o]);
          rows[k] = plane + index * pass.inner;
        }
        RunBlend(pass, outside, o, rows, y + unit * pass.inner, pass.inner);
      }
    }
  }

  // Rows [begin, end) of the output of the last two axes. Rows of the input are resized when they
  // are first needed; as many are kept as one row of the output reads, which are neighbours.
  void RunJoined(size_t step, size_t begin, size_t end, const T* x, T* y,
                 std::byte* scratch) const {
    const Pass<T>& down = passes_[step];
    const Pass<T>& along = passes_[step + 1];
    const size_t count = down.taps.count, width = along.taps.out;
    auto** rows = reinterpret_cast<const T**>(scratch);
    T* const kept = reinterpret_cast<T*>(scratch + count * sizeof(const T*));
    auto* const kept_index = reinterpret_cast<int32_t*>(kept + count * width);
    const auto outside = static_cast<T>(plan_.extrapolation_value);
    std::fill_n(kept_index, count, -1);
    for (size_t unit = begin; unit < end; ++unit) {
      const size_t o = unit % down.taps.out;
      if (o == 0) std::fill_n(kept_index, count, -1);
      const T* plane = x + unit / down.taps.out * down.taps.in * along.taps.in;
      for (size_t k = 0; k < count; ++k) {
        const int32_t index = down.taps.indices[k * down.taps.out + o];
        const size_t slot = static_cast<size_t>(index) % count;
        if (kept_index[slot] != index) {
          RunRow(along, outside, plane + static_cast<size_t>(index) * along.taps.in,
                 kept + slot * width);
          kept_index[slot] = index;
        }
        rows[k] = kept + slot * width;
      }
      RunBlend(down, outside, o, rows, y + unit * width, width);
    }
  }

  const ResizePlan& plan_;
  size_t trailing_;
  size_t count_ = 0;  // of passes
  size_t steps_ = 0;
  std::array<Pass<T>, kMaxResizeRank> passes_;
  std::array<int32_t*, kMaxResizeRank> indices_{};
  std::array<T*, kMaxResizeRank> weights_{};
  std::array<uint8_t*, kMaxResizeRank> outside_{};
  std::array<T*, 2> between_{};
};

// Rounded half to even and clipped to the range of T. Bool counts as an integer of one bit.
template <class T>
T FromArithmetic(double value) {
  if constexpr (std::is_same_v<T, bool>) {
    return std::nearbyint(value) != 0;
  } else if constexpr (std::is_integral_v<T>) {
    const double rounded = std::nearbyint(value);
    if (!(rounded > static_cast<double>(std::numeric_limits<T>::min()))) {
      return std::numeric_limits<T>::min();
    }
    if (rounded >= static_cast<double>(std::numeric_limits<T>::max())) {
      return std::numeric_limits<T>::max();
    }
    return static_cast<T>(rounded);
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
constexpr bool kIsNarrowFloat = std::is_same_v<T, Float16> || std::is_same_v<T, Bfloat16>;
template <class T>
constexpr bool kIsShortInteger =
    std::is_integral_v<T> && !std::is_same_v<T, bool> && sizeof(T) <= 2;

template <class T>
constexpr kernels::QuantizedType ShortInteger() {
  using enum kernels::QuantizedType;
  if constexpr (sizeof(T) == 1) return std::is_signed_v<T> ? kInt8 : kUint8;
  return std::is_signed_v<T> ? kInt16 : kUint16;
}
constexpr float kOne = 1;
constexpr kernels::QuantizationRun kUnscaled = {&kOne, nullptr, false};

// Elements [begin, end) of a tensor of T.
template <class T, class A>
void Load(const Tensor& input, size_t begin, size_t end, A* values) {
  if constexpr (kIsNarrowFloat<T>) {
    CopyFloatRow(input, begin, end - begin, values);
  } else {
    const T* const x = input.data<T>();
    if constexpr (kIsShortInteger<T>) {
      kernels::Dequantize(x + begin, end - begin, kUnscaled, ShortInteger<T>(), values);
    } else {
      std::transform(x + begin, x + end, values, [](T v) { return static_cast<A>(v); });
    }
  }
}
template <class T, class A>
void Store(const A* values, size_t begin, size_t end, Tensor& output) {
  if constexpr (kIsNarrowFloat<T>) {
    StoreFloatRow(values, end - begin, begin, output);
  } else {
    T* const y = output.data<T>();
    if constexpr (kIsShortInteger<T>) {
      kernels::Quantize(values, end - begin, kUnscaled, ShortInteger<T>(), y + begin);
    } else {
      std::transform(values, values + (end - begin), y + begin,
                     [](A v) { return FromArithmetic<T>(static_cast<double>(v)); });
    }
  }
}

// x and y have elements of T and are computed on as A; each may be both.
template <class T, class A>
Status Interpolate(const ResizePlan& plan, size_t trailing, KernelContext& context) {
  constexpr bool kConverts = !std::is_same_v<T, A>;
  const Tensor& input = context.Input(0);
  Tensor& output = context.Output(0);
  const T* x = static_cast<const T*>(input.raw());
  T* y = static_cast<T*>(output.raw());
  const size_t in_size = static_cast<size_t>(input.size()) * trailing;
  const size_t out_size = static_cast<size_t>(output.size()) * trailing;
  Interpolation<A> interpolation(plan, trailing);
  if (interpolation.is_copy()) {
    std::copy_n(x, in_size, y);
    return OkStatus();
  }
  const auto carve = [&](Carver& carver) {
    interpolation.Carve(carver);
    A* const from = kConverts ? carver.Take<A>(in_size) : nullptr;
    A* const to = kConverts ? carver.Take<A>(out_size) : nullptr;
    return std::pair(from, to);
  };
  Carver sizes(nullptr);
  carve(sizes);
  const size_t task_bytes =
      context.TaskScratchBytes(interpolation.most_tasks(), interpolation.task_bytes());
  auto* memory = static_cast<std::byte*>(context.Scratch(sizes.used() + task_bytes));
  if (memory == nullptr) return RuntimeException("out of memory for {} elements", out_size);
  Carver carver(memory);
  const auto [from, to] = carve(carver);
  std::byte* const task_memory = memory + carver.used();
  if constexpr (kConverts) {
    A* const converted = from;
    context.threads().ParallelFor(in_size, CopyGrain(sizeof(A)), [&](size_t begin, size_t end) {
      Load<T>(input, begin, end, converted + begin);
    });
    A* const result = to;
    interpolation.Run(converted, result, task_memory, context);
    context.threads().ParallelFor(out_size, CopyGrain(sizeof(A)), [&](size_t begin, size_t end) {
      Store<T>(result + begin, begin, end, output);
    });
  } else {
    interpolation.Run(x, y, task_memory, context);
  }
  return OkStatus();
}

}  // namespace

Status RunInterpolation(const ResizePlan& plan, KernelContext& context) {
  switch (context.Input(0).type()) {
    case DataType::kString:
      return InvalidArgument("expected mode nearest for strings, got an interpolation");
    case DataType::kComplex64:
      return Interpolate<float, float>(plan, 2, context);
    case DataType::kComplex128:
      return Interpolate<double, double>(plan, 2, context);
    default:
      return VisitNumber(context.Input(0).type(), [&]<class T>(T) {
        // A float represents every 16-bit integer.
        constexpr bool kInFloat = !std::is_same_v<T, double> && sizeof(T) <= 2;
        using A = std::conditional_t<std::is_same_v<T, float> || kInFloat, float, double>;
        return Interpolate<T, A>(plan, 1, context);
      });
  }
}

}  // namespace tenon
