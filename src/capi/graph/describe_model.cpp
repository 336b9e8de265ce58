#include "capi/graph/describe_model.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/json_writer.h"
#include "capi/boundary/arguments.h"
#include "capi/boundary/status.h"
#include "capi/value/allocator.h"
#include "ir/model_summary.h"
#include "ir/onnx_reader.h"
#include "ops/framework/registry.h"

namespace tenon::capi {
namespace {

void WriteHead(const Model& model, JsonWriter& json) {
  json.Key("ir_version").Integer(model.ir_version);
  json.Key("producer_name").Text(model.producer_name);
  json.Key("producer_version").Text(model.producer_version);
  json.Key("domain").Text(model.domain);
  json.Key("model_version").Integer(model.model_version.value_or(0));
  json.Key("doc_string").Text(model.doc_string);
  json.Key("graph_name").Text(model.graph->name);
  json.Key("opsets").BeginArray();
  for (const auto& [domain, version] : model.opsets) {
    json.BeginObject();
    json.Key("domain").Text(domain);
    json.Key("version").Integer(version);
    json.EndObject();
  }
  json.EndArray();
  json.Key("metadata").BeginObject();
  for (const auto& [key, text] : model.metadata) json.Key(key).Text(text);
  json.EndObject();
  json.Key("functions").BeginArray();
  for (const Function& function : model.functions) {
    json.BeginObject();
    json.Key("domain").Text(function.domain);
    json.Key("name").Text(function.name);
    json.Key("nodes").Integer(function.body->node_count());
    json.EndObject();
  }
  json.EndArray();
}

void WriteValue(const std::string& name, const ValueType& type, JsonWriter& json) {
  json.BeginObject();
  json.Key("name").Text(name);
  json.Key("type").Text(type.TypeName());
  json.Key("shape");
  if (type.shape) {
    json.BeginArray();
    for (const Dim& dim : *type.shape) {
      if (dim.is_number()) {
        json.Integer(dim.value());
      } else {
        json.Text(dim.ToString());
      }
    }
    json.EndArray();
  } else {
    json.Null();
  }
  json.EndObject();
}

void WriteInterface(const Graph& graph, JsonWriter& json) {
  json.Key("inputs").BeginArray();
  for (const ValueId id : graph.inputs) {
    const ValueInfo& value = graph.value(id);
    if (!value.initializer.has_value()) WriteValue(value.name, value.type, json);
  }
  json.EndArray();
  json.Key("outputs").BeginArray();
  for (const GraphOutput& output : graph.outputs()) {
    WriteValue(output.name, graph.value(output.value).type, json);
  }
  json.EndArray();
}

void WriteOperators(const ModelSummary& summary, JsonWriter& json) {
  using Entry = std::pair<std::pair<std::string, std::string>, size_t>;
  std::vector<Entry> operators(summary.operators.begin(), summary.operators.end());
  std::stable_sort(operators.begin(), operators.end(),
                   [](const Entry& a, const Entry& b) { return a.second > b.second; });
  json.Key("operators").BeginArray();
  for (const auto& [name, count] : operators) {
    json.BeginObject();
    json.Key("domain").Text(name.first);
    json.Key("op_type").Text(name.second);
    json.Key("count").Integer(count);
    json.EndObject();
  }
  json.EndArray();
  json.Key("nodes").Integer(summary.nodes);
}

void WriteMemory(const ModelSummary& summary, JsonWriter& json) {
  json.Key("parameters").BeginObject();
  json.Key("tensors").Integer(summary.parameters.tensors);
  json.Key("elements").Integer(summary.parameters.elements);
  json.Key("bytes").Integer(summary.parameters.bytes);
  json.EndObject();
  json.Key("activations").BeginObject();
  json.Key("peak_bytes").Integer(summary.activations.peak_bytes);
  json.Key("unknown_values").Integer(summary.activations.unknown_values);
  json.Key("assumed_dims").BeginArray();
  for (const std::string& name : summary.activations.assumed_dims) json.Text(name);
  json.EndArray();
  json.EndObject();
}

std::string SummaryText(const Model& model, const ModelSummary& summary) {
  JsonWriter json;
  json.BeginObject();
  WriteHead(model, json);
  WriteInterface(*model.graph, json);
  WriteOperators(summary, json);
  WriteMemory(summary, json);
  json.Key("problem");
  if (summary.problem.ok()) {
    json.Null();
  } else {
    json.Text(summary.problem.message());
  }
  json.EndObject();
  return json.text();
}

}  // namespace

OrtStatus* DescribeModel(const ORTCHAR_T* model_path, const char* const* dim_names,
                         const int64_t* dim_sizes, size_t dim_count, OrtAllocator* allocator,
                         char** json) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(model_path);
    TENON_RETURN_IF_NULL_ARRAY(dim_names, dim_count);
    TENON_RETURN_IF_NULL_ARRAY(dim_sizes, dim_count);
    TENON_RETURN_IF_NULL(allocator);
    TENON_RETURN_IF_NULL(json);
    DimSizes sizes;
    for (size_t i = 0; i < dim_count; ++i) {
      TENON_RETURN_IF_NULL(dim_names[i]);
      sizes[dim_names[i]] = dim_sizes[i];
    }
    TENON_ASSIGN_OR_RETURN(Model model, ReadModel(std::string(model_path)));
    TENON_ASSIGN_OR_RETURN(const ModelSummary summary, Summarize(model, OpShapeFunctions(), sizes));
    TENON_ASSIGN_OR_RETURN(*json, CopyString(allocator, SummaryText(model, summary)));
    return OkStatus();
  });
}

}  // namespace tenon::capi
