#include "webnn/program.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/json_writer.h"
#include "ir/scalar.h"
#include "ir/shape_context.h"

namespace tenon::webnn {
namespace {

// Larger integers are not exact as JavaScript numbers.
constexpr int64_t kLargestNumber = int64_t{1} << 53;

std::string Describe(const Descriptor& is) {
  return Format("{} {}", OperandTypeName(is.type), is.shape);
}

template <class From>
Status NarrowInto(const Tensor& from, Tensor& into) {
  const std::span<const From> values = from.values<From>();
  for (size_t i = 0; i < values.size(); ++i) {
    const bool fits = values[i] <= static_cast<From>(std::numeric_limits<int32_t>::max()) &&
                      (!std::is_signed_v<From> || sizeof(From) < sizeof(int64_t) ||
                       static_cast<int64_t>(values[i]) >= std::numeric_limits<int32_t>::min());
    if (!fits) {
      return NotImplemented("the context has no {}, and int32 cannot hold the constant {}",
                            OperandTypeName(from.type()), values[i]);
    }
    into.data<int32_t>()[i] = static_cast<int32_t>(values[i]);
  }
  return OkStatus();
}

// The elements as int32.
Result<Tensor> Narrowed(const Tensor& from) {
  TENON_ASSIGN_OR_RETURN(Tensor into, Tensor::Allocate(DataType::kInt32, from.shape()));
  Status status;
  switch (from.type()) {
    case DataType::kInt64:
      status = NarrowInto<int64_t>(from, into);
      break;
    case DataType::kUint64:
      status = NarrowInto<uint64_t>(from, into);
      break;
    case DataType::kUint32:
      status = NarrowInto<uint32_t>(from, into);
      break;
    case DataType::kInt8:
      status = NarrowInto<int8_t>(from, into);
      break;
    default:
      for (size_t i = 0; i < from.bytes(); ++i) {
        into.data<int32_t>()[i] = from.data<uint8_t>()[i];
      }
  }
  TENON_RETURN_IF_ERROR(std::move(status));
  return into;
}

// Writes a program's text, with operands as their numbers.
class Writer {
 public:
  explicit Writer(std::span<const int32_t> numbers) : numbers_(numbers) {}

  JsonWriter& json() { return json_; }

  void Write(const Descriptor& is) {
    json_.Key("dataType").Text(OperandTypeName(is.type));
    json_.Key("shape");
    WriteList(is.shape.dims());
  }

  void Write(const Argument& argument) {
    std::visit([&](const auto& value) { WriteValue(value); }, argument);
  }

  int32_t NumberOf(Operand operand) const { return numbers_[static_cast<size_t>(operand.index)]; }

