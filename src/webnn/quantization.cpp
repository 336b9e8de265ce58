// QuantizeLinear and DequantizeLinear: by tensor, by axis and by block.
#include "webnn/emission.h"

namespace tenon::webnn {
namespace {

// Scale or zero point with the input's rank: as many ones as needed around `axis`.
Result<Operand> Spread(ProgramBuilder& b, Operand parameter, size_t rank, int64_t axis) {
  const Shape& shape = b.ShapeOf(parameter);
  if (shape.rank() == rank) return parameter;
  if (shape.NumElements() == 1) return b.Reshape(parameter, Shape(rank, 1));
  if (shape.rank() != 1) {
    return NotImplemented("a scale of shape {} for {} axes", shape, rank);
  }
  Shape spread(rank, 1);
  spread[static_cast<size_t>(axis)] = shape[0];
  return b.Reshape(parameter, spread);
}

// The scale and zero point, of one shape; a zero point that is left out is 0, of type `type`.
Status EmitLinear(NodeContext& context) {
  ProgramBuilder& b = context.builder();
  const bool quantizes = context.node().op_type == "QuantizeLinear";
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  const size_t rank = b.RankOf(x);
  int64_t axis = 0;
  if (rank > 0) {
    // By tensor the axis has no meaning, and its default need not exist.
    TENON_ASSIGN_OR_RETURN(const Shape given, context.InputShape(1));
    const int64_t wanted = context.node().GetInt("axis", 1);
    if (given.rank() == 1 && given.NumElements() > 1) {
      TENON_ASSIGN_OR_RETURN(axis, context.Axis(wanted, rank));
    }
  }
  TENON_ASSIGN_OR_RETURN(const Operand given_scale, context.Input(1));
  TENON_ASSIGN_OR_RETURN(const Operand scale, Spread(b, given_scale, rank, axis));
  const DataType small = quantizes ? context.OperandType(0) : b.TypeOf(x);
  const DataType model_type = quantizes ? context.OutputType(0) : context.InputType(0);
  if (small != model_type) {
    return NotImplemented("the context has no {}", OperandTypeName(model_type));
  }
  Operand zero_point;
  if (context.HasInput(2)) {
    TENON_ASSIGN_OR_RETURN(const Operand given, context.Input(2));
    TENON_ASSIGN_OR_RETURN(zero_point, Spread(b, given, rank, axis));
  } else {
    const Shape& shape = b.ShapeOf(scale);
    TENON_ASSIGN_OR_RETURN(Tensor zeros, Tensor::Allocate(small, shape));
    std::fill_n(zeros.data<uint8_t>(), zeros.bytes(), uint8_t{0});
    TENON_ASSIGN_OR_RETURN(zero_point, b.Constant(zeros));
  }
  const DataType type = quantizes ? small : b.TypeOf(scale);
  TENON_ASSIGN_OR_RETURN(
      const Operand y,
      b.Call(context.method(), {{"input", x}, {"scale", scale}, {"zeroPoint", zero_point}}, {},
             {type, b.ShapeOf(x)}));
  return context.SetOutput(0, y);
}

constexpr Row kRows[] = {
    {"DequantizeLinear", EmitLinear, "dequantizeLinear"},
    {"QuantizeLinear", EmitLinear, "quantizeLinear"},
};

}  // namespace

TENON_WEBNN_FAMILY(Quantization, kRows);

}  // namespace tenon::webnn
