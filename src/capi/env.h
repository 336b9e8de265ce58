// OrtEnv: the process's environment.
#pragma once

#include <onnxruntime_c_api.h>

#include <memory>

#include "capi/client_logger.h"
#include "capi/shared_allocators.h"
#include "runtime/environment.h"

namespace tenon::capi {

// An environment with what its logger needs. Shared with the sessions, so that a client may release
// its handles in any order.
struct SharedEnvironment {
  std::unique_ptr<ClientLogger> client_logger;
  SharedAllocators allocators;
  Environment environment;
};

}  // namespace tenon::capi

struct OrtEnv {
  std::shared_ptr<tenon::capi::SharedEnvironment> shared;
  int references = 0;  // guarded by the lock in env.cpp
};

struct OrtThreadingOptions {
  tenon::ThreadPoolOptions threads;
  int inter_op_threads = 0;
};
