#include "capi/kernel/custom_op.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "capi/value/element_type.h"

namespace tenon::capi {
namespace {

// A copy of the table's slots up to its version.
OrtCustomOp Supported(const OrtCustomOp& op) {
  struct Extent {
    uint32_t first_version;  // that has more slots than this
    size_t bytes;
  };
  constexpr Extent kExtents[] = {
      {8, offsetof(OrtCustomOp, GetInputCharacteristic)},
      {13, offsetof(OrtCustomOp, GetInputMemoryType)},
      {14, offsetof(OrtCustomOp, GetVariadicInputMinArity)},
      {16, offsetof(OrtCustomOp, CreateKernelV2)},
      {17, offsetof(OrtCustomOp, InferOutputShapeFn)},
      {18, offsetof(OrtCustomOp, GetMayInplace)},
  };
  size_t bytes = sizeof(OrtCustomOp);
  for (const Extent& extent : kExtents) {
    if (op.version < extent.first_version) bytes = std::min(bytes, extent.bytes);
  }
  OrtCustomOp supported = {};
  std::memcpy(&supported, &op, bytes);
  return supported;
}

DataType TypeOrUndefined(const ONNXTensorElementDataType& type) {
  const Result<DataType> known = FromElementType(type);
  return known ? *known : DataType::kUndefined;
}

size_t UsedEntries(const std::vector<ValueId>& values) {
  size_t used = values.size();
  while (used > 0 && values[used - 1] == ValueId::kNone) --used;
  return used;
}

}  // namespace

CustomOp::CustomOp(std::string domain, const OrtCustomOp& op, std::string provider)
    : op_(Supported(op)),
      client_(&op),
      domain_(std::move(domain)),
      name_(op_.GetName(client_)),
      provider_(std::move(provider)) {
  for (size_t i = 0; i < op_.GetInputTypeCount(client_); ++i) {
    Formal& formal = inputs_.emplace_back();
    formal.type = TypeOrUndefined(op_.GetInputType(client_, i));
    if (op_.GetInputCharacteristic) formal.kind = op_.GetInputCharacteristic(client_, i);
    if (op_.GetInputMemoryType) {
      const int memory = op_.GetInputMemoryType(client_, i);
      const bool is_host = memory == OrtMemTypeCPUInput || memory == OrtMemTypeCPUOutput;
      if (is_host) formal.residence = Residence::kHost;
    }
  }
  for (size_t i = 0; i < op_.GetOutputTypeCount(client_); ++i) {
    Formal& formal = outputs_.emplace_back();
    formal.type = TypeOrUndefined(op_.GetOutputType(client_, i));
    if (op_.GetOutputCharacteristic) formal.kind = op_.GetOutputCharacteristic(client_, i);
  }
  if (op_.GetVariadicInputMinArity) min_variadic_inputs_ = op_.GetVariadicInputMinArity(client_);
  if (op_.GetVariadicOutputMinArity) min_variadic_outputs_ = op_.GetVariadicOutputMinArity(client_);
  if (op_.GetVariadicInputHomogeneity) {
    variadic_inputs_are_alike_ = op_.GetVariadicInputHomogeneity(client_) != 0;
  }
  if (op_.GetVariadicOutputHomogeneity) {
    variadic_outputs_are_alike_ = op_.GetVariadicOutputHomogeneity(client_) != 0;
  }
  if (op_.GetStartVersion) start_version_ = op_.GetStartVersion(client_);
}

bool CustomOp::Implements(const Node& node) const {
  return node.op_type == name_ && node.domain == domain_ && node.opset >= start_version_;
}

Status CustomOp::CheckVariadics() const {
  const auto is_variadic = [](const Formal& formal) {
    return formal.kind == INPUT_OUTPUT_VARIADIC;
  };
  const auto has_early_one = [&](const std::vector<Formal>& formals) {
    return !formals.empty() && std::any_of(formals.begin(), formals.end() - 1, is_variadic);
  };
  for (const auto& [formals, word] : {std::pair(&inputs_, "input"), {&outputs_, "output"}}) {
    if (!has_early_one(*formals)) continue;
    return InvalidArgument(
        "custom operator '{}': Only the last {} to a custom op may be marked variadic.", name_,
        word);
  }
  return OkStatus();
}

// The text for a wrong number is that of ONNX's checker.
Status CustomOp::CheckCount(std::span<const Formal> formals, int min_variadic, const Node& node,
                            const std::vector<ValueId>& values, std::string_view word) const {
  const auto wrong = [&](size_t least, size_t most, size_t got) {
    return InvalidGraph(
        "Error Node({}) with schema({}::{}:{}) has {} size {} not in range [min={}, max={}]",
        node.name, domain_, name_, start_version_, word, got, least, most);
  };
  const size_t used = UsedEntries(values);
  const bool is_variadic = !formals.empty() && formals.back().kind == INPUT_OUTPUT_VARIADIC;
  if (is_variadic) {
    const size_t least = formals.size() - 1 + static_cast<size_t>(std::max(min_variadic, 0));
    if (used >= least) return OkStatus();
    return wrong(least, INT32_MAX, used);
  }
  if (used > formals.size()) return wrong(0, formals.size(), used);
  for (size_t i = 0; i < formals.size(); ++i) {
    const bool is_there = i < values.size() && values[i] != ValueId::kNone;
    if (formals[i].kind == INPUT_OUTPUT_REQUIRED && !is_there) {
      return InvalidGraph("{} {} is required", word, i);
    }
  }
  return OkStatus();
}

Status CustomOp::CheckNode(const Node& node,
                           FunctionRef<DataType(size_t input)> type_of_input) const {
  TENON_RETURN_IF_ERROR(CheckCount(inputs_, min_variadic_inputs_, node, node.inputs, "input"));
  TENON_RETURN_IF_ERROR(CheckCount(outputs_, min_variadic_outputs_, node, node.outputs, "output"));
  DataType of_variadic = DataType::kUndefined;
  for (size_t i = 0; i < node.inputs.size() && !inputs_.empty(); ++i) {
    const Formal& formal = inputs_[std::min(i, inputs_.size() - 1)];
    const DataType type = type_of_input(i);
    if (type == DataType::kUndefined) continue;
    const bool must_be_alike = formal.kind == INPUT_OUTPUT_VARIADIC && variadic_inputs_are_alike_;
    const DataType expected =
        must_be_alike && formal.type == DataType::kUndefined ? of_variadic : formal.type;
    if (must_be_alike && of_variadic == DataType::kUndefined) of_variadic = type;
    if (expected == DataType::kUndefined || expected == type) continue;
    if (must_be_alike && formal.type == DataType::kUndefined) {
      return InvalidGraph(
          "Type Error: Type parameter (Input{}) of Optype ({}) bound to different types "
          "(tensor({}) and tensor({}) in node ({}).",
          inputs_.size() - 1, name_, DataTypeName(expected), DataTypeName(type), node.name);
    }
    return InvalidGraph("input {}: expected tensor({}), got tensor({})", i, DataTypeName(expected),
                        DataTypeName(type));
  }
  return OkStatus();
}

DataType CustomOp::OutputType(size_t output, size_t output_count,
                              FunctionRef<DataType(size_t input)> type_of_input) const {
  if (output >= output_count || outputs_.empty()) return DataType::kUndefined;
  const Formal& formal = outputs_[std::min(output, outputs_.size() - 1)];
  if (formal.type != DataType::kUndefined) return formal.type;
  const bool is_free = formal.kind == INPUT_OUTPUT_VARIADIC && !variadic_outputs_are_alike_;
  if (is_free) return DataType::kUndefined;
  // The type of the first input that may have any type.
  for (size_t i = 0; i < inputs_.size(); ++i) {
    if (inputs_[i].type == DataType::kUndefined) return type_of_input(i);
  }
  return DataType::kUndefined;
}

}  // namespace tenon::capi
