// Writes graphs for tests in a few lines.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/make_attributes.h"

namespace tenon {

class GraphBuilder {
 public:
  explicit GraphBuilder(int32_t opset = 20) : opset_(opset) {}

  ValueId Input(std::string name, DataType type = DataType::kFloat,
                std::optional<SymbolicShape> shape = std::nullopt);
  ValueId Constant(Tensor tensor);
  ValueId Scalar(float value) { return Constant(Tensor::Of<float>({}, {value})); }
  ValueId Ints(std::vector<int64_t> values);
  // A node of ai.onnx named after its operator and number, and its only output.
  ValueId Op(std::string op_type, std::vector<ValueId> inputs,
             std::vector<Attribute> attributes = {}, std::string domain = "");
  std::vector<ValueId> OpN(std::string op_type, std::vector<ValueId> inputs, size_t outputs,
                           std::vector<Attribute> attributes = {}, std::string domain = "");
  // Gives a value of a node its shape, as inference would.
  ValueId Shaped(ValueId id, SymbolicShape shape, DataType type = DataType::kFloat);
  void Output(ValueId id);
  // The value in this graph, a subgraph, that stands for `outer`.
  ValueId Capture(ValueId outer, std::string name);

  std::unique_ptr<Graph> graph = std::make_unique<Graph>();

 private:
  int32_t opset_;
};

// "y = Relu(x)" per node in topological order, values by name, constants as "{1, 2}" if they have
// at most four elements, attributes as "Op<axis=1>(...)"; then "return y".
std::string GraphText(const Graph& graph);

}  // namespace tenon