 private:
  void WriteValue(Operand operand) {
    json_.BeginObject();
    json_.Key("operand").Integer(NumberOf(operand));
    json_.EndObject();
  }
  void WriteValue(bool value) { json_.Bool(value); }
  void WriteValue(std::string_view value) { json_.Text(value); }
  void WriteValue(const std::string& value) { json_.Text(value); }
  void WriteValue(int64_t value) {
    if (value >= -kLargestNumber && value <= kLargestNumber) {
      json_.Integer(value);
      return;
    }
    json_.BeginObject();
    json_.Key("bigint").Text(std::to_string(value));
    json_.EndObject();
  }
  void WriteValue(double value) {
    if (std::isfinite(value)) {
      json_.Number(value);
      return;
    }
    json_.BeginObject();
    json_.Key("number").Text(std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
    json_.EndObject();
  }
  template <class T>
  void WriteValue(const std::vector<T>& values) {
    WriteList(values);
  }
  template <class List>
  void WriteList(const List& values) {
    json_.BeginArray();
    for (const auto& value : values) WriteValue(value);
    json_.EndArray();
  }

  const std::span<const int32_t> numbers_;
  JsonWriter json_;
};

template <class Visit>
void ForEachOperand(const Argument& argument, Visit visit) {
  if (const auto* const one = std::get_if<Operand>(&argument)) visit(*one);
  if (const auto* const several = std::get_if<Operands>(&argument)) {
    for (const Operand operand : *several) visit(operand);
  }
}

}  // namespace

Operand ProgramBuilder::Add(Kind kind, Descriptor is) {
  known_.push_back({kind, std::move(is)});
  return {static_cast<int32_t>(known_.size()) - 1};
}

Status ProgramBuilder::CheckSize(const Descriptor& is) const {
  if (std::find(is.shape.begin(), is.shape.end(), 0) != is.shape.end()) {
    return NotImplemented("WebNN has no operands without elements, as of shape {}", is.shape);
  }
  TENON_ASSIGN_OR_RETURN(const size_t bytes, DataTypeBytes(is.type, is.shape.NumElements()));
  if (static_cast<double>(bytes) > limits_.max_bytes()) {
    return NotImplemented("{} has {} bytes; the context allows {:.0f}", Describe(is), bytes,
                          limits_.max_bytes());
  }
  return OkStatus();
}

Status ProgramBuilder::CheckBound(const OperandLimits& limits, std::string_view what,
                                  const Descriptor& is) const {
  TENON_RETURN_IF_ERROR(CheckSize(is));
  if (limits.Allows(is.type, is.shape.rank())) return OkStatus();
  return NotImplemented("the context has no {} of type and shape {}", what, Describe(is));
}

Status ProgramBuilder::CheckOperand(std::string_view method, const Parameter& parameter) const {
  Status status;
  ForEachOperand(parameter.value, [&](Operand operand) {
    const OperandLimits* const limits = limits_.Find(method, parameter.name);
    const Descriptor& is = At(operand).is;
    if (limits == nullptr) {
      status = NotImplemented("the context has no {} with operand '{}'", method, parameter.name);
    } else if (!limits->Allows(is.type, is.shape.rank())) {
      status = NotImplemented("the context's {} does not take {} as '{}'", method, Describe(is),
                              parameter.name);
    }
  });
  return status;
}

Status ProgramBuilder::CheckResult(std::string_view method, std::string_view name,
                                   const Descriptor& is) const {
  TENON_RETURN_IF_ERROR(CheckSize(is));
  const OperandLimits* const limits = limits_.Find(method, name);
  if (limits == nullptr || limits->Allows(is.type, is.shape.rank())) return OkStatus();
  return NotImplemented("the context's {} does not make {}", method, Describe(is));
}

Result<Operand> ProgramBuilder::Input(std::string name, DataType type, const Shape& shape) {
  Descriptor is = {limits_.TypeFor(type), shape};
  if (is.type == DataType::kUndefined) {
    return NotImplemented("the context has no type for values of type {}", DataTypeName(type));
  }
  const bool is_widened = shape.rank() == 0 && limits_.input().min_rank > 0;
  if (is_widened) is.shape = Shape{1};
  TENON_RETURN_IF_ERROR(CheckBound(limits_.input(), "inputs", is));
  const Operand operand = Add(Kind::kInput, std::move(is));
  inputs_.push_back({std::move(name), type, operand});
  if (!is_widened) return operand;
  return Reshape(operand, Shape{});
}

Result<Operand> ProgramBuilder::AddConstant(Tensor tensor) {
  Descriptor is = {tensor.type() == DataType::kBool ? DataType::kUint8 : tensor.type(),
                   tensor.shape()};
  const bool is_widened = tensor.rank() == 0 && limits_.constant().min_rank > 0;
  if (is_widened) is.shape = Shape{1};
  TENON_RETURN_IF_ERROR(CheckBound(limits_.constant(), "constants", is));
  const Operand operand = Add(Kind::kConstant, std::move(is));
  constants_.emplace_back(operand, std::move(tensor));
  if (!is_widened) return operand;
  return Reshape(operand, Shape{});
}

Result<Operand> ProgramBuilder::Constant(const Tensor& tensor) {
  const DataType type = limits_.TypeFor(tensor.type());
  if (type == DataType::kUndefined) {
    return NotImplemented("the context has no type for values of type {}",
                          DataTypeName(tensor.type()));
  }
  const bool stays = type == tensor.type() || type == DataType::kUint8;
  if (stays) return AddConstant(tensor);
  TENON_ASSIGN_OR_RETURN(Tensor narrowed, Narrowed(tensor));
  return AddConstant(std::move(narrowed));
}

Result<Operand> ProgramBuilder::Scalar(DataType type, double value) {
  TENON_ASSIGN_OR_RETURN(Tensor tensor, MakeScalar(type, value));
  return AddConstant(std::move(tensor));
}

Result<Operand> ProgramBuilder::Integers(std::span<const int64_t> values) {
  Tensor tensor = Tensor::Of<int64_t>({static_cast<int64_t>(values.size())}, values);
  TENON_ASSIGN_OR_RETURN(Tensor narrowed, Narrowed(tensor));
  return AddConstant(std::move(narrowed));
}

Result<Operands> ProgramBuilder::CallForSeveral(std::string_view method, Parameters arguments,
                                                Parameters options,
                                                std::span<const Descriptor> results,
                                                std::span<const std::string_view> names) {
  for (const Parameters* const list : {&arguments, &options}) {
    for (const Parameter& one : *list) TENON_RETURN_IF_ERROR(CheckOperand(method, one));
  }
  for (size_t i = 0; i < results.size(); ++i) {
    TENON_RETURN_IF_ERROR(CheckResult(method, names[std::min(i, names.size() - 1)], results[i]));
  }
  Operands made;
  const auto first = static_cast<int32_t>(known_.size());
  for (const Descriptor& result : results) made.push_back(Add(Kind::kResult, result));
  calls_.push_back({method, std::move(arguments), std::move(options), first, results.size()});
  return made;
}

Result<Operand> ProgramBuilder::Call(std::string_view method, Parameters arguments,
                                     Parameters options, Descriptor result) {
  constexpr std::string_view kOutput = "output";
  TENON_ASSIGN_OR_RETURN(const Operands made,
                         CallForSeveral(method, std::move(arguments), std::move(options),
                                        {&result, 1}, {&kOutput, 1}));
  return made.front();
}

Result<Operand> ProgramBuilder::Unary(std::string_view method, Operand x, Parameters options) {
  return Call(method, {{"input", x}}, std::move(options), {TypeOf(x), ShapeOf(x)});
}

Result<Operand> ProgramBuilder::Binary(std::string_view method, Operand a, Operand b,
                                       DataType type) {
  if (TypeOf(a) != TypeOf(b)) {
    return NotImplemented("{} of {} and {}", method, OperandTypeName(TypeOf(a)),
                          OperandTypeName(TypeOf(b)));
  }
  TENON_ASSIGN_OR_RETURN(const SymbolicShape shape, BroadcastShapes(ShapeOf(a), ShapeOf(b)));
  return Call(method, {{"a", a}, {"b", b}}, {},
              {type == DataType::kUndefined ? TypeOf(a) : type, *shape.ToShape()});
}

Result<Operand> ProgramBuilder::Truth(std::string_view method, Operand x) {
  return Call(method, {{"a", x}}, {}, {DataType::kUint8, ShapeOf(x)});
}

Result<Operand> ProgramBuilder::Reshape(Operand x, const Shape& shape) {
  return Call("reshape", {{"input", x}, {"", Numbers(shape.begin(), shape.end())}}, {},
              {TypeOf(x), shape});
}

Result<Operand> ProgramBuilder::Transpose(Operand x, const Numbers& permutation) {
  Shape shape = ShapeOf(x);
  for (size_t i = 0; i < permutation.size(); ++i) {
    shape[i] = ShapeOf(x)[static_cast<size_t>(permutation[i])];
  }
  return Call("transpose", {{"input", x}}, {{"permutation", permutation}}, {TypeOf(x), shape});
}

Result<Operand> ProgramBuilder::Cast(Operand x, DataType type) {
  if (TypeOf(x) == type) return x;
  return Call("cast", {{"input", x}, {"", OperandTypeName(type)}}, {}, {type, ShapeOf(x)});
}

Result<Operand> ProgramBuilder::Reduce(std::string_view method, Operand x, const Numbers& axes,
                                       bool keeps_axes) {
  Shape shape;
  for (size_t axis = 0; axis < RankOf(x); ++axis) {
    const bool is_reduced =
        std::find(axes.begin(), axes.end(), static_cast<int64_t>(axis)) != axes.end();
    if (!is_reduced || keeps_axes) shape.Append(is_reduced ? 1 : ShapeOf(x)[axis]);
  }
  return Call(method, {{"input", x}}, {{"axes", axes}, {"keepDimensions", keeps_axes}},
              {TypeOf(x), shape});
}

Result<Operand> ProgramBuilder::Slice(Operand x, const Numbers& starts, const Numbers& sizes) {
  return Call("slice", {{"input", x}, {"", starts}, {"", sizes}}, {},
              {TypeOf(x), Shape(std::span<const int64_t>(sizes))});
}

Status ProgramBuilder::Output(std::string name, DataType type, Operand operand) {
  const auto is_output = [&](const NamedOperand& one) { return one.operand == operand; };
  // An output is neither an input nor a constant, and an operand is at most one output (WB-52).
  if (At(operand).kind != Kind::kResult ||
      std::any_of(outputs_.begin(), outputs_.end(), is_output)) {
    TENON_ASSIGN_OR_RETURN(operand, Unary("identity", operand));
  }
  if (RankOf(operand) == 0 && limits_.output().min_rank > 0) {
    TENON_ASSIGN_OR_RETURN(operand, Reshape(operand, Shape{1}));
  }
  TENON_RETURN_IF_ERROR(CheckBound(limits_.output(), "outputs", At(operand).is));
  outputs_.push_back({std::move(name), type, operand});
  return OkStatus();
}

std::vector<bool> ProgramBuilder::FindNeeded(std::vector<bool>& is_call_needed) const {
  std::vector<bool> is_needed(known_.size(), false);
  const auto need = [&](Operand operand) { is_needed[static_cast<size_t>(operand.index)] = true; };
  for (const NamedOperand& output : outputs_) need(output.operand);
  is_call_needed.assign(calls_.size(), false);
  for (size_t i = calls_.size(); i-- > 0;) {
    const CallRecord& call = calls_[i];
    const auto first = is_needed.begin() + call.first_result;
    if (std::find(first, first + static_cast<ptrdiff_t>(call.results), true) ==
        first + static_cast<ptrdiff_t>(call.results)) {
      continue;
    }
    is_call_needed[i] = true;
    for (const Parameters* const list : {&call.arguments, &call.options}) {
      for (const Parameter& one : *list) ForEachOperand(one.value, need);
    }
  }
  return is_needed;
}

std::vector<Tensor> ProgramBuilder::constants() const {
  std::vector<bool> is_call_needed;
  const std::vector<bool> is_needed = FindNeeded(is_call_needed);
  std::vector<Tensor> tensors;
  for (const auto& [operand, tensor] : constants_) {
    if (is_needed[static_cast<size_t>(operand.index)]) tensors.push_back(tensor);
  }
  return tensors;
}

std::string ProgramBuilder::ToText() const {
  std::vector<bool> is_call_needed;
  const std::vector<bool> is_needed = FindNeeded(is_call_needed);
  const auto needs = [&](Operand operand) { return is_needed[static_cast<size_t>(operand.index)]; };
  std::vector<int32_t> numbers(known_.size(), -1);
  int32_t next = 0;
  for (const NamedOperand& input : inputs_) {
    if (needs(input.operand)) numbers[static_cast<size_t>(input.operand.index)] = next++;
  }
  for (const auto& [operand, tensor] : constants_) {
    if (needs(operand)) numbers[static_cast<size_t>(operand.index)] = next++;
  }
  for (size_t i = 0; i < calls_.size(); ++i) {
    for (size_t result = 0; is_call_needed[i] && result < calls_[i].results; ++result) {
      numbers[static_cast<size_t>(calls_[i].first_result) + result] = next++;
    }
  }
  Writer writer(numbers);
  JsonWriter& json = writer.json();
  const auto write_named = [&](const NamedOperand& one, bool has_number) {
    json.BeginObject();
    json.Key("name").Text(one.name);
    if (has_number) json.Key("operand").Integer(writer.NumberOf(one.operand));
    writer.Write(At(one.operand).is);
    const bool is_plain = one.type == TypeOf(one.operand) || one.type == DataType::kBool;
    if (!is_plain || (one.type == DataType::kBool && TypeOf(one.operand) != DataType::kUint8)) {
      json.Key("coreType").Text(one.type == DataType::kBool ? "uint8" : OperandTypeName(one.type));
    }
    json.EndObject();
  };
  json.BeginObject();
  json.Key("inputs").BeginArray();
  for (const NamedOperand& input : inputs_) {
    if (needs(input.operand)) write_named(input, false);
  }
  json.EndArray();
  json.Key("constants").BeginArray();
  for (const auto& [operand, tensor] : constants_) {
    if (!needs(operand)) continue;
    json.BeginObject();
    writer.Write(At(operand).is);
    json.Key("address").Integer(reinterpret_cast<uintptr_t>(tensor.raw()));
    json.Key("byteLength").Integer(tensor.bytes());
    json.EndObject();
  }
  json.EndArray();
  json.Key("calls").BeginArray();
  for (size_t i = 0; i < calls_.size(); ++i) {
    if (!is_call_needed[i]) continue;
    const CallRecord& call = calls_[i];
    json.BeginObject();
    json.Key("method").Text(call.method);
    json.Key("args").BeginArray();
    for (const Parameter& one : call.arguments) writer.Write(one.value);
    json.EndArray();
    if (!call.options.empty()) {
      json.Key("options").BeginObject();
      for (const Parameter& one : call.options) {
        json.Key(one.name);
        writer.Write(one.value);
      }
      json.EndObject();
    }
    json.Key("results").Integer(call.results);
    json.EndObject();
  }
  json.EndArray();
  json.Key("outputs").BeginArray();
  for (const NamedOperand& output : outputs_) write_named(output, true);
  json.EndArray();
  json.EndObject();
  return json.text();
}

}  // namespace tenon::webnn
