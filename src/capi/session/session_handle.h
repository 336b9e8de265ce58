// OrtSession: a session, the objects that it must not outlive, and those that must end before it.
#pragma once

#include <onnxruntime_c_api.h>

#include <atomic>
#include <memory>
#include <vector>

#include "base/task_runner.h"
#include "capi/env/env.h"
#include "capi/kernel/custom_ops.h"
#include "capi/kernel/packed_weights.h"
#include "capi/session/assigned_nodes.h"
#include "runtime/fallback_session.h"
#include "runtime/profiler.h"
#include "runtime/shared_weights.h"

namespace tenon::capi {

// The parts of a session whose model clients still edit (OrtModelEditorApi).
struct EditedModel {
  explicit EditedModel(Model read);
  // Updates the lists of inputs and outputs.
  void Describe();

  Model model;
  std::vector<SessionValue> inputs, outputs, overridable_initializers;
};

}  // namespace tenon::capi

// Shares packed weights, also of initializers in the clients' memory, among the sessions created
// with it. It owns no weights: it may be released before the sessions.
struct OrtPrepackedWeightsContainer {
  std::shared_ptr<tenon::SharedWeights> weights =
      std::make_shared<tenon::SharedWeights>(tenon::SharedWeights::Memory::kFilesAndCallers);
  // The same for plugins.
  std::shared_ptr<tenon::capi::PackedWeights> packed =
      std::make_shared<tenon::capi::PackedWeights>();
};

struct OrtSession {
  // Destroyed in reverse order: asynchronous runs end before the session does.
  std::shared_ptr<tenon::capi::SharedEnvironment> environment;
  // From before the model is read until the session has it (PR-3); null without profiling.
  std::shared_ptr<tenon::Profiler> profiler;
  std::unique_ptr<tenon::capi::ClientLogger> client_logger;
  std::unique_ptr<tenon::Logger> logger;  // the log of plugins
  std::unique_ptr<tenon::capi::CustomOps> custom_ops;
  std::shared_ptr<tenon::SharedWeights> shared_weights;        // null: the environment's
  std::shared_ptr<tenon::capi::PackedWeights> packed_weights;  // null: plugins share none
  bool shares_allocators = false;  // takes values' memory from the environment's allocators
  std::unique_ptr<tenon::capi::EditedModel> edited;  // until the session is created
  std::unique_ptr<tenon::FallbackSession> session;
  tenon::capi::AssignedNodes assigned_nodes;
  tenon::WorkCallbacks work_callbacks;  // the values at the time of the client's request
  std::atomic<bool> is_released = false;
  std::atomic<size_t> holders = 1;  // the client, and the callers of Hold
  tenon::TaskRunner tasks;

  const tenon::Model& model() const { return edited ? edited->model : session->model(); }
  const std::vector<tenon::SessionValue>& inputs() const {
    return edited ? edited->inputs : session->inputs();
  }
  const std::vector<tenon::SessionValue>& outputs() const {
    return edited ? edited->outputs : session->outputs();
  }
  const std::vector<tenon::SessionValue>& overridable_initializers() const {
    return edited ? edited->overridable_initializers : session->overridable_initializers();
  }
};

namespace tenon::capi {

// kInvalidArgument for null and for a session that is still edited.
Status CheckReady(const OrtSession* session);

// Keeps the session even after its client has released it.
std::shared_ptr<OrtSession> Hold(OrtSession* session);

}  // namespace tenon::capi
