// Constant and ConstantOfShape: tensors from attributes.
#include <algorithm>
#include <cstring>

#include "ir/graph.h"
#include "ops/framework/element.h"
#include "ops/framework/narrow_types.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// Constant-25: one attribute, of several names, has the value. Graph passes turn most of these
// nodes into initializers; this kernel is for the remaining ones.
struct ConstantAttrs {
  std::optional<Tensor> value;
  std::optional<float> value_float;
  std::optional<std::vector<float>> value_floats;
  std::optional<int64_t> value_int;
  std::optional<std::vector<int64_t>> value_ints;
  std::optional<std::string> value_string;
  std::optional<std::vector<std::string>> value_strings;
  static constexpr auto Fields() {
    return std::tuple(Field("value", &ConstantAttrs::value),
                      Field("value_float", &ConstantAttrs::value_float),
                      Field("value_floats", &ConstantAttrs::value_floats),
                      Field("value_int", &ConstantAttrs::value_int),
                      Field("value_ints", &ConstantAttrs::value_ints),
                      Field("value_string", &ConstantAttrs::value_string),
                      Field("value_strings", &ConstantAttrs::value_strings));
  }
};

template <class T>
Tensor VectorOf(const std::vector<T>& values) {
  return Tensor::Of<T>({static_cast<int64_t>(values.size())}, std::span<const T>(values));
}

Result<Tensor> ValueOf(const ConstantAttrs& attrs) {
  if (attrs.value) return *attrs.value;
  if (attrs.value_float) return Tensor::Of<float>({}, {*attrs.value_float});
  if (attrs.value_floats) return VectorOf(*attrs.value_floats);
  if (attrs.value_int) return Tensor::Of<int64_t>({}, {*attrs.value_int});
  if (attrs.value_ints) return VectorOf(*attrs.value_ints);
  if (attrs.value_string) return Tensor::Of<std::string>({}, {*attrs.value_string});
  if (attrs.value_strings) return VectorOf(*attrs.value_strings);
  return InvalidArgument("expected an attribute with the value");
}

Status InferConstant(const ConstantAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const Tensor value, ValueOf(attrs));
  constexpr int64_t kMostKnown = 64;
  if (value.size() <= kMostKnown && value.rank() <= 1) {
    if (const Result<Shape> integers = IntegersOf(value)) {
      context.SetOutputDims(0, Dims(integers->begin(), integers->end()));
    }
  }
  return context.SetOutput(0, value.shape(), value.type());
}

Status RunConstant(const ConstantAttrs& attrs, KernelContext& context) {
  TENON_ASSIGN_OR_RETURN(const Tensor value, ValueOf(attrs));
  Tensor& output = context.Output(0);
  if (value.type() == DataType::kString) {
    std::copy_n(value.data<std::string>(), value.size(), output.data<std::string>());
  } else {
    std::copy_n(static_cast<const std::byte*>(value.raw()), value.bytes(),
                static_cast<std::byte*>(output.raw()));
  }
  return OkStatus();
}

// ConstantOfShape-9: all elements are equal, float 0 unless `value` says otherwise.
struct ConstantOfShapeAttrs {
  std::optional<Tensor> value;
  static constexpr auto Fields() {
    return std::tuple(Field("value", &ConstantOfShapeAttrs::value));
  }
};

Status InferConstantOfShape(const ConstantOfShapeAttrs& attrs, ShapeContext& context) {
  if (attrs.value && attrs.value->size() != 1) {
    return InvalidArgument("attribute 'value': expected one element, got shape {}",
                           attrs.value->shape());
  }
  const DataType type = attrs.value ? attrs.value->type() : DataType::kFloat;
  const Result<Dims> known = context.InputAsDims(0);
  if (!known) {
    TENON_RETURN_IF_ERROR(context.SetOutputType(0, ValueType::Tensor(type)));
    return known.error();
  }
  const Dims& dims = *known;
  for (const Dim& dim : dims) {
    if (dim.is_number() && dim.value() < 0) {
      return InvalidArgument("expected shape entries >= 0, got {}", SymbolicShape(dims));
    }
  }
  constexpr int64_t kMostKnown = 64;
  if (attrs.value && dims.size() <= 1) {
    const Dim count = SymbolicShape(dims).NumElements();
    const Result<Shape> element = IntegersOf(*attrs.value);
    if (element && count.is_number() && count.value() <= kMostKnown) {
      context.SetOutputDims(0, Dims(static_cast<size_t>(count.value()), Dim((*element)[0])));
    }
  }
  return context.SetOutput(0, SymbolicShape(dims), type);
}

// All elements of a packed tensor are `code`.
void FillPacked(uint8_t code, Tensor& output) {
  const size_t bits = DataTypeBits(output.type());
  auto* bytes = static_cast<uint8_t*>(output.raw());
  for (size_t i = 0; i < static_cast<size_t>(output.size()); ++i) PackBits(bytes, i, bits, code);
}

// Writes `count` copies of the element of `size` bytes, a power of two, from `to` on.
void Repeat(const void* element, size_t size, std::byte* to, size_t count) {
  constexpr size_t kBlock = 4096;  // stays in the nearest cache
  const size_t bytes = count * size;
  if (bytes == 0) return;
  std::memcpy(to, element, size);
  for (size_t done = size, more; done < bytes; done += more) {
    more = std::min({done, kBlock, bytes - done});
    std::memcpy(to + done, to, more);
  }
}

Status RunConstantOfShape(const ConstantOfShapeAttrs& attrs, KernelContext& context) {
  Tensor& output = context.Output(0);
  if (!kWholeByteTypes.Contains(output.type())) {
    FillPacked(
        UnpackBits(static_cast<const uint8_t*>(attrs.value->raw()), 0, DataTypeBits(output.type())),
        output);
    return OkStatus();
  }
  if (output.type() == DataType::kString) {
    std::fill_n(output.data<std::string>(), output.size(), *attrs.value->data<std::string>());
    return OkStatus();
  }
  const float zero = 0;
  const void* element = attrs.value ? attrs.value->raw() : &zero;
  const size_t size = DataTypeBits(output.type()) / 8;
  auto* const first = static_cast<std::byte*>(output.raw());
  context.threads().ParallelFor(
      static_cast<size_t>(output.size()), CopyGrain(size),
      [&](size_t begin, size_t end) { Repeat(element, size, first + begin * size, end - begin); });
  return OkStatus();
}

constexpr OpRow kRows[] = {
    Op<InferConstant, RunConstant>("Constant", {.since = 1}),
    Op<InferConstantOfShape, RunConstantOfShape>("ConstantOfShape",
                                                 {.since = 9, .traits = {.fills_evenly = true}}),
};

}  // namespace

TENON_OP_FAMILY(Constant, kRows);

}  // namespace tenon
