// Pools of int8 and uint8 of com.microsoft: QLinearAveragePool, QLinearGlobalAveragePool,
// NhwcMaxPool.
#include <algorithm>

#include "base/arithmetic.h"
#include "kernels/elementwise/quantize.h"
#include "ops/conv/channels_last_shape.h"
#include "ops/conv/general_window.h"
#include "ops/conv/int8_pool.h"
#include "ops/conv/pool.h"
#include "ops/framework/element.h"
#include "ops/framework/op_row.h"
#include "ops/framework/quantized_int8.h"
#include "ops/linear/int8_product.h"

namespace tenon {
namespace {

constexpr std::string_view kMicrosoft = "com.microsoft";

// QLinearAveragePool-1.
struct QLinearPoolAttrs : AveragePoolAttrs {
  bool channels_last = false;
  static constexpr auto Fields() {
    return std::tuple_cat(AveragePoolAttrs::Fields(),
                          std::tuple(Field("channels_last", &QLinearPoolAttrs::channels_last)));
  }
};

struct GlobalPoolAttrs {
  bool channels_last = false;
  static constexpr auto Fields() {
    return std::tuple(Field("channels_last", &GlobalPoolAttrs::channels_last));
  }
};

Status InferWindowed(const WindowAttrs& attrs, bool ceil_mode, bool channels_last,
                     ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.Input(0));
  if (!channels_last || x.rank() < 3) {
    TENON_ASSIGN_OR_RETURN(SymbolicShape y, PoolOutput(attrs, ceil_mode, x, kMostWindowRank));
    return context.SetOutput(0, std::move(y));
  }
  TENON_ASSIGN_OR_RETURN(const SymbolicShape y,
                         PoolOutput(attrs, ceil_mode, ChannelsFirst(x), kMostWindowRank));
  return context.SetOutput(0, ChannelsLast(y));
}

Status InferAveragePool(const QLinearPoolAttrs& attrs, ShapeContext& context) {
  TENON_RETURN_IF_ERROR(CheckOneElementEach(context, {1, 2, 3, 4}));
  return InferWindowed(attrs, attrs.ceil_mode, attrs.channels_last, context);
}

Status InferNhwcMaxPool(const MaxPoolAttrs& attrs, ShapeContext& context) {
  return InferWindowed(attrs, attrs.ceil_mode, true, context);
}

Status InferGlobalPool(const GlobalPoolAttrs& attrs, ShapeContext& context) {
  TENON_RETURN_IF_ERROR(CheckOneElementEach(context, {1, 2, 3, 4}));
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, context.Input(0));
  if (y.rank() < 3) return InvalidArgument("input 0: expected [N, C, spatial...], got {}", y);
  const size_t first = attrs.channels_last ? 1 : 2;
  for (size_t i = first; i < first + y.rank() - 2; ++i) y[i] = Dim(1);
  return context.SetOutput(0, std::move(y));
}

// Images with `inner` channels last, as many as there are planes or, with one channel, planes.
struct Pictures {
  size_t count, inner, in_pixels, out_pixels;
  WindowDim dims[kMaxWindowRank] = {kOneElement, kOneElement, kOneElement};
  size_t in[kMaxWindowRank] = {1, 1, 1}, out[kMaxWindowRank] = {1, 1, 1};
  GeneralWindow general = {};  // instead of these, if it has a rank
};

Pictures PicturesOf(const Shape& x, const Shape& y, bool channels_last, const Window* window) {
  Pictures p;
  const size_t rank = x.rank() - 2, first = channels_last ? 1 : 2;
  p.count = static_cast<size_t>(channels_last ? x[0] : x[0] * x[1]);
  p.inner = static_cast<size_t>(channels_last ? x.back() : 1);
  p.in_pixels = static_cast<size_t>(x.Product(first, first + rank));
  p.out_pixels = static_cast<size_t>(y.Product(first, first + rank));
  if (window && rank > kMaxWindowRank) {
    p.general = channels_last ? GeneralWindow::Over(*window, ChannelsFirst(x), ChannelsFirst(y))
                              : GeneralWindow::Over(*window, x, y);
    return p;
  }
  for (size_t i = 0; window && i < rank; ++i) {
    const size_t at = kMaxWindowRank - rank + i;
    p.dims[at] = PaddedDim(*window, i, x[first + i]);
    p.in[at] = static_cast<size_t>(x[first + i]);
    p.out[at] = static_cast<size_t>(y[first + i]);
  }
  return p;
}

