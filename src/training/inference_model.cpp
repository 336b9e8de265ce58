#include "training/inference_model.h"

#include <utility>
#include <vector>

#include "ir/graph.h"
#include "ir/onnx_writer.h"
#include "ir/passes.h"

namespace tenon {
namespace {

Status KeepOutputs(Graph& graph, std::span<const std::string> names) {
  if (names.empty()) return InvalidArgument("a model for inference needs at least one output");
  std::vector<GraphOutput> outputs;
  for (const std::string& name : names) {
    const ValueId value = graph.FindValue(name);
    if (value == ValueId::kNone) {
      return InvalidArgument("the evaluation model has no value '{}'", name);
    }
    outputs.push_back({name, value});
  }
  graph.ReplaceOutputs(std::move(outputs));
  RemoveDeadCode(graph);
  return OkStatus();
}

// The inputs that are parameters become initializers.
void FixParameters(Graph& graph, const Checkpoint& checkpoint) {
  std::vector<ValueId> inputs;
  for (const ValueId input : graph.inputs) {
    if (graph.IsUnused(input)) continue;
    const auto parameter = checkpoint.parameters.find(graph.value(input).name);
    if (parameter == checkpoint.parameters.end()) {
      inputs.push_back(input);
    } else {
      graph.SetInitializer(input, parameter->second.value);
    }
  }
  graph.inputs = std::move(inputs);
}

}  // namespace

Status WriteInferenceModel(Model model, std::span<const std::string> outputs,
                           const Checkpoint& checkpoint, const std::string& path) {
  if (checkpoint.is_nominal) {
    return InvalidArgument("the parameters of a nominal checkpoint have no values");
  }
  TENON_RETURN_IF_ERROR(KeepOutputs(*model.graph, outputs));
  FixParameters(*model.graph, checkpoint);
  WriteOptions options;
  if (checkpoint.has_external_data) {
    options.external_data_file = path.substr(path.find_last_of('/') + 1) + ".data";
    options.external_data_threshold = 64;
  }
  return WriteModelFile(model, path, options);
}

}  // namespace tenon
