// DFT and STFT, and Rfft and Irfft of com.microsoft.
#include <algorithm>
#include <optional>
#include <span>

#include "base/arithmetic.h"
#include "kernels/fft.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// --- DFT ---

// DFT-20; version 17 has the axis as an attribute.
struct DftAttrs {
  int64_t axis = 1;
  bool inverse = false;
  bool onesided = false;
  static constexpr auto Fields() {
    return std::tuple(Field("axis", &DftAttrs::axis), Field("inverse", &DftAttrs::inverse),
                      Field("onesided", &DftAttrs::onesided));
  }
};

// The one integer of input `i`.
Result<int64_t> IntegerIn(const ShapeContext& context, size_t i) {
  TENON_ASSIGN_OR_RETURN(const Shape values, context.InputAsInts(i));
  if (values.rank() != 1) {
    return InvalidArgument("input {}: expected one integer, got {}", i, values.rank());
  }
  return values[0];
}

// The last axis has real and imaginary parts and is not a signal's.
Result<size_t> SignalAxis(int64_t axis, size_t rank) {
  TENON_ASSIGN_OR_RETURN(const size_t normalized, NormalizeAxis(axis, rank));
  if (normalized + 1 == rank) {
    return InvalidArgument("expected an axis before the last of {}, got {}", rank, axis);
  }
  return normalized;
}

// The axes of the signal as [outer, n, inner], and the number of numbers in an element.
struct DftSizes {
  size_t outer, in, out, inner, in_parts, out_parts;
};

[[gnu::cold]] Status InferDftAlong(const DftAttrs& attrs, int64_t axis_given,
                                   ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  if (shape.rank() < 2) {
    return InvalidArgument("input 0: expected [signal..., 1 or 2], got {}", shape);
  }
  TENON_ASSIGN_OR_RETURN(const size_t axis, SignalAxis(axis_given, shape.rank()));
  const Dim parts = shape[shape.rank() - 1];
  if (parts.is_number() && parts.value() != 1 && parts.value() != 2) {
    return InvalidArgument("input 0: expected 1 or 2 as the last dimension, got {}", shape);
  }
  if (attrs.onesided && !attrs.inverse && parts == Dim(2)) {
    return InvalidArgument("input 0: expected a real signal with onesided, got {}", shape);
  }
  const bool to_real = attrs.onesided && attrs.inverse;
  Dim length = to_real ? Dim(2) * (shape[axis] - Dim(1)) : shape[axis];
  if (context.HasInput(1)) {
    TENON_ASSIGN_OR_RETURN(const int64_t given, IntegerIn(context, 1));
    length = Dim(given);
  }
  if (length.is_number() && length.value() < 1) {
    return InvalidArgument("expected dft_length >= 1, got {} for {}", length, shape);
  }
  shape[axis] =
      attrs.onesided && !attrs.inverse ? FloorDiv(length, Dim(2)) + Dim(1) : std::move(length);
  shape[shape.rank() - 1] = Dim(to_real ? 1 : 2);
  return context.SetOutput(0, std::move(shape));
}

Status InferDft17(const DftAttrs& attrs, ShapeContext& context) {
  return InferDftAlong(attrs, attrs.axis, context);
}

Status InferDft(const DftAttrs& attrs, ShapeContext& context) {
  int64_t axis = -2;
  if (context.HasInput(2)) {
    TENON_ASSIGN_OR_RETURN(axis, IntegerIn(context, 2));
  }
  return InferDftAlong(attrs, axis, context);
}

// Many signals are transformed at once, one in each lane of a vector: an array [n, 2, lines] has
// the real and imaginary parts of as many signals as there are lanes, or of one.
constexpr size_t kMostLines = 64;
// Numbers of each signal that are moved to and from its lane at a time: those of all signals stay
// in the nearest cache.
constexpr size_t kBlock = 8;

// How many of so many signals of length n are transformed at once. So many numbers of a long one
// would not fit into a cache.
template <class C>
size_t LinesAtOnce(size_t signals, size_t n) {
  constexpr size_t kLong = size_t{1} << 16;
  return signals == 1 || n > kLong ? 1 : kernels::FftLanes<C>();
}

