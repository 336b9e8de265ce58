#include "runtime/trace_event.h"

#include <algorithm>

#include "base/json_text.h"
#include "base/json_writer.h"

namespace tenon {
namespace {

std::string_view CategoryName(TraceCategory category) {
  switch (category) {
    case TraceCategory::kSession:
      return "Session";
    case TraceCategory::kNode:
      return "Node";
    case TraceCategory::kKernel:
      return "Kernel";
    case TraceCategory::kApi:
      return "Api";
    case TraceCategory::kMemory:
      return "Memory";
  }
  return "Session";
}

}  // namespace

std::string TraceLine(const TraceEvent& event) {
  JsonWriter json;
  json.BeginObject();
  json.Key("cat").Text(CategoryName(event.category));
  json.Key("pid").Integer(event.process);
  json.Key("tid").Integer(event.thread);
  json.Key("dur").Integer(std::max<int64_t>(event.duration, 0));
  json.Key("ts").Integer(event.start);
  json.Key("ph").Text(event.is_counter ? "C" : "X");
  json.Key("name").Text(event.name);
  json.Key("args").BeginObject();
  for (const TraceArg& arg : event.args) {
    json.Key(arg.key);
    if (arg.is_json) {
      json.Json(arg.value);
    } else if (const auto nested = CompactJson(arg.value)) {
      json.Json(*nested);
    } else {
      json.Text(arg.value);
    }
  }
  json.EndObject();
  json.EndObject();
  return json.text();
}

}  // namespace tenon
