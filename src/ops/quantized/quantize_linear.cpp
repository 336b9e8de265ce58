// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear.
#include <cmath>

#include "ops/framework/element_conversion.h"
#include "ops/framework/op_row.h"
#include "ops/quantized/quantization.h"

namespace tenon {
namespace {

// Elements that are processed in buffers together.
constexpr size_t kBlock = 256;

// Rounds a value to `precision` for further arithmetic; double means that it is not rounded.
double RoundTo(DataType precision, double value) {
  switch (precision) {
    case DataType::kFloat:
      return static_cast<double>(static_cast<float>(value));
    case DataType::kFloat16:
      return static_cast<double>(static_cast<float>(Float16(static_cast<float>(value))));
    case DataType::kBfloat16:
      return static_cast<double>(static_cast<float>(Bfloat16(static_cast<float>(value))));
    default:
      return value;
  }
}

// The scales and zero points of up to kBlock elements.
struct BlockParameters {
  double scales[kBlock];
  double zero_points[kBlock];

  void Load(const Tensor& scale, const Tensor* zero_point, size_t first, size_t n,
            bool per_element) {
    Fill(scale, first, n, per_element, scales);
    if (zero_point) {
      Fill(*zero_point, first, n, per_element, zero_points);
    } else {
      std::fill_n(zero_points, n, 0.0);
    }
  }

 private:
  static void Fill(const Tensor& from, size_t first, size_t n, bool per_element, double* into) {
    LoadElements(from, first, per_element ? n : 1, into);
    if (!per_element) std::fill_n(into, n, into[0]);
  }
};

// Calls f(first, count, run) for parts of elements [begin, end) with float scales.
template <class F>
void ForEachFloatRun(const ScaleLayout& layout, const Tensor& scale, const Tensor* zero_point,
                     size_t begin, size_t end, F&& f) {
  double wide[kBlock];
  int32_t zero_points[kBlock];
  layout.ForEachRun(begin, end, [&](size_t first, size_t count, size_t index, bool per_element) {
    const size_t step = per_element ? kBlock : count;
    for (size_t done = 0; done < count; done += step) {
      const size_t n = std::min(step, count - done);
      const size_t at = index + (per_element ? done : 0);
      if (zero_point) {
        const size_t needed = per_element ? n : 1;
        LoadElements(*zero_point, at, needed, wide);
        for (size_t i = 0; i < needed; ++i) zero_points[i] = static_cast<int32_t>(wide[i]);
      }
      f(first + done, n,
        kernels::QuantizationRun{scale.data<float>() + at, zero_point ? zero_points : nullptr,
                                 per_element});
    }
  });
}

// Calls f(first, count, parameters) for parts of at most kBlock elements of [begin, end).
template <class F>
void ForEachBlock(const ScaleLayout& layout, const Tensor& scale, const Tensor* zero_point,
                  size_t begin, size_t end, F&& f) {
  BlockParameters parameters;
  layout.ForEachRun(begin, end, [&](size_t first, size_t count, size_t index, bool per_element) {
    for (size_t done = 0; done < count; done += kBlock) {
      const size_t n = std::min(kBlock, count - done);
      parameters.Load(scale, zero_point, index + (per_element ? done : 0), n, per_element);
      f(first + done, n, parameters);
    }
  });
}

// Checks that input 2, if it is present, has the shape of the scales; one element may have any
// shape.
Status CheckZeroPoint(const ShapeContext& context, const SymbolicShape& scales) {
  if (!context.HasInput(2)) return OkStatus();
  const Result<SymbolicShape> zero_point = context.Input(2);
  if (!zero_point) return IsUnknownShape(zero_point.error()) ? OkStatus() : zero_point.error();
  const auto given = zero_point->ToShape();
  const auto wanted = scales.ToShape();
  if (!given || !wanted || *given == *wanted) return OkStatus();
  if (given->CheckedNumElements().value_or(0) == 1 && wanted->NumElements() == 1) return OkStatus();
  return InvalidArgument("input 2: expected the shape of the scales {}, got {}", scales,
                         *zero_point);
}

// Checks the shapes and returns the output's, that of input 0.
Result<SymbolicShape> InferQuantized(ShapeContext& context, int64_t axis, int64_t block_size) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  Result<SymbolicShape> scales = context.Input(1);
  if (!scales) {
    if (!IsUnknownShape(scales.error())) return Error(std::move(scales.error()));
    return x;
  }
  TENON_RETURN_IF_ERROR(ScaleLayout::Check(x, *scales, axis, block_size));
  TENON_RETURN_IF_ERROR(CheckZeroPoint(context, *scales));
  return x;
}

// QuantizeLinear-25; versions before 23 lack `precision`, those before 21 output_dtype and
// block_size, those before 19 `saturate`, those before 13 `axis`.
struct QuantizeAttrs {
  int64_t axis = 1;
  int64_t block_size = 0;
  DataType output_dtype = DataType::kUndefined;
  DataType precision = DataType::kUndefined;
  bool saturate = true;
  static constexpr auto Fields() {
    using A = QuantizeAttrs;
    return std::tuple(Field("axis", &A::axis), Field("block_size", &A::block_size),
                      Field("output_dtype", &A::output_dtype), Field("precision", &A::precision),
                      Field("saturate", &A::saturate));
  }
};

Status InferQuantize(const QuantizeAttrs& attrs, ShapeContext& context) {
  const DataType zero_point = context.HasInput(2) ? context.ElementType(2) : DataType::kUndefined;
  DataType to = attrs.output_dtype;
  if (zero_point != DataType::kUndefined) {
    if (to != DataType::kUndefined && to != zero_point) {
      return InvalidArgument("attribute 'output_dtype': expected {} as the zero point, got {}",
                             DataTypeName(zero_point), DataTypeName(to));
    }
    to = zero_point;
  }
  if (to == DataType::kUndefined) to = DataType::kUint8;
  if (!IsNarrowFloat(to) && !IntegerRangeOf(to)) {
    return InvalidArgument("attribute 'output_dtype': expected a quantized type, got {}",
                           DataTypeName(to));
  }
  if (attrs.precision != DataType::kUndefined && !kFloats.Contains(attrs.precision)) {
    return InvalidArgument("attribute 'precision': expected a float type, got {}",
                           DataTypeName(attrs.precision));
  }
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, InferQuantized(context, attrs.axis, attrs.block_size));
  return context.SetOutput(0, std::move(x), to);
}

