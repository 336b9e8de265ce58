// tenon inspect: shows the contents of a model.
#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "description.h"
#include "text.h"

namespace tenon::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string Text(const Json& json) { return json.get<std::string>(); }

std::string DomainText(const std::string& domain) { return domain.empty() ? "ai.onnx" : domain; }

// "[batch, 3]"
std::string ShapeOf(const Json& shape) {
  if (shape.is_null()) return "of any shape";
  std::vector<std::string> dims;
  for (const Json& dim : shape) dims.push_back(dim.is_string() ? Text(dim) : dim.dump());
  return Format("[{}]", Join(dims, ", "));
}

void PrintHead(const Json& json) {
  std::vector<std::string> opsets;
  for (const Json& opset : json["opsets"]) {
    opsets.push_back(Format("{} {}", DomainText(Text(opset["domain"])), opset["version"].dump()));
  }
  std::vector<std::vector<std::string>> rows = {
      {"IR version", json["ir_version"].dump()},
      {"opsets", Join(opsets, ", ")},
      {"producer", Format("{} {}", Text(json["producer_name"]), Text(json["producer_version"]))},
      {"graph", Text(json["graph_name"])}};
  for (const auto& [key, text] : json["metadata"].items()) rows.push_back({key, Text(text)});
  Print("{}", TableText(rows, ""));
}

void PrintValues(const char* title, const Json& values) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& value : values) {
    rows.push_back({Text(value["name"]), Text(value["type"]), ShapeOf(value["shape"])});
  }
  Print("\n{}\n{}", title, TableText(rows, "  "));
}

void PrintOperators(const Json& json) {
  std::vector<std::vector<std::string>> rows;
  for (const Json& entry : json["operators"]) {
    const std::string domain = Text(entry["domain"]);
    rows.push_back({entry["count"].dump(), domain.empty()
                                               ? Text(entry["op_type"])
                                               : Format("{}.{}", domain, Text(entry["op_type"]))});
  }
  Print("\n{} nodes\n{}", json["nodes"].dump(), TableText(rows, "  "));
  for (const Json& function : json["functions"]) {
    Print("  function {}.{} of {} nodes\n", Text(function["domain"]), Text(function["name"]),
          function["nodes"].dump());
  }
}

void PrintMemory(const Json& json) {
  const Json& parameters = json["parameters"];
  const Json& activations = json["activations"];
  std::vector<std::string> remarks;
  for (const Json& dim : activations["assumed_dims"]) remarks.push_back(Text(dim) + " = 1");
  if (const auto unknown = activations["unknown_values"].get<size_t>(); unknown > 0) {
    remarks.push_back(Format("{} values of unknown size not counted", unknown));
  }
  Print("\nparameters   {} in {} tensors, {}\n", parameters["elements"].dump(),
        parameters["tensors"].dump(), BytesText(parameters["bytes"].get<double>()));
  Print("activations  about {} at most{}\n", BytesText(activations["peak_bytes"].get<double>()),
        remarks.empty() ? "" : Format(" ({})", Join(remarks, ", ")));
}

// Prints what the library logs about the QuantizeLinear and DequantizeLinear nodes of the model.
int InspectQuantization(const InspectCommand& command) {
  constexpr std::string_view kPrefix = "quantization: ";
  std::vector<std::string> log;
  SessionSettings settings{.model = command.model, .dims = command.dims};
  settings.config["tenon.quantization_report"] = "1";
  settings.log_level = ORT_LOGGING_LEVEL_INFO;
  settings.log = &log;
  const Model model(settings);
  std::erase_if(log, [&](const std::string& line) { return !line.starts_with(kPrefix); });
  for (std::string& line : log) line.erase(0, kPrefix.size());
  if (log.empty()) Fail("'{}': the library said nothing about its quantization", command.model);
  if (command.json) {
    size_t stay = 0, nodes = 0;
    std::sscanf(log[0].c_str(), "%zu of %zu", &stay, &nodes);
    Json json = {{"nodes", nodes}, {"stay", std::vector<std::string>(log.begin() + 1, log.end())}};
    Print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
    return 0;
  }
  for (const std::string& line : log) Print("{}\n", line);
  return 0;
}

}  // namespace

int Inspect(const InspectCommand& command) {
  if (command.quantization) return InspectQuantization(command);
  const Json json = DescribeModel(command.model, command.dims);
  if (command.json) {
    Print("{}\n", json.dump(2));
    return 0;
  }
  PrintHead(json);
  PrintValues("inputs", json["inputs"]);
  PrintValues("outputs", json["outputs"]);
  PrintOperators(json);
  PrintMemory(json);
  if (!json["problem"].is_null()) Print("\nproblem: {}\n", Text(json["problem"]));
  return 0;
}

}  // namespace tenon::cli
