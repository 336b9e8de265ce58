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
  json.Key("nodes").Integer(nodes);
  json.Key("providers").BeginArray();
  for (const RunMeter::Provider& provider : providers) {
    json.BeginObject();
    json.Key("name").Text(provider.name);
    json.Key("nodes").Integer(provider.nodes);
    const auto time = std::chrono::duration_cast<std::chrono::microseconds>(provider.time);
    json.Key("time_us").Integer(time.count());
    json.EndObject();
  }
  json.EndArray();
  json.Key("memory").BeginArray();
  for (const RunMeter::Location& location : memory) {
    json.BeginObject();
    json.Key("location").Text(location.name);
    json.Key("device_id").Integer(location.device_id);
    json.Key("peak_bytes").Integer(location.peak_bytes);
    json.Key("static_bytes").Integer(location.static_bytes);
    json.Key("dynamic_bytes").Integer(location.dynamic_bytes);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  return json.text();
}

}  // namespace tenon
