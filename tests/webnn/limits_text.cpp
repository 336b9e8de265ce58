#include "webnn/limits_text.h"

#include <map>
#include <sstream>
#include <string_view>

#include "base/json_writer.h"
#include "base/text.h"

namespace tenon::webnn {
namespace {

constexpr std::string_view kTable =
#include "limits.inc"
    ;

const std::map<char, std::string_view> kTypes = {
    {'f', "float32"}, {'h', "float16"}, {'l', "int64"}, {'L', "uint64"}, {'i', "int32"},
    {'I', "uint32"},  {'b', "int8"},    {'B', "uint8"}, {'n', "int4"},   {'N', "uint4"},
};

// "fh:1-4": types, and the least and greatest rank.
void WriteOperand(JsonWriter& json, std::string_view text, const LimitsChange& change,
                  bool has_types) {
  const size_t colon = text.find(':'), dash = text.find('-');
  json.BeginObject();
  json.Key("dataTypes").BeginArray();
  for (const char letter : text.substr(0, has_types ? colon : 0)) {
    if (change.without_types.find(letter) == std::string::npos) json.Text(kTypes.at(letter));
  }
  json.EndArray();
  json.Key("rankRange").BeginObject();
  json.Key("min").Json(text.substr(colon + 1, dash - colon - 1));
  json.Key("max").Json(text.substr(dash + 1));
  json.EndObject();
  json.EndObject();
}

}  // namespace

std::string LimitsText(const LimitsChange& change) {
  JsonWriter json;
  json.BeginObject();
  json.Key("preferredInputLayout").Text(change.prefers_channels_last ? "nhwc" : "nchw");
  json.Key("maxTensorByteLength").Number(change.max_bytes);
  const std::string bound = Format("fhlLiIbBnN:{}-8", change.min_rank);
  for (const char* const kind : {"input", "constant", "output"}) {
    json.Key(kind);
    WriteOperand(json, bound, change, true);
  }
  std::istringstream lines{std::string(kTable)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string method, operand;
    words >> method;
    json.Key(method).BeginObject();
    while (words >> operand) {
      const size_t colon = operand.find(':');
      json.Key(operand.substr(0, colon));
      WriteOperand(json, operand.substr(colon + 1), change,
                   !change.without_methods.contains(method));
    }
    json.EndObject();
  }
  json.EndObject();
  return json.text();
}

}  // namespace tenon::webnn
