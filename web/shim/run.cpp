// Runs of a session: slots of inputs become values, and values become slots of outputs.
#include <algorithm>

#include "barrier.h"
#include "values.h"

namespace tenon::web {
namespace {

OrtStatus* Run(Session& session, const OrtRunOptions* options) {
  Side& inputs = session.inputs;
  Side& outputs = session.outputs;
  std::vector<const char*> feed_names, fetch_names;
  std::vector<const OrtValue*> feeds;
  std::vector<OrtValue*> fetches;
  std::vector<size_t> fetched;
  for (size_t i = 0; i < inputs.slots.size(); ++i) {
    if (!inputs.slots[i].is_used) continue;
    TENON_WEB_RETURN_IF_ERROR(ValueOver(session, inputs.slots[i], inputs.values[i]));
    feed_names.push_back(inputs.names[i].c_str());
    feeds.push_back(inputs.values[i].get());
  }
  for (size_t i = 0; i < outputs.slots.size(); ++i) {
    if (!outputs.slots[i].is_used) continue;
    if (outputs.slots[i].data != nullptr) {
      TENON_WEB_RETURN_IF_ERROR(ValueOver(session, outputs.slots[i], outputs.values[i]));
    }
    fetch_names.push_back(outputs.names[i].c_str());
    fetches.push_back(outputs.values[i].get());
    fetched.push_back(i);
  }
  OrtStatus* const outcome =
      Api().Run(session.handle.get(), options, feed_names.data(), feeds.data(), feeds.size(),
                fetch_names.data(), fetch_names.size(), fetches.data());
  for (size_t i = 0; i < fetched.size(); ++i) {
    Owned<OrtValue>& value = outputs.values[fetched[i]];
    if (value == nullptr) value.reset(fetches[i]);
  }
  TENON_WEB_RETURN_IF_ERROR(outcome);
  for (const size_t i : fetched) {
    TENON_WEB_RETURN_IF_ERROR(
        ShowValue(outputs.values[i].get(), outputs.names[i], session.packed[i], outputs.slots[i]));
  }
  return nullptr;
}

}  // namespace
}  // namespace tenon::web

using namespace tenon::web;

// Runs the session with the used slots of feeds and outputs; `options` may be null. The data of
// output slots is valid until tenon_session_finish_run, which must also follow a failure.
TENON_WEB_EXPORT(tenon_session_run)
int tenon_session_run(Session* session, const OrtRunOptions* options) {
  return Outcome(Run(*session, options));
}

// Releases the values of the last run, and clears the slots.
TENON_WEB_EXPORT(tenon_session_finish_run) void tenon_session_finish_run(Session* session) {
  EndBarrierRun(*session);
  for (Side* const side : {&session->inputs, &session->outputs}) {
    for (auto& value : side->values) value.reset();
    std::fill(side->slots.begin(), side->slots.end(), Slot());
  }
  for (auto& strings : session->packed) strings = {};
}