// The taps [begin, end) of one dimension of a window that are inside the input, and their number
// `padded` with the pads.
struct Taps {
  size_t begin, end, padded;
  size_t first_in;  // the position of tap 0, modulo 2^64
};

Taps TapsOf(const Pictures& p, size_t axis, size_t position) {
  const WindowDim& dim = p.dims[axis];
  const auto in = static_cast<int64_t>(p.in[axis]);
  const int64_t first = static_cast<int64_t>(position) * dim.stride - dim.pad_begin;
  const auto taps_below = [&](int64_t end) {
    if (end <= first) return int64_t{0};
    return std::min(dim.kernel,
                    dim.dilation == 1 ? end - first : CeilDiv(end - first, dim.dilation));
  };
  const int64_t begin = taps_below(0), end = std::max(begin, taps_below(in));
  return {static_cast<size_t>(begin), static_cast<size_t>(end),
          static_cast<size_t>(taps_below(in + dim.pad_end)), static_cast<size_t>(first)};
}

// An output pixel of all images. Advances without divisions.
struct Place {
  size_t picture, pixel;
  size_t at[kMaxWindowRank] = {};

  Place(const Pictures& p, size_t i) : picture(i / p.out_pixels), pixel(i % p.out_pixels) {
    size_t rest = pixel;
    for (size_t axis = kMaxWindowRank; axis-- > 0; rest /= p.out[axis]) {
      at[axis] = rest % p.out[axis];
    }
  }
  void Advance(const Pictures& p) {
    for (size_t axis = kMaxWindowRank; axis-- > 0 && ++at[axis] == p.out[axis];) at[axis] = 0;
    if (++pixel < p.out_pixels) return;
    pixel = 0;
    ++picture;
  }
};

// Calls visit(offset of a pixel) for those under the window of an output pixel; returns the size of
// the window with the pads.
template <class Visit>
size_t ForEachPixel(const Pictures& p, const Place& place, Visit&& visit) {
  if (p.general.rank > 0) {
    size_t padded = 0;
    p.general.ForEachTap(place.pixel, [&](const GeneralWindow::Tap& tap) {
      padded += tap.is_counted;
      if (tap.is_inside) visit(tap.offset);
    });
    return padded;
  }
  Taps taps[kMaxWindowRank];
  for (size_t axis = 0; axis < kMaxWindowRank; ++axis) taps[axis] = TapsOf(p, axis, place.at[axis]);
  const auto at = [&](size_t axis, size_t tap) {
    return taps[axis].first_in + tap * static_cast<size_t>(p.dims[axis].dilation);
  };
  for (size_t z = taps[0].begin; z < taps[0].end; ++z) {
    for (size_t y = taps[1].begin; y < taps[1].end; ++y) {
      const size_t row = (at(0, z) * p.in[1] + at(1, y)) * p.in[2];
      for (size_t x = taps[2].begin; x < taps[2].end; ++x) visit(row + at(2, x));
    }
  }
  return taps[0].padded * taps[1].padded * taps[2].padded;
}

// Pixels that make a task of reasonable size.
size_t PixelsOfTask(const Pictures& p, size_t taps) {
  constexpr size_t kTaskCost = 65536;
  return std::max<size_t>(1, kTaskCost / std::max<size_t>(1, p.inner * taps));
}

size_t TapCount(const Pictures& p) {
  if (p.general.rank > 0) return p.general.kernel_size();
  size_t taps = 1;
  for (const WindowDim& dim : p.dims) taps *= static_cast<size_t>(dim.kernel);
  return taps;
}

// These loops are functions, because bytes that a lambda writes may alias its captures.
template <class T>
void AddPixel(const T* from, size_t n, int32_t* sums) {
  for (size_t c = 0; c < n; ++c) sums[c] += from[c];
}

template <class T>
int32_t SumOf(const T* from, size_t n) {
  int32_t sum = 0;
  for (size_t i = 0; i < n; ++i) sum += from[i];
  return sum;
}

template <class T>
void TakeGreater(const T* from, size_t n, T* into) {
  for (size_t c = 0; c < n; ++c) into[c] = std::max(into[c], from[c]);
}