// The memory of transforms of so many signals of length n: tables, then for each task the array of
// its signals and the transform's work memory. Real signals of an even length take half.
template <class C>
struct DftMemory {
  size_t n, lines, tasks, table_bytes, array_bytes = 0, task_bytes = SIZE_MAX / 4;
  bool is_real;

  DftMemory(size_t length, size_t signals, bool has_real_signals)
      : n(length),
        lines(LinesAtOnce<C>(signals, n)),
        tasks((signals + lines - 1) / lines),
        is_real(has_real_signals && n % 2 == 0) {
    table_bytes = is_real ? kernels::RealFft<C>::TableBytes(n) : kernels::Fft<C>::TableBytes(n);
    if (table_bytes == SIZE_MAX) return;
    array_bytes = RoundUp<size_t>((is_real ? n + 2 : 2 * n) * lines * sizeof(C), 64);
    task_bytes = array_bytes + (is_real ? kernels::RealFft<C>::WorkBytes(n, lines)
                                        : kernels::Fft<C>::WorkBytes(n, lines));
  }
  // SIZE_MAX if it does not fit size_t.
  size_t bytes(const KernelContext& context) const {
    return CheckedAdd(table_bytes, context.TaskScratchBytes(tasks, task_bytes)).value_or(SIZE_MAX);
  }
};

Status NoMemoryFor(size_t n) {
  return RuntimeException("out of memory for a transform of length {}", n);
}

// Transforms the signals of one task. T is their type, and the transform computes in C.
template <class T, class C>
class Dft {
 public:
  // window  [n], a factor for each element of a signal; null: none
  Dft(const DftMemory<C>& need, const DftSizes& sizes, const DftAttrs& attrs, const T* window,
      std::byte* tables)
      : need_(need),
        sizes_(sizes),
        is_inverse_(attrs.inverse),
        is_from_half_(attrs.inverse && attrs.onesided),
        window_(window) {
    if (need.is_real) {
      real_.emplace(need.n, tables);
    } else {
      complex_.emplace(need.n, tables);
    }
  }

  // `from` and `into` have where each signal begins, at most need.lines.
  void Run(std::span<const T* const> from, std::span<T* const> into, std::byte* scratch) const {
    auto* const x = reinterpret_cast<C*>(scratch);
    Load(from, x);
    if (real_) {
      real_->Run(x, need_.lines, scratch + need_.array_bytes);
    } else {
      complex_->Run(x, need_.lines, is_inverse_, scratch + need_.array_bytes);
    }
    Store(x, into);
  }

 private:
  // Lanes without a signal get zeros.
  void Load(std::span<const T* const> from, C* x) const {
    const size_t lines = need_.lines, stride = sizes_.inner * sizes_.in_parts;
    const size_t stored = std::min(is_from_half_ ? need_.n / 2 + 1 : need_.n, sizes_.in);
    // Two elements of a real signal are one complex number for its transform.
    const size_t step = real_ ? lines : 2 * lines;
    std::fill_n(x, need_.n * step, C{0});
    for (size_t begin = 0; begin < stored; begin += kBlock) {
      const size_t end = std::min(stored, begin + kBlock);
      for (size_t line = 0; line < from.size(); ++line) {
        for (size_t j = begin; j < end; ++j) {
          C* const into = x + step * j + line;
          into[0] = static_cast<C>(from[line][j * stride]);
          if (sizes_.in_parts == 2) into[lines] = static_cast<C>(from[line][j * stride + 1]);
        }
      }
    }
    if (is_from_half_) Mirror(x);
    for (size_t j = 0; window_ != nullptr && j < need_.n; ++j) {
      for (size_t i = 0; i < step; ++i) x[step * j + i] *= static_cast<C>(window_[j]);
    }
  }

  // The other half of a real signal's spectrum mirrors the first.
  void Mirror(C* x) const {
    const size_t n = need_.n, lines = need_.lines;
    const auto make_real = [&](size_t j) { std::fill_n(x + (2 * j + 1) * lines, lines, C{0}); };
    make_real(0);
    if (n % 2 == 0) make_real(n / 2);
    for (size_t j = 1; 2 * j < n; ++j) {
      const C* const here = x + 2 * j * lines;
      C* const there = x + 2 * (n - j) * lines;
      std::copy_n(here, lines, there);
      for (size_t line = 0; line < lines; ++line) there[lines + line] = -here[lines + line];
    }
  }

