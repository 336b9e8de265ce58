// Reads GraphProto, and the parts that a FunctionProto shares with it, into a Graph.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/model.h"
#include "ir/read_context.h"

namespace tenon {

// A ValueInfoProto, or only the name of a function's input or output.
struct ValueDeclaration {
  std::string_view name;
  ValueType type;
  std::string doc_string;
  Metadata metadata;
};

// The content of a GraphProto or FunctionProto; the views are of serialized messages.
struct GraphFields {
  std::string name;
  std::string doc_string;
  Metadata metadata;
  std::vector<std::string_view> nodes;
  std::vector<std::string_view> initializers;
  std::vector<std::string_view> sparse_initializers;
  std::vector<ValueDeclaration> inputs;
  std::vector<ValueDeclaration> outputs;
  std::vector<std::string_view> value_infos;
  std::vector<QuantizationAnnotation> quantization_annotations;
};

Result<GraphFields> ReadGraphFields(std::string_view bytes, ReadContext& context);
Result<ValueDeclaration> ReadValueInfo(std::string_view bytes, WireErrors& errors);

// The surroundings of a graph.
struct GraphScope {
  const OpsetImports* opsets = nullptr;  // of the model or function
  // Whether attributes may refer to attributes of a function.
  bool in_function = false;
  // Whether undefined names become values without a producer: a training graph uses values of the
  // model's main graph.
  bool may_use_others_values = false;
  // Whether it is the model's main graph.
  bool is_main = false;
  // The function or model that names the opset imports, for messages.
  std::string_view importer = "model";
};

// Resolves names to values. Nodes may be in any order. A name that the graph does not define is
// captured from the outer graph. A name that both define refers to the inner value. Errors:
// kInvalidProtobuf; kInvalidGraph for undefined and twice-defined names, cycles, operator domains
// without opset import, and errors in tensors, types and attributes.
Result<std::unique_ptr<Graph>> BuildGraph(GraphFields fields, const GraphScope& scope,
                                          ReadContext& context);

// A default value of a function's attribute.
Result<Attribute> ReadFunctionAttribute(std::string_view bytes, const GraphScope& scope,
                                        ReadContext& context);

}  // namespace tenon
