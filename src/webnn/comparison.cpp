// Operators on booleans, which are uint8 in programs.
#include "webnn/emission.h"

namespace tenon::webnn {
namespace {

Status EmitComparison(NodeContext& context) {
  if (context.since() < 7) {
    return NotImplemented("WebNN broadcasts as operators do since opset 7");
  }
  TENON_ASSIGN_OR_RETURN(const Operand a, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const Operand b, context.Input(1));
  TENON_ASSIGN_OR_RETURN(const Operand y,
                         context.builder().Binary(context.method(), a, b, DataType::kUint8));
  return context.SetOutput(0, y);
}

Result<Operand> TruthOf(NodeContext& context, size_t i) {
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(i));
  return context.builder().Cast(x, DataType::kUint8);
}

Status EmitLogical(NodeContext& context) {
  if (context.since() < 7) {
    return NotImplemented("WebNN broadcasts as operators do since opset 7");
  }
  TENON_ASSIGN_OR_RETURN(const Operand a, TruthOf(context, 0));
  TENON_ASSIGN_OR_RETURN(const Operand b, TruthOf(context, 1));
  TENON_ASSIGN_OR_RETURN(const Operand y, context.builder().Binary(context.method(), a, b));
  return context.SetOutput(0, y);
}

Status EmitNot(NodeContext& context) {
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const Operand truth, context.builder().Cast(x, DataType::kUint8));
  TENON_ASSIGN_OR_RETURN(const Operand y, context.builder().Truth("logicalNot", truth));
  return context.SetOutput(0, y);
}

Status EmitIs(NodeContext& context) {
  const Node& node = context.node();
  const bool is_partial = node.op_type == "IsInf" && (node.GetInt("detect_positive", 1) == 0 ||
                                                      node.GetInt("detect_negative", 1) == 0);
  if (is_partial) return NotImplemented("WebNN finds infinities of both signs");
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const Operand y, context.builder().Truth(context.method(), x));
  return context.SetOutput(0, y);
}

Status EmitWhere(NodeContext& context) {
  ProgramBuilder& builder = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand condition, TruthOf(context, 0));
  TENON_ASSIGN_OR_RETURN(const Operand a, context.Input(1));
  TENON_ASSIGN_OR_RETURN(const Operand b, context.Input(2));
  TENON_ASSIGN_OR_RETURN(const Shape shape, context.OutputShape(0));
  TENON_ASSIGN_OR_RETURN(
      const Operand y,
      builder.Call("where", {{"condition", condition}, {"trueValue", a}, {"falseValue", b}}, {},
                   {builder.TypeOf(a), shape}));
  return context.SetOutput(0, y);
}

constexpr std::string_view kBroadcast = "since opset 7";

constexpr Row kRows[] = {
    {"And", EmitLogical, "logicalAnd", kBroadcast},
    {"Equal", EmitComparison, "equal", kBroadcast},
    {"Greater", EmitComparison, "greater", kBroadcast},
    {"GreaterOrEqual", EmitComparison, "greaterOrEqual"},
    {"IsInf", EmitIs, "isInfinite", "infinities of both signs"},
    {"IsNaN", EmitIs, "isNaN"},
    {"Less", EmitComparison, "lesser", kBroadcast},
    {"LessOrEqual", EmitComparison, "lesserOrEqual"},
    {"Not", EmitNot, "logicalNot"},
    {"Or", EmitLogical, "logicalOr", kBroadcast},
    {"Where", EmitWhere, "where"},
    {"Xor", EmitLogical, "logicalXor", kBroadcast},
};

}  // namespace

TENON_WEBNN_FAMILY(Comparison, kRows);

}  // namespace tenon::webnn