// The type in which x / scale is computed. Powers of two divide in the precision of the values.
DataType DivisionPrecision(const QuantizeAttrs& attrs, DataType x, DataType scale) {
  if (attrs.precision != DataType::kUndefined) return attrs.precision;
  if (scale != DataType::kFloat8e8m0) return scale;
  return kFloats.Contains(x) ? x : DataType::kFloat;
}

// Sets values[0, n) to the stored elements of type `type`.
void QuantizeBlock(const BlockParameters& parameters, DataType precision, DataType type,
                   double* values, size_t n) {
  const std::optional<IntegerRange> range = IntegerRangeOf(type);
  for (size_t i = 0; i < n; ++i) {
    const double x = RoundTo(precision, values[i]);
    const double quotient = RoundTo(precision, x / RoundTo(precision, parameters.scales[i]));
    const double zero_point = parameters.zero_points[i];
    if (range) {
      // fmax returns the bound if the quotient is NaN.
      const double rounded =
          std::fmax(std::nearbyint(quotient) + zero_point, static_cast<double>(range->min));
      values[i] = std::fmin(rounded, static_cast<double>(range->max));
    } else {
      // Adding 0 would lose the sign of -0.
      values[i] = zero_point == 0 ? quotient : RoundTo(precision, quotient + zero_point);
    }
  }
}