template <class T>
Status AveragePictures(const QLinearPoolAttrs& attrs, const Pictures& p,
                       const Int8Quantization& of_x, const Int8Quantization& of_y,
                       KernelContext& context) {
  const size_t step = PixelsOfTask(p, TapCount(p)), pixels = p.count * p.out_pixels;
  auto* bytes = static_cast<uint8_t*>(context.Output(0).raw());
  return context.ForEachTask(
      CeilDiv(pixels, step), RoundUp<size_t>(p.inner * sizeof(int32_t), 64),
      [&](size_t task, std::byte* scratch) {
        auto* sums = reinterpret_cast<int32_t*>(scratch);
        Place place(p, task * step);
        for (size_t i = task * step; i < std::min(pixels, (task + 1) * step);
             ++i, place.Advance(p)) {
          const T* picture =
              static_cast<const T*>(context.Input(0).raw()) + place.picture * p.in_pixels * p.inner;
          size_t count = 0;
          std::fill_n(sums, p.inner, 0);
          const size_t padded = ForEachPixel(p, place, [&](size_t pixel) {
            AddPixel(picture + pixel * p.inner, p.inner, sums);
            ++count;
          });
          const auto shift = static_cast<int32_t>(count) * of_x.zero_point;
          const auto size = static_cast<float>(attrs.count_include_pad ? padded : count);
          for (size_t c = 0; c < p.inner; ++c) {
            bytes[i * p.inner + c] =
                of_y.ByteOf(static_cast<float>(sums[c] - shift) * of_x.scale / size);
          }
        }
      });
}

// Whole images. One product, as a scale of the sum.
template <class T>
Status AverageAll(const Pictures& p, const Int8Quantization& of_x, const Int8Quantization& of_y,
                  KernelContext& context) {
  const float scale = of_x.scale / (of_y.scale * static_cast<float>(p.in_pixels));
  const int64_t shift = static_cast<int64_t>(p.in_pixels) * of_x.zero_point;
  const float one = 1;
  const kernels::QuantizationRun rounded = {&one, &of_y.zero_point, false};
  const auto type = of_y.is_signed ? kernels::QuantizedType::kInt8 : kernels::QuantizedType::kUint8;
  // Sums of more elements would not fit into 32 bits.
  constexpr size_t kRun = 1 << 20;
  constexpr size_t kTaskBytes = 65536;
  const size_t group = std::max<size_t>(1, kTaskBytes / std::max<size_t>(1, p.in_pixels * p.inner));
  const size_t outputs = group * p.inner;
  return context.ForEachTask(
      CeilDiv(p.count, group),
      RoundUp<size_t>(outputs * sizeof(float) + p.inner * (sizeof(int32_t) + sizeof(int64_t)), 64),
      [&](size_t task, std::byte* scratch) {
        auto* totals = reinterpret_cast<int64_t*>(scratch);
        auto* sums = reinterpret_cast<int32_t*>(totals + p.inner);
        auto* values = reinterpret_cast<float*>(sums + p.inner);
        const size_t begin = task * group, end = std::min(p.count, begin + group);
        for (size_t picture = begin; picture < end; ++picture) {
          const T* from =
              static_cast<const T*>(context.Input(0).raw()) + picture * p.in_pixels * p.inner;
          std::fill_n(totals, p.inner, int64_t{0});
          for (size_t first = 0; first < p.in_pixels; first += kRun) {
            const size_t n = std::min(kRun, p.in_pixels - first);
            std::fill_n(sums, p.inner, 0);
            if (p.inner == 1) {
              sums[0] = SumOf(from + first, n);
            } else {
              for (size_t i = 0; i < n; ++i) AddPixel(from + (first + i) * p.inner, p.inner, sums);
            }
            for (size_t c = 0; c < p.inner; ++c) totals[c] += sums[c];
          }
          float* const of_picture = values + (picture - begin) * p.inner;
          for (size_t c = 0; c < p.inner; ++c) {
            of_picture[c] = static_cast<float>(totals[c] - shift) * scale;
          }
        }
        kernels::Quantize(values, (end - begin) * p.inner, rounded, type,
                          static_cast<uint8_t*>(context.Output(0).raw()) + begin * p.inner);
      });
}

// Whether one window covers each image.
bool HasOneWindowEach(const Pictures& p) {
  if (p.general.rank > 0 || p.out_pixels != 1) return false;
  for (size_t i = 0; i < kMaxWindowRank; ++i) {
    const WindowDim& dim = p.dims[i];
    if (dim.pad_begin != 0 || dim.pad_end != 0 || dim.dilation != 1) return false;
    if (static_cast<size_t>(dim.kernel) != p.in[i]) return false;
  }
  return true;
}