  void Store(const C* x, std::span<T* const> into) const {
    const size_t lines = need_.lines, stride = sizes_.inner * sizes_.out_parts;
    for (size_t begin = 0; begin < sizes_.out; begin += kBlock) {
      const size_t end = std::min(sizes_.out, begin + kBlock);
      for (size_t line = 0; line < into.size(); ++line) {
        for (size_t j = begin; j < end; ++j) {
          const bool is_mirrored = real_ && 2 * j > need_.n;
          const C* const from = x + 2 * lines * (is_mirrored ? need_.n - j : j) + line;
          into[line][j * stride] = static_cast<T>(from[0]);
          if (sizes_.out_parts == 1) continue;
          const auto im = static_cast<T>(from[lines]);
          into[line][j * stride + 1] = is_mirrored ? -im : im;
        }
      }
    }
  }

  const DftMemory<C>& need_;
  const DftSizes sizes_;
  const bool is_inverse_, is_from_half_;
  const T* const window_;
  std::optional<kernels::Fft<C>> complex_;
  std::optional<kernels::RealFft<C>> real_;
};

// `x` may be `y` if they have equally many numbers.
template <class T, class C>
void TransformIn(std::byte* memory, const DftMemory<C>& need, const DftAttrs& attrs,
                 const DftSizes& sizes, KernelContext& context, const T* x, T* y) {
  const Dft<T, C> dft(need, sizes, attrs, nullptr, memory);
  const size_t signals = sizes.outer * sizes.inner;
  const auto run = [&](size_t task, std::byte* scratch) {
    const size_t first = task * need.lines, count = std::min(need.lines, signals - first);
    const T* from[kMostLines];
    T* into[kMostLines];
    for (size_t line = 0; line < count; ++line) {
      const size_t outer = (first + line) / sizes.inner, inner = (first + line) % sizes.inner;
      from[line] = x + (outer * sizes.in * sizes.inner + inner) * sizes.in_parts;
      into[line] = y + (outer * sizes.out * sizes.inner + inner) * sizes.out_parts;
    }
    dft.Run({from, count}, {into, count}, scratch);
  };
  context.ForEachTaskIn(memory + need.table_bytes, need.tasks, need.task_bytes, run);
}

// For signals of length n that have these sizes.
template <class C>
DftMemory<C> MemoryFor(const DftAttrs& attrs, const DftSizes& sizes, size_t n) {
  return DftMemory<C>(n, sizes.outer * sizes.inner, sizes.in_parts == 1 && !attrs.inverse);
}

template <class T, class C>
Status Transform(const DftAttrs& attrs, const DftSizes& sizes, size_t n, KernelContext& context) {
  const DftMemory<C> need = MemoryFor<C>(attrs, sizes, n);
  auto* memory = static_cast<std::byte*>(context.Scratch(need.bytes(context)));
  if (memory == nullptr) return NoMemoryFor(n);
  TransformIn<T, C>(memory, need, attrs, sizes, context, context.Input(0).data<T>(),
                    context.Output(0).data<T>());
  return OkStatus();
}

template <class T, class C>
Status RunDftOf(const DftAttrs& attrs, size_t axis, size_t n, KernelContext& context) {
  const Shape& shape = context.Input(0).shape();
  const Shape& y = context.Output(0).shape();
  if (context.Output(0).size() == 0) return OkStatus();
  const DftSizes sizes = {static_cast<size_t>(shape.Product(0, axis)),
                          static_cast<size_t>(shape[axis]),
                          static_cast<size_t>(y[axis]),
                          static_cast<size_t>(shape.Product(axis + 1, shape.rank() - 1)),
                          static_cast<size_t>(shape.back()),
                          static_cast<size_t>(y.back())};
  return Transform<T, C>(attrs, sizes, n, context);
}