Status RunQuantize(const QuantizeAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  const Tensor& scale = context.Input(1);
  const Tensor* zero_point = context.HasInput(2) ? &context.Input(2) : nullptr;
  Tensor& y = context.Output(0);
  TENON_ASSIGN_OR_RETURN(const ScaleLayout layout,
                         ScaleLayout::Make(x.shape(), scale.shape(), attrs.axis, attrs.block_size));
  const DataType precision = DivisionPrecision(attrs, x.type(), scale.type());
  const auto type = QuantizedTypeOf(y.type());
  const bool is_fast = type && *type != kernels::QuantizedType::kInt32 &&
                       x.type() == DataType::kFloat && scale.type() == DataType::kFloat &&
                       precision == DataType::kFloat;
  const auto quantize_fast = [&](size_t first, size_t n, const kernels::QuantizationRun& run) {
    auto* bytes = static_cast<std::byte*>(y.raw()) + first * DataTypeBits(y.type()) / 8;
    kernels::Quantize(x.data<float>() + first, n, run, *type, bytes);
  };
  const auto quantize = [&](size_t first, size_t n, const BlockParameters& parameters) {
    double values[kBlock];
    LoadElements(x, first, n, values);
    QuantizeBlock(parameters, precision, y.type(), values, n);
    StoreElements(values, first, n, {.saturate = attrs.saturate}, y);
  };
  context.threads().ParallelFor(
      static_cast<size_t>(x.size()), kernels::kQuantizeGrain, [&](size_t begin, size_t end) {
        if (is_fast) {
          ForEachFloatRun(layout, scale, zero_point, begin, end, quantize_fast);
        } else {
          ForEachBlock(layout, scale, zero_point, begin, end, quantize);
        }
      });
  return OkStatus();
}

// com.microsoft QuantizeLinear-1 divides floats, of 16 bits too, as onnxruntime does.
Status RunMsQuantize(const QuantizeAttrs& attrs, KernelContext& context) {
  QuantizeAttrs as_floats = attrs;
  as_floats.precision = DataType::kFloat;
  return RunQuantize(as_floats, context);
}

// DequantizeLinear-25; versions before 23 lack `output_dtype`, those before 21 `block_size`, those
// before 13 `axis`.
struct DequantizeAttrs {
  int64_t axis = 1;
  int64_t block_size = 0;
  DataType output_dtype = DataType::kUndefined;
  static constexpr auto Fields() {
    using A = DequantizeAttrs;
    return std::tuple(Field("axis", &A::axis), Field("block_size", &A::block_size),
                      Field("output_dtype", &A::output_dtype));
  }
};

Status InferDequantize(const DequantizeAttrs& attrs, ShapeContext& context) {
  const DataType scale = context.ElementType(1);
  DataType to = attrs.output_dtype;
  if (to == DataType::kUndefined) to = scale;
  if (to == DataType::kUndefined) return UnknownShape();
  if (!kFloats.Contains(to)) {
    return InvalidArgument("attribute 'output_dtype': expected a float type, got {}",
                           DataTypeName(to));
  }
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, InferQuantized(context, attrs.axis, attrs.block_size));
  return context.SetOutput(0, std::move(x), to);
}

Status RunDequantize(const DequantizeAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  const Tensor& scale = context.Input(1);
  const Tensor* zero_point = context.HasInput(2) ? &context.Input(2) : nullptr;
  Tensor& y = context.Output(0);
  TENON_ASSIGN_OR_RETURN(const ScaleLayout layout,
                         ScaleLayout::Make(x.shape(), scale.shape(), attrs.axis, attrs.block_size));
  const DataType precision = y.type();
  const auto type = QuantizedTypeOf(x.type());
  const bool is_fast = type && scale.type() == DataType::kFloat && precision == DataType::kFloat;
  const auto dequantize_fast = [&](size_t first, size_t n, const kernels::QuantizationRun& run) {
    const auto* bytes = static_cast<const std::byte*>(x.raw()) + first * DataTypeBits(x.type()) / 8;
    kernels::Dequantize(bytes, n, run, *type, y.data<float>() + first);
  };
  const auto dequantize = [&](size_t first, size_t n, const BlockParameters& parameters) {
    double values[kBlock];
    LoadElements(x, first, n, values);
    for (size_t i = 0; i < n; ++i) {
      const double difference = RoundTo(precision, values[i] - parameters.zero_points[i]);
      values[i] = difference * RoundTo(precision, parameters.scales[i]);
    }
    StoreElements(values, first, n, {}, y);
  };
  context.threads().ParallelFor(
      static_cast<size_t>(x.size()), kernels::kQuantizeGrain, [&](size_t begin, size_t end) {
        if (is_fast) {
          ForEachFloatRun(layout, scale, zero_point, begin, end, dequantize_fast);
        } else {
          ForEachBlock(layout, scale, zero_point, begin, end, dequantize);
        }
      });
  return OkStatus();
}

