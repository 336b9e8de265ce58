#include "host_values.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string_view>
#include <unordered_map>

namespace codegen {
namespace {

using Inputs = std::vector<const Tensor*>;
using Values = std::vector<int64_t>;
using Evaluate = std::optional<KnownTensor> (*)(const Node& node, const Inputs& inputs);

const Values* Known(const Inputs& inputs, size_t index) {
  if (index >= inputs.size() || !inputs[index] || !inputs[index]->known) return nullptr;
  return &*inputs[index]->known;
}

std::optional<KnownTensor> EvaluateShape(const Node& node, const Inputs& inputs) {
  if (!inputs[0]) return std::nullopt;
  const Shape& shape = inputs[0]->shape;
  const auto rank = static_cast<int64_t>(shape.size());
  const auto clamp = [rank](int64_t i) {
    return std::clamp(i < 0 ? i + rank : i, int64_t{0}, rank);
  };
  const int64_t start = clamp(node.Int("start", 0));
  const int64_t end = std::max(start, clamp(node.Int("end", rank)));
  return KnownTensor{
      DataType::kInt64, {end - start}, Values(shape.begin() + start, shape.begin() + end)};
}

std::optional<KnownTensor> EvaluateSize(const Node&, const Inputs& inputs) {
  if (!inputs[0]) return std::nullopt;
  return KnownTensor{DataType::kInt64, {}, {ElementCount(inputs[0]->shape)}};
}

std::optional<KnownTensor> EvaluateGather(const Node& node, const Inputs& inputs) {
  const Values* data = Known(inputs, 0);
  const Values* indices = Known(inputs, 1);
  if (!data || !indices || inputs[0]->shape.size() != 1 || node.Int("axis", 0) > 0) {
    return std::nullopt;
  }
  KnownTensor result{inputs[0]->type, inputs[1]->shape, {}};
  const auto size = static_cast<int64_t>(data->size());
  for (int64_t index : *indices) {
    if (index < 0) index += size;
    if (index < 0 || index >= size) return std::nullopt;
    result.values.push_back((*data)[static_cast<size_t>(index)]);
  }
  return result;
}

std::optional<KnownTensor> EvaluateConcat(const Node&, const Inputs& inputs) {
  KnownTensor result{inputs[0]->type, {0}, {}};
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Values* values = Known(inputs, i);
    if (!values || inputs[i]->shape.size() != 1) return std::nullopt;
    result.values.insert(result.values.end(), values->begin(), values->end());
  }
  result.shape[0] = static_cast<int64_t>(result.values.size());
  return result;
}

// Squeeze, Unsqueeze, Identity and Reshape of at most one axis: the contents stay.
std::optional<KnownTensor> EvaluateReshape(const Node& node, const Inputs& inputs) {
  const Values* values = Known(inputs, 0);
  if (!values) return std::nullopt;
  const auto count = static_cast<int64_t>(values->size());
  KnownTensor result{inputs[0]->type, inputs[0]->shape, *values};
  if (node.type == "Identity") return result;
  if (node.type == "Squeeze") {
    if (count != 1) return std::nullopt;  // of several axes: left to the device
    const size_t axes = node.Has("axes")   ? node.Ints("axes", {}).size()
                        : Known(inputs, 1) ? Known(inputs, 1)->size()
                                           : inputs[0]->shape.size();
    if (axes > result.shape.size()) return std::nullopt;
    result.shape.assign(result.shape.size() - axes, 1);
    return result;
  }
  if (node.type == "Unsqueeze") {
    if (!inputs[0]->shape.empty()) return std::nullopt;
    const size_t axes = node.Has("axes")   ? node.Ints("axes", {}).size()
                        : Known(inputs, 1) ? Known(inputs, 1)->size()
                                           : 0;
    result.shape.assign(axes, 1);
    return result;
  }
  const Values* shape = Known(inputs, 1);
  if (!shape || shape->size() > 1) return std::nullopt;
  if (shape->empty() ? count != 1 : (*shape)[0] != -1 && (*shape)[0] != count) return std::nullopt;
  result.shape = shape->empty() ? Shape{} : Shape{count};
  return result;
}

std::optional<KnownTensor> EvaluateSlice(const Node& node, const Inputs& inputs) {
  const Values* data = Known(inputs, 0);
  if (!data || inputs[0]->shape.size() != 1) return std::nullopt;
  const Values* starts = Known(inputs, 1);
  const Values* ends = Known(inputs, 2);
  if (!starts || !ends || starts->size() != 1 || ends->size() != 1) return std::nullopt;
  if (inputs.size() > 4 && inputs[4] && (!Known(inputs, 4) || Known(inputs, 4)->at(0) != 1)) {
    return std::nullopt;
  }
  const auto size = static_cast<int64_t>(data->size());
  const auto clamp = [size](int64_t i) {
    return std::clamp(i < 0 ? i + size : i, int64_t{0}, size);
  };
  const int64_t start = clamp(starts->front());
  const int64_t end = std::max(start, clamp(std::max(ends->front(), -size)));
  static_cast<void>(node);
  return KnownTensor{
      inputs[0]->type, {end - start}, Values(data->begin() + start, data->begin() + end)};
}

std::optional<KnownTensor> EvaluateCast(const Node& node, const Inputs& inputs) {
  const Values* values = Known(inputs, 0);
  const DataType to = FromOnnx(static_cast<ONNXTensorElementDataType>(node.Int("to", 0)));
  if (!values || to == DataType::kNone || IsFloat(to)) return std::nullopt;
  KnownTensor result{to, inputs[0]->shape, *values};
  for (int64_t& value : result.values) {
    if (to == DataType::kBool) value = value != 0;
    if (to == DataType::kInt32) value = static_cast<int32_t>(value);
  }
  return result;
}

// Wraps around, as the device does.
int64_t Wrapping(std::string_view type, int64_t a, int64_t b) {
  const auto x = static_cast<uint64_t>(a);
  const auto y = static_cast<uint64_t>(b);
  if (type == "Add") return static_cast<int64_t>(x + y);
  if (type == "Sub") return static_cast<int64_t>(x - y);
  if (type == "Mul") return static_cast<int64_t>(x * y);
  if (type == "Div") return b == -1 ? static_cast<int64_t>(0 - x) : a / b;
  if (type == "Equal") return a == b;
  if (type == "Less") return a < b;
  return a > b;
}

std::optional<KnownTensor> EvaluateBinary(const Node& node, const Inputs& inputs) {
  const Values* a = Known(inputs, 0);
  const Values* b = Known(inputs, 1);
  // Of equal sizes, or one of them a single number.
  if (!a || !b || (a->size() != b->size() && a->size() != 1 && b->size() != 1)) {
    return std::nullopt;
  }
  auto shape = BroadcastShape(inputs[0]->shape, inputs[1]->shape);
  const size_t count = std::max(a->size(), b->size());
  if (!shape.ok() || ElementCount(*shape) != static_cast<int64_t>(count)) return std::nullopt;
  const bool compares = node.type == "Equal" || node.type == "Less" || node.type == "Greater";
  KnownTensor result{compares ? DataType::kBool : inputs[0]->type, *shape, {}};
  for (size_t i = 0; i < count; ++i) {
    const int64_t y = (*b)[b->size() == 1 ? 0 : i];
    if (node.type == "Div" && y == 0) return std::nullopt;
    result.values.push_back(Wrapping(node.type, (*a)[a->size() == 1 ? 0 : i], y));
  }
  return result;
}

std::optional<KnownTensor> EvaluateWhere(const Node&, const Inputs& inputs) {
  const Values* condition = Known(inputs, 0);
  const Values* a = Known(inputs, 1);
  const Values* b = Known(inputs, 2);
  if (!condition || !a || !b || a->size() != b->size() || condition->size() != a->size()) {
    return std::nullopt;
  }
  KnownTensor result{inputs[1]->type, inputs[1]->shape, {}};
  for (size_t i = 0; i < a->size(); ++i) {
    result.values.push_back((*condition)[i] ? (*a)[i] : (*b)[i]);
  }
  return result;
}

std::optional<KnownTensor> EvaluateConstantOfShape(const Node& node, const Inputs& inputs) {
  const Values* shape = Known(inputs, 0);
  const auto it = node.attributes.find("value");
  if (!shape || it == node.attributes.end()) return std::nullopt;  // the default is a float
  const auto* tensor = std::get_if<HostTensor>(&it->second);
  const auto values = tensor ? tensor->Integers() : std::nullopt;
  if (!values || values->size() != 1) return std::nullopt;
  int64_t count = 1;
  for (const int64_t dim : *shape) {
    if (dim < 0 || dim > kMaxKnownElements) return std::nullopt;
    count *= dim;
    if (count > kMaxKnownElements) return std::nullopt;
  }
  return KnownTensor{tensor->type, *shape, Values(static_cast<size_t>(count), values->front())};
}

std::optional<KnownTensor> EvaluateRange(const Node&, const Inputs& inputs) {
  const Values* start = Known(inputs, 0);
  const Values* limit = Known(inputs, 1);
  const Values* step = Known(inputs, 2);
  if (!start || !limit || !step || step->at(0) == 0) return std::nullopt;
  KnownTensor result{inputs[0]->type, {}, {}};
  const auto difference = static_cast<double>(limit->at(0)) - static_cast<double>(start->at(0));
  if (difference / static_cast<double>(step->at(0)) > static_cast<double>(kMaxKnownElements)) {
    return std::nullopt;
  }
  for (int64_t value = start->at(0); step->at(0) > 0 ? value < limit->at(0) : value > limit->at(0);
       value += step->at(0)) {
    result.values.push_back(value);
  }
  result.shape = {static_cast<int64_t>(result.values.size())};
  return result;
}

std::optional<KnownTensor> EvaluateReduceProd(const Node& node, const Inputs& inputs) {
  const Values* values = Known(inputs, 0);
  if (!values || inputs[0]->shape.size() != 1) return std::nullopt;
  int64_t product = 1;
  for (const int64_t value : *values) product = Wrapping("Mul", product, value);
  return KnownTensor{inputs[0]->type, node.Int("keepdims", 1) ? Shape{1} : Shape{}, {product}};
}

std::optional<KnownTensor> EvaluateConstant(const Node& node, const Inputs&) {
  const auto it = node.attributes.find("value");
  if (it == node.attributes.end()) return std::nullopt;
  const auto* tensor = std::get_if<HostTensor>(&it->second);
  const auto values = tensor ? tensor->Integers() : std::nullopt;
  if (!values || static_cast<int64_t>(values->size()) > kMaxKnownElements) return std::nullopt;
  return KnownTensor{tensor->type, tensor->shape, *values};
}

Evaluate Find(const Node& node) {
  static const std::unordered_map<std::string_view, Evaluate> kEvaluators = {
      {"Shape", EvaluateShape},       {"Size", EvaluateSize},
      {"Gather", EvaluateGather},     {"Concat", EvaluateConcat},
      {"Squeeze", EvaluateReshape},   {"Unsqueeze", EvaluateReshape},
      {"Identity", EvaluateReshape},  {"Reshape", EvaluateReshape},
      {"Slice", EvaluateSlice},       {"Cast", EvaluateCast},
      {"Add", EvaluateBinary},        {"Sub", EvaluateBinary},
      {"Mul", EvaluateBinary},        {"Div", EvaluateBinary},
      {"Equal", EvaluateBinary},      {"Less", EvaluateBinary},
      {"Greater", EvaluateBinary},    {"Where", EvaluateWhere},
      {"Range", EvaluateRange},       {"ReduceProd", EvaluateReduceProd},
      {"Constant", EvaluateConstant}, {"ConstantOfShape", EvaluateConstantOfShape},
  };
  if (!node.domain.empty()) return nullptr;
  const auto it = kEvaluators.find(node.type);
  return it == kEvaluators.end() ? nullptr : it->second;
}

}  // namespace

bool IsEvaluatedOnHost(const Node& node) { return Find(node) != nullptr; }

std::optional<KnownTensor> EvaluateOnHost(const Node& node, const Inputs& inputs) {
  const Evaluate evaluate = Find(node);
  if (!evaluate || node.outputs.size() != 1) return std::nullopt;
  auto result = evaluate(node, inputs);
  if (result && static_cast<int64_t>(result->values.size()) > kMaxKnownElements) {
    return std::nullopt;
  }
  return result;
}

HostTensor ToHostTensor(DataType type, const Shape& shape, const std::vector<int64_t>& values) {
  HostTensor tensor{type, shape, std::vector<std::byte>(values.size() * SizeOf(type))};
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t wide = values[i];
    const auto narrow = static_cast<int32_t>(wide);
    const auto flag = static_cast<uint8_t>(wide != 0);
    const void* source = type == DataType::kInt64   ? static_cast<const void*>(&wide)
                         : type == DataType::kInt32 ? static_cast<const void*>(&narrow)
                                                    : &flag;
    std::memcpy(tensor.bytes.data() + i * SizeOf(type), source, SizeOf(type));
  }
  return tensor;
}

}  // namespace codegen
