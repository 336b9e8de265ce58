#include "expression_writer.h"

#include <algorithm>
#include <numeric>

namespace codegen {
namespace {

// Kernels grow with their expressions, and so does the number of their parameters, of which a
// device need only take 1 KiB.
constexpr int kMaxExpressions = 16;
constexpr size_t kMaxArguments = 48;

// The distance between neighbours along the last axis that has more than one.
int64_t InnermostStride(const Shape& shape, const Shape& strides) {
  for (size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] != 1) return strides[axis];
  }
  return 1;
}

std::string Substitute(const std::string& expression, const std::vector<std::string>& names) {
  std::string result;
  for (size_t i = 0; i < expression.size(); ++i) {
    if (expression[i] == '$' && i + 1 < expression.size()) {
      result += names[static_cast<size_t>(expression[++i] - '0')];
    } else {
      result += expression[i];
    }
  }
  return result;
}

}  // namespace

// Kernels without a root go through memory in the order of the target.
void ExpressionWriter::OrderAxes(const Tensor& target) {
  order_.resize(shape_.size());
  std::iota(order_.begin(), order_.end(), size_t{0});
  if (!target.IsChannelsLast()) return;
  std::stable_sort(order_.begin(), order_.end(),
                   [&](size_t a, size_t b) { return target.strides[a] > target.strides[b]; });
}

Shape ExpressionWriter::Ordered(const Shape& axes) const {
  Shape ordered;
  for (const size_t axis : order_) ordered.push_back(axes[axis]);
  return ordered;
}

bool ExpressionWriter::HasRoot(const Tensor& tensor) const {
  if (!tensor.deferred) return false;
  const auto& operands = tensor.deferred->operands;
  return tensor.deferred->root ||
         std::any_of(operands.begin(), operands.end(), [&](const auto& o) { return HasRoot(*o); });
}

Result<Launch> ExpressionWriter::Write(const TensorRef& tensor, const Tensor& target) {
  if (HasRoot(*tensor)) {
    order_.resize(shape_.size());
    std::iota(order_.begin(), order_.end(), size_t{0});
  } else {
    OrderAxes(target);
    is_vector_ = CanBeVector();
  }
  PLUGIN_ASSIGN_OR_RETURN(const std::string value, Compute(tensor));
  KernelBody body = root_ ? root_(writer_) : ElementwiseBody();
  const std::string count =
      root_ ? "" : writer_.Int(ElementCount(shape_));  // the last argument of ElementwiseBody
  Elements output = writer_.Output(target);
  std::string offset = writer_.Offset(Ordered(target.shape), Ordered(target.strides), "i");
  const std::string address =
      output.Address(writer_.Offset(Ordered(target.shape), Ordered(target.strides), "start"));
  const bool stores_vector =
      is_vector_ && InnermostStride(Ordered(target.shape), Ordered(target.strides)) == 1;
  const std::string vector_type = fmt::format("EIGHT({})", StoredNameOf(target.stored_type));
  if (stores_vector) {
    output = Elements("result.x", target.stored_type);
    offset = "turn";
  }
  const std::string store = fmt::format(
      "#define STORE(index_, value_) do {{ const int i = (index_); const {} r = "
      "(value_); {}{}; }} while (0)\n",
      NameOf(root_type_), code_, output.Write(offset, value));
  if (is_vector_) {
    body.code = fmt::format(
        "  const int start = get_global_id(0) * 8;\n"
        "  if (start >= {}) return;\n{}{}"
        "  for (int turn = 0; turn < 8; ++turn) STORE(start + turn, 0);\n{}",
        count, vectors_, stores_vector ? fmt::format("  {} result;\n", vector_type) : "",
        stores_vector ? fmt::format("  *({}*)({}) = result;\n", vector_type, address) : "");
  } else if (!root_) {
    body.code = fmt::format(
        "  const int start = get_group_id(0) * {0} + get_local_id(0);\n"
        "  for (int item = start; item < start + {0} && item < {1}; item += {2}) STORE(item, 0);",
        planner_.group_size() * ElementsPerItem(), count, planner_.group_size());
  }
  Launch launch;
  launch.name = body.name;
  launch.source =
      std::string(planner_.target().prelude) + writer_.Program(body.name, store + body.code);
  launch.arguments = writer_.arguments();
  launch.global = body.global;
  launch.local = body.local;
  return launch;
}

