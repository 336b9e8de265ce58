#include "runtime/fallback_report.h"

#include "base/json_writer.h"
#include "runtime/run_report.h"

namespace tenon {
namespace {

const char* StateName(FallbackState state) {
  switch (state) {
    case FallbackState::kOff:
      return "off";
    case FallbackState::kArmed:
      return "armed";
    case FallbackState::kUsed:
      return "used";
    case FallbackState::kFailed:
      return "failed";
  }
  return "off";
}

void WriteNames(JsonWriter& json, const std::vector<std::string>& names) {
  json.BeginArray();
  for (const std::string& name : names) json.Text(name);
  json.EndArray();
}

}  // namespace

std::string FallbackReport::ToJson() const {
  JsonWriter json;
  json.BeginObject();
  json.Key("state").Text(StateName(state));
  WriteNames(json.Key("from"), from);
  WriteNames(json.Key("to"), to);
  json.Key("provider").Text(failed.provider_name);
  json.Key("node").Text(failed.node);
  json.Key("op_type").Text(failed.op_type);
  json.Key("code").Integer(static_cast<int>(cause.code()));
  json.Key("message").Text(cause.message());
  json.Key("rebuild_ms").Integer(rebuild_ms);
  json.Key("replays").Integer(replays);
  json.Key("not_replayed").BeginArray();
  for (const NotReplayed& run : not_replayed) {
    json.BeginObject();
    json.Key("run_id").Integer(run.run_id);
    json.Key("reason").Text(run.reason);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  return json.text();
}

std::string RunReport::ToJson() const {
  JsonWriter json;
  json.BeginObject();
  json.Key("run_id").Integer(run_id);
  json.Key("duration_us").Integer(duration.count());
  json.Key("attempts").Integer(attempts);
  json.Key("fallback").Bool(used_fallback);
  json.Key("reason").Text(reason);
  json.EndObject();
  return json.text();
}

}  // namespace tenon
