// A model as read from a file: its graph, its functions, and everything else that a writer needs.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace tenon {

// Domain -> version. The domain "ai.onnx" is written "".
using OpsetImports = std::map<std::string, int32_t, std::less<>>;

// A model-local function. The inputs and outputs of `body` are the function's, by position, and
// attributes may refer to the function's attributes.
struct Function {
  std::string name;
  std::string domain;
  std::string overload;
  std::string doc_string;
  std::vector<std::string> required_attributes;
  std::vector<Attribute> attributes;  // those with defaults
  OpsetImports opsets;
  Metadata metadata;
  std::unique_ptr<Graph> body;
};

struct TrainingInfo {
  std::unique_ptr<Graph> initialization;
  std::unique_ptr<Graph> algorithm;
  Metadata initialization_binding;
  Metadata update_binding;
};

class ExternalPlaces;

struct Model {
  int64_t ir_version = 0;
  OpsetImports opsets;
  std::string producer_name;
  std::string producer_version;
  std::string domain;
  std::optional<int64_t> model_version;
  std::string doc_string;
  Metadata metadata;
  // The file that it was read from; "" if it was not read from a file.
  std::string path;
  // The positions of tensors in external files; null: there are none.
  std::shared_ptr<const ExternalPlaces> external_places;
  std::unique_ptr<Graph> graph;
  std::vector<Function> functions;
  std::vector<TrainingInfo> training_info;
  // Serialized DeviceConfigurationProto messages, kept for the writer.
  std::vector<std::string> device_configurations;
  // The tensors keep the files and buffers alive that initializers point into.

  // Everything but the graphs of the model, its functions and its training information.
  Model CopyWithoutGraphs() const;

  // The function that a node calls, or null.
  const Function* FindFunction(const Node& node) const;
};

}  // namespace tenon