Status RunDftAlong(const DftAttrs& attrs, int64_t axis_given, KernelContext& context) {
  const Shape& shape = context.Input(0).shape();
  TENON_ASSIGN_OR_RETURN(const size_t axis, SignalAxis(axis_given, shape.rank()));
  int64_t length = shape[axis];
  if (attrs.onesided && attrs.inverse) length = 2 * (length - 1);
  if (context.HasInput(1)) {
    TENON_ASSIGN_OR_RETURN(const Shape given, IntegersOf(context.Input(1)));
    length = given[0];
  }
  const auto n = static_cast<size_t>(length);
  if (context.Input(0).type() == DataType::kDouble) {
    return RunDftOf<double, double>(attrs, axis, n, context);
  }
  // As in NumPy, the spectrum of a real signal is exact to the last bit of a float, and a complex
  // one is transformed in its own precision.
  return shape.back() == 1 ? RunDftOf<float, double>(attrs, axis, n, context)
                           : RunDftOf<float, float>(attrs, axis, n, context);
}

Status RunDft17(const DftAttrs& attrs, KernelContext& context) {
  return RunDftAlong(attrs, attrs.axis, context);
}

Status RunDft(const DftAttrs& attrs, KernelContext& context) {
  int64_t axis = -2;
  if (context.HasInput(2)) {
    TENON_ASSIGN_OR_RETURN(const Shape given, IntegersOf(context.Input(2)));
    axis = given[0];
  }
  return RunDftAlong(attrs, axis, context);
}

// --- STFT ---

enum StftInput : size_t { kSignal, kStep, kWindow, kLength };

// STFT-17: [batch, frames, bins, 2] of a signal [batch, length, 1 or 2].
struct StftAttrs {
  bool onesided = true;
  static constexpr auto Fields() { return std::tuple(Field("onesided", &StftAttrs::onesided)); }
};

// The length of a frame; UnknownShape() if it is not known.
Result<Dim> FrameLength(const ShapeContext& context, const SymbolicShape& signal) {
  std::optional<Dim> window;
  if (context.HasInput(kWindow)) {
    TENON_ASSIGN_OR_RETURN(const SymbolicShape shape, context.InputOfRank(kWindow, 1));
    window = shape[0];
  }
  if (!context.HasInput(kLength)) return window.value_or(signal[1]);
  TENON_ASSIGN_OR_RETURN(const int64_t length, IntegerIn(context, kLength));
  if (window && window->is_number() && window->value() != length) {
    return InvalidArgument("input 2: expected a window of frame_length {}, got {}", length,
                           *window);
  }
  return Dim(length);
}

[[gnu::cold]] Status InferStft(const StftAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape signal, context.Input(kSignal));
  const bool fits = signal.rank() == 2 ||
                    (signal.rank() == 3 &&
                     (!signal[2].is_number() || signal[2] == Dim(1) || signal[2] == Dim(2)));
  if (!fits) return InvalidArgument("input 0: expected [batch, length, 1 or 2], got {}", signal);
  if (attrs.onesided && signal.rank() == 3 && signal[2] == Dim(2)) {
    return InvalidArgument("input 0: expected a real signal with onesided, got {}", signal);
  }
  TENON_ASSIGN_OR_RETURN(const int64_t step, IntegerIn(context, kStep));
  if (step < 1) return InvalidArgument("input 1: expected frame_step >= 1, got {}", step);
  TENON_ASSIGN_OR_RETURN(const Dim length, FrameLength(context, signal));
  if (length.is_number() && signal[1].is_number() &&
      (length.value() < 1 || length.value() > signal[1].value())) {
    return InvalidArgument("expected frame_length in [1, {}], got {}", signal[1], length);
  }
  const Dim frames = FloorDiv(signal[1] - length, Dim(step)) + Dim(1);
  const Dim bins = attrs.onesided ? FloorDiv(length, Dim(2)) + Dim(1) : length;
  return context.SetOutput(0, {signal[0], frames, bins, Dim(2)});
}