kernels::PoolPlanarArgs PlanarArgs(const Pictures& p, bool count_include_pad) {
  kernels::PoolPlanarArgs args;
  args.kind = count_include_pad ? kernels::PlanarPoolKind::kAverageIncludingPads
                                : kernels::PlanarPoolKind::kAverage;
  args.planes = p.count;
  for (size_t i = 0; i < kMaxWindowRank; ++i) {
    const WindowDim& dim = p.dims[i];
    args.dims[i] = {p.in[i],
                    p.out[i],
                    static_cast<size_t>(dim.kernel),
                    static_cast<size_t>(dim.stride),
                    static_cast<size_t>(dim.dilation),
                    static_cast<size_t>(dim.pad_begin),
                    static_cast<size_t>(dim.pad_end)};
  }
  return args;
}

Status RunAveragePool(const QLinearPoolAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  const Tensor& y = context.Output(0);
  if (y.size() == 0) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const Window window,
                         MakeWindow(attrs, attrs.kernel_shape, kMostWindowRank));
  const Pictures p = PicturesOf(x.shape(), y.shape(), attrs.channels_last, &window);
  const Int8Quantization of_x = QuantizationIn(context, 1, 2, x.type());
  const Int8Quantization of_y = QuantizationIn(context, 3, 4, y.type());
  if (HasOneWindowEach(p)) {
    return x.type() == DataType::kInt8 ? AverageAll<int8_t>(p, of_x, of_y, context)
                                       : AverageAll<uint8_t>(p, of_x, of_y, context);
  }
  if (!attrs.channels_last && p.general.rank == 0) {
    return PoolBytes(PlanarArgs(p, attrs.count_include_pad), of_x, of_y, context);
  }
  return x.type() == DataType::kInt8 ? AveragePictures<int8_t>(attrs, p, of_x, of_y, context)
                                     : AveragePictures<uint8_t>(attrs, p, of_x, of_y, context);
}

Status RunGlobalPool(const GlobalPoolAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  const Tensor& y = context.Output(0);
  if (y.size() == 0) return OkStatus();
  const Pictures p = PicturesOf(x.shape(), y.shape(), attrs.channels_last, nullptr);
  const Int8Quantization of_x = QuantizationIn(context, 1, 2, x.type());
  const Int8Quantization of_y = QuantizationIn(context, 3, 4, y.type());
  return x.type() == DataType::kInt8 ? AverageAll<int8_t>(p, of_x, of_y, context)
                                     : AverageAll<uint8_t>(p, of_x, of_y, context);
}

template <class T>
Status MaxPictures(const MaxPoolAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  Tensor& y = context.Output(0);
  TENON_ASSIGN_OR_RETURN(const Window window,
                         MakeWindow(attrs, attrs.kernel_shape, kMostWindowRank));
  const Pictures p = PicturesOf(x.shape(), y.shape(), true, &window);
  const size_t step = PixelsOfTask(p, TapCount(p)), pixels = p.count * p.out_pixels;
  return context.ForEachTask(CeilDiv(pixels, step), 0, [&](size_t task, std::byte*) {
    Place place(p, task * step);
    for (size_t i = task * step; i < std::min(pixels, (task + 1) * step); ++i, place.Advance(p)) {
      const T* picture = static_cast<const T*>(x.raw()) + place.picture * p.in_pixels * p.inner;
      T* into = static_cast<T*>(y.raw()) + i * p.inner;
      std::fill_n(into, p.inner, std::numeric_limits<T>::lowest());
      ForEachPixel(p, place,
                   [&](size_t pixel) { TakeGreater(picture + pixel * p.inner, p.inner, into); });
    }
  });
}

Status RunNhwcMaxPool(const MaxPoolAttrs& attrs, KernelContext& context) {
  if (context.Output(0).size() == 0) return OkStatus();
  return context.Input(0).type() == DataType::kInt8 ? MaxPictures<int8_t>(attrs, context)
                                                    : MaxPictures<uint8_t>(attrs, context);
}

constexpr OpOptions kBytes = {.domain = kMicrosoft, .types = kByteTypes};

constexpr OpRow kRows[] = {
    Op<InferAveragePool, RunAveragePool>("QLinearAveragePool", kBytes),
    Op<InferGlobalPool, RunGlobalPool>("QLinearGlobalAveragePool", kBytes),
    Op<InferNhwcMaxPool, RunNhwcMaxPool>("NhwcMaxPool", kBytes),
};

}  // namespace

TENON_OP_FAMILY(QuantizedPool, kRows);

}  // namespace tenon
