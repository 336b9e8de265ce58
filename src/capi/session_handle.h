// OrtSession: a session with what it must not outlive, and what it ends after.
#pragma once

#include <onnxruntime_c_api.h>

#include <memory>

#include "base/task_runner.h"
#include "capi/env.h"
#include "runtime/session.h"

struct OrtSession {
  // They go in the opposite order: asynchronous runs end before the session does.
  std::shared_ptr<tenon::capi::SharedEnvironment> environment;
  std::unique_ptr<tenon::capi::ClientLogger> client_logger;
  std::unique_ptr<tenon::Session> session;
  tenon::TaskRunner tasks;
};