template <class T, class C>
Status RunStftOf(const StftAttrs& attrs, KernelContext& context) {
  const Tensor& signal = context.Input(kSignal);
  Tensor& y = context.Output(0);
  if (y.size() == 0) return OkStatus();
  const T* window = context.HasInput(kWindow) ? context.Input(kWindow).data<T>() : nullptr;
  TENON_ASSIGN_OR_RETURN(const Shape steps, IntegersOf(context.Input(kStep)));
  const auto step = static_cast<size_t>(steps[0]);
  const auto length = static_cast<size_t>(signal.shape()[1]);
  const size_t parts = signal.rank() == 3 ? static_cast<size_t>(signal.shape()[2]) : 1;
  const auto frames = static_cast<size_t>(y.shape()[1]);
  const auto bins = static_cast<size_t>(y.shape()[2]);
  size_t n = bins;
  if (window) {
    n = static_cast<size_t>(context.Input(kWindow).size());
  } else if (context.HasInput(kLength)) {
    TENON_ASSIGN_OR_RETURN(const Shape given, IntegersOf(context.Input(kLength)));
    n = static_cast<size_t>(given[0]);
  } else if (attrs.onesided) {
    n = length;
  }
  const size_t signals = static_cast<size_t>(y.shape()[0]) * frames;
  const DftMemory<C> need(n, signals, parts == 1);
  auto* memory = static_cast<std::byte*>(context.Scratch(need.bytes(context)));
  if (memory == nullptr) return NoMemoryFor(n);
  const Dft<T, C> dft(need, {signals, n, bins, 1, parts, 2}, {}, window, memory);
  const auto run = [&](size_t task, std::byte* scratch) {
    const size_t first = task * need.lines, count = std::min(need.lines, signals - first);
    const T* from[kMostLines];
    T* into[kMostLines];
    for (size_t line = 0; line < count; ++line) {
      const size_t batch = (first + line) / frames, frame = (first + line) % frames;
      from[line] = signal.data<T>() + (batch * length + frame * step) * parts;
      into[line] = y.data<T>() + (first + line) * bins * 2;
    }
    dft.Run({from, count}, {into, count}, scratch);
  };
  context.ForEachTaskIn(memory + need.table_bytes, need.tasks, need.task_bytes, run);
  return OkStatus();
}

Status RunStft(const StftAttrs& attrs, KernelContext& context) {
  return context.Input(kSignal).type() == DataType::kDouble
             ? RunStftOf<double, double>(attrs, context)
             : RunStftOf<float, double>(attrs, context);
}

// --- Rfft and Irfft ---

// Of the last `signal_ndim` axes: [..., n] to half a spectrum, [..., n / 2 + 1, 2], and back.
struct RfftAttrs {
  bool is_normalized = false;
  bool onesided = true;
  int64_t signal_rank = 1;
  static constexpr auto Fields() {
    using A = RfftAttrs;
    return std::tuple(Field("normalized", &A::is_normalized), Field("onesided", &A::onesided),
                      Field("signal_ndim", &A::signal_rank));
  }
};

// Of the axes [0, rank), of which the last have the signal or the spectrum; `least` is for the
// last.
Status CheckRfft(const RfftAttrs& attrs, const SymbolicShape& shape, size_t rank, int64_t least) {
  if (attrs.is_normalized) return InvalidArgument("expected normalized = 0, got 1");
  if (!attrs.onesided) return InvalidArgument("expected onesided = 1, got 0");
  if (attrs.signal_rank < 1 || static_cast<uint64_t>(attrs.signal_rank) > rank) {
    return InvalidArgument("expected signal_ndim in [1, {}] for input 0 {}, got {}", rank, shape,
                           attrs.signal_rank);
  }
  for (size_t i = rank - static_cast<size_t>(attrs.signal_rank); i < rank; ++i) {
    const int64_t here = i + 1 == rank ? least : 1;
    if (shape[i].is_number() && shape[i].value() < here) {
      return InvalidArgument("input 0: expected at least {} elements along axis {}, got {}", here,
                             i, shape);
    }
  }
  return OkStatus();
}

Status InferRfft(const RfftAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  if (shape.rank() < 1) return InvalidArgument("input 0: expected a signal, got a scalar");
  TENON_RETURN_IF_ERROR(CheckRfft(attrs, shape, shape.rank(), 1));
  Dim& n = shape[shape.rank() - 1];
  n = FloorDiv(n, Dim(2)) + Dim(1);
  shape.Append(Dim(2));
  return context.SetOutput(0, std::move(shape));
}