// Eight neighbours lie in one row of every operand.
bool ExpressionWriter::CanBeVector() const {
  constexpr int64_t kEnough = 100'000;  // for all processors
  if (!planner_.target().has_vectors || ElementCount(shape_) < kEnough) return false;
  const Shape ordered = Ordered(shape_);
  const auto last =
      std::find_if(ordered.rbegin(), ordered.rend(), [](int64_t n) { return n != 1; });
  return last != ordered.rend() && *last % 8 == 0;
}

// Elements of a tensor that is read: those of eight neighbours at once, where they lie side by
// side.
Elements ExpressionWriter::InputElements(const Tensor& tensor, std::string& index) {
  const Elements elements = writer_.Input(tensor);
  const Shape shape = Ordered(shape_);
  const Shape strides = Ordered(BroadcastStrides(tensor, shape_));
  const int64_t stride = is_vector_ ? InnermostStride(shape, strides) : -1;
  if (stride == 0) {  // all eight are one
    index = writer_.Offset(shape, strides, "start");
    return elements;
  }
  index = writer_.Offset(shape, strides, "i");
  if (stride != 1 || tensor.offset % 8 != 0) return elements;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] != 1 && strides[axis] % 8 != 0 && strides[axis] != 1) return elements;
  }
  const std::string name = fmt::format("e{}", names_++);
  const std::string type = fmt::format("EIGHT({})", StoredNameOf(tensor.stored_type));
  vectors_ += fmt::format("  const {0} {1} = *(const {0}*)({2});\n", type, name,
                          elements.Address(writer_.Offset(shape, strides, "start")));
  index = "turn";
  return Elements(name + ".x", tensor.stored_type);
}

// Small tensors have too few elements for all processors as it is.
size_t ExpressionWriter::ElementsPerItem() const {
  if (is_vector_) return 8;
  constexpr int64_t kLarge = int64_t{1} << 20;
  return ElementCount(shape_) >= kLarge ? planner_.target().elements_per_item : 1;
}

KernelBody ExpressionWriter::ElementwiseBody() const {
  const size_t group = planner_.group_size();
  const size_t elements = group * ElementsPerItem();
  const auto count = static_cast<size_t>(ElementCount(shape_));
  return {.name = "elementwise",
          .code = {},
          .global = {(count + elements - 1) / elements * group, 1, 1},
          .local = {group, 1, 1}};
}

bool ExpressionWriter::CanInline(const Tensor& tensor) const {
  return tensor.deferred && !tensor.deferred->call &&
         ElementCount(tensor.shape) == ElementCount(shape_) && !(tensor.deferred->root && root_) &&
         tensor.deferred->size <= kMaxExpressions && writer_.arguments().size() < kMaxArguments;
}

Result<std::string> ExpressionWriter::Element(const TensorRef& tensor) {
  return CanInline(*tensor) ? Compute(tensor) : Load(tensor);
}

Result<std::string> ExpressionWriter::Compute(const TensorRef& tensor) {
  if (tensor->deferred->root) {
    root_ = tensor->deferred->root;
    root_type_ = tensor->type;
    return std::string("r");
  }
  std::vector<std::string> names;
  for (const TensorRef& operand : tensor->deferred->operands) {
    PLUGIN_ASSIGN_OR_RETURN(std::string name, Element(operand));
    names.push_back(std::move(name));
  }
  std::string name = fmt::format("v{}", names_++);
  code_ += fmt::format("const {} {} = {}; ", NameOf(tensor->type), name,
                       Substitute(tensor->deferred->expression, names));
  return name;
}

Result<std::string> ExpressionWriter::Load(const TensorRef& tensor) {
  if (tensor->scalar) return writer_.Float(*tensor->scalar);
  if (tensor->known && tensor->known->size() == 1 &&
      (*tensor->known)[0] == static_cast<int32_t>((*tensor->known)[0])) {
    return fmt::format("(({}){})", NameOf(tensor->type), writer_.Int((*tensor->known)[0]));
  }
  if (const auto it = loaded_.find(tensor.get()); it != loaded_.end()) return it->second;
  PLUGIN_RETURN_IF_ERROR(planner_.Store(tensor));
  std::string name = fmt::format("v{}", names_++);
  std::string offset;
  const Elements elements = InputElements(*tensor, offset);
  code_ += fmt::format("const {} {} = {}; ", NameOf(tensor->type), name, elements.Read(offset));
  loaded_.emplace(tensor.get(), name);
  return name;
}

}  // namespace codegen
