// Cast and CastLike: elements of another type.
#include "ops/framework/element_conversion.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

constexpr KernelTraits kCastTraits = {.in_place_input = 0};

Result<ScaleRounding> RoundingFromName(std::string_view name) {
  if (name.empty() || name == "up") return ScaleRounding::kUp;
  if (name == "down") return ScaleRounding::kDown;
  if (name == "nearest") return ScaleRounding::kNearest;
  return InvalidArgument("attribute 'round_mode': expected up, down or nearest, got '{}'", name);
}

Status InferCastTo(DataType to, ShapeContext& context) {
  const DataType from = context.ElementType(0);
  if (from != DataType::kUndefined && !kConvertibleTypes.Contains(from)) {
    return InvalidArgument("input 0: {} elements cannot be cast", DataTypeName(from));
  }
  if (!kConvertibleTypes.Contains(to)) {
    return InvalidArgument("elements cannot be cast to {}", DataTypeName(to));
  }
  Result<SymbolicShape> shape = context.Input(0);
  if (!shape) {
    // The output's type is known even if the shape is not.
    TENON_RETURN_IF_ERROR(context.SetOutputType(0, ValueType::Tensor(to)));
    return shape.error();
  }
  if (kIndices.Contains(to)) {
    if (auto dims = context.KnownDims(0)) context.SetOutputDims(0, std::move(*dims));
  }
  return context.SetOutput(0, std::move(*shape), to);
}

Status RunCastWith(bool saturate, std::string_view round_mode, KernelContext& context) {
  TENON_ASSIGN_OR_RETURN(const ScaleRounding rounding, RoundingFromName(round_mode));
  return ConvertElements(context.Input(0), context.Output(0), {saturate, rounding},
                         context.threads());
}

// Cast-1 names the type with a string.
struct Cast1Attrs {
  std::string to;
  static constexpr auto Fields() { return std::tuple(Field("to", &Cast1Attrs::to)); }
};

DataType TypeFromUpperCase(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return DataTypeFromName(lower);
}

Status InferCast1(const Cast1Attrs& attrs, ShapeContext& context) {
  return InferCastTo(TypeFromUpperCase(attrs.to), context);
}

Status RunCast1(const Cast1Attrs&, KernelContext& context) {
  return RunCastWith(true, "", context);
}

// Cast-24; versions before 19 lack `saturate`, those before 24 `round_mode`.
struct CastAttrs {
  DataType to = DataType::kUndefined;
  bool saturate = true;
  std::string round_mode;
  static constexpr auto Fields() {
    return std::tuple(Field("to", &CastAttrs::to), Field("saturate", &CastAttrs::saturate),
                      Field("round_mode", &CastAttrs::round_mode));
  }
};

Status InferCast(const CastAttrs& attrs, ShapeContext& context) {
  return InferCastTo(attrs.to, context);
}

Status RunCast(const CastAttrs& attrs, KernelContext& context) {
  return RunCastWith(attrs.saturate, attrs.round_mode, context);
}

// CastLike-15: to the type of input 1.
struct CastLikeAttrs {
  bool saturate = true;
  std::string round_mode;
  static constexpr auto Fields() {
    return std::tuple(Field("saturate", &CastLikeAttrs::saturate),
                      Field("round_mode", &CastLikeAttrs::round_mode));
  }
};

Status InferCastLike(const CastLikeAttrs&, ShapeContext& context) {
  const DataType to = context.ElementType(1);
  if (to == DataType::kUndefined) return UnknownShape();
  return InferCastTo(to, context);
}

Status RunCastLike(const CastLikeAttrs& attrs, KernelContext& context) {
  return RunCastWith(attrs.saturate, attrs.round_mode, context);
}

constexpr OpRow kRows[] = {
    Op<InferCast1, RunCast1>("Cast", {.since = 1, .traits = kCastTraits}),
    Op<InferCast, RunCast>("Cast", {.since = 6, .traits = kCastTraits}),
    Op<InferCastLike, RunCastLike>("CastLike", {.since = 15, .traits = kCastTraits}),
};

}  // namespace

TENON_OP_FAMILY(Cast, kRows);

}  // namespace tenon