Status InferIrfft(const RfftAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape shape, context.Input(0));
  const bool is_complex = shape.rank() >= 2 && MayEqual(shape[shape.rank() - 1], Dim(2));
  if (!is_complex) return InvalidArgument("input 0: expected [..., n / 2 + 1, 2], got {}", shape);
  TENON_RETURN_IF_ERROR(CheckRfft(attrs, shape, shape.rank() - 1, 2));
  SymbolicShape y;
  for (size_t i = 0; i + 1 < shape.rank(); ++i) y.Append(shape[i]);
  Dim& n = y[y.rank() - 1];
  n = Dim(2) * (n - Dim(1));
  return context.SetOutput(0, std::move(y));
}

// Along one axis after the other: between real numbers and complex ones along the last of them.
template <class T, bool kInverse>
Status RunRfftOf(size_t signal_rank, KernelContext& context) {
  const Tensor& x = context.Input(0);
  Tensor& y = context.Output(0);
  if (y.size() == 0) return OkStatus();
  const Shape& spectrum = (kInverse ? x : y).shape();
  const size_t last = spectrum.rank() - 2, first = last + 1 - signal_rank;
  const auto length_of = [&](size_t axis) {
    return static_cast<size_t>(axis == last ? (kInverse ? y : x).shape().back() : spectrum[axis]);
  };
  const auto sizes_of = [&](size_t axis) {
    const auto n = static_cast<size_t>(spectrum[axis]);
    DftSizes sizes = {static_cast<size_t>(spectrum.Product(0, axis)),
                      n,
                      n,
                      static_cast<size_t>(spectrum.Product(axis + 1, last + 1)),
                      2,
                      2};
    if (axis == last) {
      (kInverse ? sizes.out : sizes.in) = length_of(axis);
      (kInverse ? sizes.out_parts : sizes.in_parts) = 1;
    }
    return sizes;
  };
  size_t bytes = 0;
  for (size_t axis = first; axis <= last; ++axis) {
    const DftSizes sizes = sizes_of(axis);
    bytes = std::max(bytes, MemoryFor<double>({}, sizes, length_of(axis)).bytes(context));
  }
  const size_t spare_bytes =
      kInverse && first < last ? RoundUp<size_t>(x.size() * sizeof(T), 64) : 0;
  auto* spare =
      static_cast<std::byte*>(context.Scratch(CheckedAdd(bytes, spare_bytes).value_or(SIZE_MAX)));
  if (spare == nullptr) return NoMemoryFor(length_of(last));
  const auto transform = [&](size_t axis, const T* from, T* into) {
    const DftAttrs attrs = {.inverse = kInverse, .onesided = axis == last};
    const DftSizes sizes = sizes_of(axis);
    TransformIn<T, double>(spare + spare_bytes, MemoryFor<double>(attrs, sizes, length_of(axis)),
                           attrs, sizes, context, from, into);
  };
  T* bins = kInverse ? reinterpret_cast<T*>(spare) : y.data<T>();
  if (!kInverse) transform(last, x.data<T>(), bins);
  for (size_t axis = first; axis < last; ++axis) {
    transform(axis, kInverse && axis == first ? x.data<T>() : bins, bins);
  }
  if (kInverse) transform(last, first < last ? bins : x.data<T>(), y.data<T>());
  return OkStatus();
}

template <bool kInverse>
Status RunRfft(const RfftAttrs& attrs, KernelContext& context) {
  const auto rank = static_cast<size_t>(attrs.signal_rank);
  return context.Input(0).type() == DataType::kDouble ? RunRfftOf<double, kInverse>(rank, context)
                                                      : RunRfftOf<float, kInverse>(rank, context);
}

constexpr TypeSet kFloatAndDouble = {DataType::kFloat, DataType::kDouble};
constexpr OpOptions kMicrosoft = {.domain = "com.microsoft", .types = kFloatAndDouble};

constexpr OpRow kRows[] = {
    Op<InferDft17, RunDft17>("DFT", {.since = 17, .types = kFloatAndDouble}),
    Op<InferDft, RunDft>("DFT", {.since = 20, .types = kFloatAndDouble}),
    Op<InferStft, RunStft>("STFT", {.since = 17, .types = kFloatAndDouble}),
    Op<InferRfft, RunRfft<false>>("Rfft", kMicrosoft),
    Op<InferIrfft, RunRfft<true>>("Irfft", kMicrosoft),
};

}  // namespace

TENON_OP_FAMILY(Dft, kRows);

}  // namespace tenon
