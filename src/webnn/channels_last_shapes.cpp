#include "webnn/channels_last_shapes.h"

#include <utility>

#include "ir/contrib_schema.h"
#include "ops/framework/registry.h"

namespace tenon::webnn {
namespace {

// [n, spatial..., c] as [n, c, spatial...].
SymbolicShape ChannelsFirst(const SymbolicShape& shape) {
  SymbolicShape turned = {shape[0], shape[shape.rank() - 1]};
  for (size_t i = 1; i + 1 < shape.rank(); ++i) turned.Append(shape[i]);
  return turned;
}

SymbolicShape ChannelsLast(const SymbolicShape& shape) {
  SymbolicShape turned = {shape[0]};
  for (size_t i = 2; i < shape.rank(); ++i) turned.Append(shape[i]);
  turned.Append(shape[1]);
  return turned;
}

// A node of the internal domain in the form of the standard's function: the image is input 0 and
// output 0.
class TurnedContext final : public ShapeContext {
 public:
  explicit TurnedContext(ShapeContext& inner) : inner_(inner) {}

  const Node& node() const override { return inner_.node(); }
  ValueType InputType(size_t i) const override {
    ValueType type = inner_.InputType(i);
    if (i == 0 && type.shape && type.shape->rank() >= 3) type.shape = ChannelsFirst(*type.shape);
    return type;
  }
  Result<SymbolicShape> Input(size_t i) const override {
    TENON_ASSIGN_OR_RETURN(SymbolicShape shape, inner_.Input(i));
    return i == 0 && shape.rank() >= 3 ? ChannelsFirst(shape) : std::move(shape);
  }
  const Tensor* InputData(size_t i) const override { return inner_.InputData(i); }
  Result<Dims> InputAsDims(size_t i) const override { return inner_.InputAsDims(i); }
  Status SetOutput(size_t i, SymbolicShape shape) override {
    return inner_.SetOutput(i, Turned(i, std::move(shape)));
  }
  Status SetOutput(size_t i, SymbolicShape shape, DataType type) override {
    return inner_.SetOutput(i, Turned(i, std::move(shape)), type);
  }
  Status SetOutputType(size_t i, ValueType type) override {
    return inner_.SetOutputType(i, std::move(type));
  }
  std::optional<Dims> KnownDims(size_t i) const override { return inner_.KnownDims(i); }
  void SetOutputDims(size_t i, Dims dims) override { inner_.SetOutputDims(i, std::move(dims)); }
  Result<std::vector<ValueType>> InferSubgraph(std::string_view attribute,
                                               std::vector<ValueType> inputs) override {
    return inner_.InferSubgraph(attribute, std::move(inputs));
  }

 private:
  static SymbolicShape Turned(size_t i, SymbolicShape shape) {
    return i == 0 && shape.rank() >= 3 ? ChannelsLast(shape) : std::move(shape);
  }

  ShapeContext& inner_;
};

Status InferTurned(const Node& node, ShapeContext& context) {
  const OpRow* const row = FindOpRow("", node.op_type, node.opset, DataType::kUndefined);
  if (row == nullptr || row->infer == nullptr) return UnknownShape();
  // Its scales and sizes are in the order of the axes.
  if (node.op_type == "Resize") return row->infer(node, context);
  TurnedContext turned(context);
  return row->infer(node, turned);
}

class Table final : public ShapeFunctionTable {
 public:
  ShapeFunction Find(const Node& node) const override {
    return node.domain == contrib::kInternalNhwc ? &InferTurned : OpShapeFunctions().Find(node);
  }
};

}  // namespace

const ShapeFunctionTable& ShapeFunctions() {
  static const Table& table = *new Table();
  return table;
}

}  // namespace tenon::webnn
