// Reads GraphProto, and what a FunctionProto shares with it, into a Graph.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/model.h"
#include "ir/read_context.h"

namespace tenon {

// A ValueInfoProto, or the name alone of a function's input or output.
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

// Where a graph stands.
struct GraphScope {
  const OpsetImports* opsets = nullptr;  // of the model or function
  // Whether attributes may refer to attributes of a function.
  bool in_function = false;
  // Whether names that are defined nowhere become values without producer: a training graph uses
  // those of the model's main graph.
  bool may_use_others_values = false;
  // Whether it is the model's main graph.
  bool is_main = false;
  // The function or model that names the opset imports, for messages.
  std::string_view importer = "model";
};

// Resolves names to values: nodes may come in any order, and a name that the graph does not define
// is a capture of the graph around it. A name that both define means the inner value. Errors:
// kInvalidProtobuf; kInvalidGraph for undefined and twice-defined names, cycles, operator domains
// without opset import, and what tensors, types and attributes get wrong.
Result<std::unique_ptr<Graph>> BuildGraph(GraphFields fields, const GraphScope& scope,
                                          ReadContext& context);

// A default value of a function's attribute.
Result<Attribute> ReadFunctionAttribute(std::string_view bytes, const GraphScope& scope,
                                        ReadContext& context);

}  // namespace tenon