// DynamicQuantizeLinear-11.
Status InferDynamicQuantize(const NoAttrs&, ShapeContext& context) {
  TENON_RETURN_IF_ERROR(context.SetOutput(1, {}, DataType::kFloat));
  TENON_RETURN_IF_ERROR(context.SetOutput(2, {}, DataType::kUint8));
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  return context.SetOutput(0, std::move(x), DataType::kUint8);
}

Status RunDynamicQuantize(const NoAttrs&, KernelContext& context) {
  const std::span<const float> x = context.Input(0).values<float>();
  void* memory = context.Scratch(DynamicRangeBytes(x.size()));
  if (memory == nullptr) return RuntimeException("out of memory");
  const DynamicQuantization found = FindDynamicQuantization(x, memory, context.threads());
  if (context.HasOutput(1)) *context.Output(1).data<float>() = found.scale;
  if (context.HasOutput(2)) *context.Output(2).data<uint8_t>() = found.zero_point;
  if (context.HasOutput(0)) {
    QuantizeDynamically(x, found, context.Output(0).data<uint8_t>(), context.threads());
  }
  return OkStatus();
}

// com.tenon DynamicFakeQuantize; see ops/fusion/fusion.h.
Status InferSame(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  return context.SetOutput(0, std::move(x));
}

Status RunFakeQuantize(const NoAttrs&, KernelContext& context) {
  const std::span<const float> x = context.Input(0).values<float>();
  void* memory = context.Scratch(DynamicRangeBytes(x.size()));
  if (memory == nullptr) return RuntimeException("out of memory");
  const DynamicQuantization found = FindDynamicQuantization(x, memory, context.threads());
  FakeQuantizeDynamically(x, found, context.Output(0).data<float>(), context.threads());
  return OkStatus();
}

constexpr TypeSet kQuantizable = {DataType::kFloat, DataType::kFloat16, DataType::kBfloat16,
                                  DataType::kInt32};
constexpr TypeSet kDequantizable = {
    DataType::kInt8,           DataType::kUint8,      DataType::kInt16,
    DataType::kUint16,         DataType::kInt32,      DataType::kFloat8e4m3fn,
    DataType::kFloat8e4m3fnuz, DataType::kFloat8e5m2, DataType::kFloat8e5m2fnuz,
    DataType::kUint4,          DataType::kInt4,       DataType::kFloat4e2m1,
    DataType::kUint2,          DataType::kInt2,       DataType::kFloat6e2m3,
    DataType::kFloat6e3m2};

constexpr OpRow kRows[] = {
    Op<InferQuantize, RunQuantize>("QuantizeLinear", {.since = 10, .types = kQuantizable}),
    Op<InferDequantize, RunDequantize>("DequantizeLinear", {.since = 10, .types = kDequantizable}),
    Op<InferQuantize, RunMsQuantize>("QuantizeLinear",
                                     {.domain = "com.microsoft", .types = kQuantizable}),
    Op<InferDequantize, RunDequantize>("DequantizeLinear",
                                       {.domain = "com.microsoft", .types = kDequantizable}),
    Op<InferDynamicQuantize, RunDynamicQuantize>("DynamicQuantizeLinear",
                                                 {.since = 11, .types = kFloat32Only}),
    Op<InferSame, RunFakeQuantize>(
        "DynamicFakeQuantize",
        {.domain = "com.tenon", .types = kFloat32Only, .traits = {.in_place_input = 0}}),
};

}  // namespace

TENON_OP_FAMILY(QuantizeLinear, kRows);

}  // namespace tenon
