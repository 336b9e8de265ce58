// OrtSession: a session with what it must not outlive.
#pragma once

#include <onnxruntime_c_api.h>

#include <memory>

#include "capi/env.h"
#include "runtime/session.h"

struct OrtSession {
  // In this order: the session goes first.
  std::shared_ptr<tenon::capi::SharedEnvironment> environment;
  std::unique_ptr<tenon::capi::ClientLogger> client_logger;
  std::unique_ptr<tenon::Session> session;
};
