// DFT and STFT, and Rfft and Irfft of com.microsoft.
#include <algorithm>

#include "base/arithmetic.h"
#include "kernels/fft.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

using kernels::Complex;

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

Status InferDftAlong(const DftAttrs& attrs, int64_t axis_given, ShapeContext& context) {
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

// One signal of `in` elements, `stride` elements apart, as `n` complex numbers.
template <class T, class C>
void LoadSignal(const T* x, const DftSizes& sizes, bool from_half, size_t n, Complex<C>* line) {
  const size_t stride = sizes.inner * sizes.in_parts;
  const auto at = [&](size_t j) {
    if (j >= sizes.in) return Complex<C>{0, 0};
    return Complex<C>{static_cast<C>(x[j * stride]),
                      sizes.in_parts == 2 ? static_cast<C>(x[j * stride + 1]) : 0};
  };
  if (!from_half) {
    for (size_t j = 0; j < n; ++j) line[j] = at(j);
    return;
  }
  // The other half of a real signal's spectrum mirrors this one.
  for (size_t j = 0; j <= n / 2; ++j) {
    line[j] = at(j);
    if (j == 0 || 2 * j == n) {
      line[j].im = 0;
    } else {
      line[n - j] = {line[j].re, -line[j].im};
    }
  }
}

template <class T, class C>
void StoreSignal(const Complex<C>* line, const DftSizes& sizes, T* y) {
  const size_t stride = sizes.inner * sizes.out_parts;
  for (size_t j = 0; j < sizes.out; ++j) {
    y[j * stride] = static_cast<T>(line[j].re);
    if (sizes.out_parts == 2) y[j * stride + 1] = static_cast<T>(line[j].im);
  }
}

// The memory of transforms of length n: tables, then the work memory of each task.
template <class C>
struct DftMemory {
  size_t table_bytes, task_bytes;
  explicit DftMemory(size_t n) : table_bytes(kernels::Fft<C>::TableBytes(n)) {
    // Work memory is at most the tables', plus the line.
    task_bytes = table_bytes == SIZE_MAX ? SIZE_MAX / 4 : 2 * table_bytes;
  }
  // SIZE_MAX if it does not fit size_t.
  size_t bytes(size_t tasks, const KernelContext& context) const {
    return CheckedAdd(table_bytes, context.TaskScratchBytes(tasks, task_bytes)).value_or(SIZE_MAX);
  }
};

Status NoMemoryFor(size_t n) {
  return RuntimeException("out of memory for a transform of length {}", n);
}

// T is the signal's type, and the transform computes in C. `x` may be `y` if they have equally many
// numbers.
template <class T, class C>
void TransformIn(std::byte* memory, const DftAttrs& attrs, const DftSizes& sizes, size_t n,
                 KernelContext& context, const T* x, T* y) {
  const DftMemory<C> need(n);
  const kernels::Fft<C> fft(n, memory);
  const size_t line_bytes = RoundUp<size_t>(n * sizeof(Complex<C>), 64);
  context.ForEachTaskIn(
      memory + need.table_bytes, sizes.outer * sizes.inner, need.task_bytes,
      [&](size_t task, std::byte* scratch) {
        auto* line = reinterpret_cast<Complex<C>*>(scratch);
        const size_t outer = task / sizes.inner, inner = task % sizes.inner;
        LoadSignal(x + (outer * sizes.in * sizes.inner + inner) * sizes.in_parts, sizes,
                   attrs.onesided && attrs.inverse, n, line);
        fft.Run(line, attrs.inverse, scratch + line_bytes);
        StoreSignal(line, sizes, y + (outer * sizes.out * sizes.inner + inner) * sizes.out_parts);
      });
}

template <class T, class C>
Status Transform(const DftAttrs& attrs, const DftSizes& sizes, size_t n, KernelContext& context) {
  auto* memory = static_cast<std::byte*>(
      context.Scratch(DftMemory<C>(n).bytes(sizes.outer * sizes.inner, context)));
  if (memory == nullptr) return NoMemoryFor(n);
  TransformIn<T, C>(memory, attrs, sizes, n, context, context.Input(0).data<T>(),
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

Status InferStft(const StftAttrs& attrs, ShapeContext& context) {
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
  const DftMemory<C> need(n);
  const size_t tasks = static_cast<size_t>(y.shape()[0]) * frames;
  auto* memory = static_cast<std::byte*>(context.Scratch(need.bytes(tasks, context)));
  if (memory == nullptr) return NoMemoryFor(n);
  const kernels::Fft<C> fft(n, memory);
  const size_t line_bytes = RoundUp<size_t>(n * sizeof(Complex<C>), 64);
  context.ForEachTaskIn(
      memory + need.table_bytes, tasks, need.task_bytes, [&](size_t task, std::byte* scratch) {
        auto* line = reinterpret_cast<Complex<C>*>(scratch);
        const T* from = signal.data<T>() + (task / frames * length + task % frames * step) * parts;
        for (size_t j = 0; j < n; ++j) {
          const C weight = window ? static_cast<C>(window[j]) : 1;
          line[j] = {static_cast<C>(from[j * parts]) * weight,
                     parts == 2 ? static_cast<C>(from[j * parts + 1]) * weight : 0};
        }
        fft.Run(line, false, scratch + line_bytes);
        T* into = y.data<T>() + task * bins * 2;
        for (size_t j = 0; j < bins; ++j) {
          into[2 * j] = static_cast<T>(line[j].re);
          into[2 * j + 1] = static_cast<T>(line[j].im);
        }
      });
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
    const DftMemory<double> need(length_of(axis));
    bytes = std::max(bytes, need.bytes(sizes.outer * sizes.inner, context));
  }
  const size_t spare_bytes =
      kInverse && first < last ? RoundUp<size_t>(x.size() * sizeof(T), 64) : 0;
  auto* spare =
      static_cast<std::byte*>(context.Scratch(CheckedAdd(bytes, spare_bytes).value_or(SIZE_MAX)));
  if (spare == nullptr) return NoMemoryFor(length_of(last));
  const auto transform = [&](size_t axis, const T* from, T* into) {
    TransformIn<T, double>(spare + spare_bytes, {.inverse = kInverse, .onesided = axis == last},
                           sizes_of(axis), length_of(axis), context, from, into);
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
