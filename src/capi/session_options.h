// OrtSessionOptions: settings of sessions.
#pragma once

#include <onnxruntime_c_api.h>

#include <atomic>
#include <memory>
#include <string>

#include "capi/client_logger.h"
#include "runtime/session.h"

struct OrtSessionOptions {
  tenon::SessionOptions session;
  // Whether the session shares the environment's threads whatever else is said about threads.
  bool use_env_threads = false;
  tenon::capi::ClientLogger client_logger;  // without a function: the environment's

  // Accepted, and given back where the ABI can ask.
  ExecutionMode execution_mode = ORT_SEQUENTIAL;
  int inter_op_threads = 0;
  bool use_memory_patterns = true;
  bool use_cpu_arena = true;
  bool is_deterministic = false;
  std::string profile_prefix;  // "": no profiling

  // Set from any thread to give up the creation of sessions; shared by clones.
  std::shared_ptr<std::atomic<bool>> cancel_load = std::make_shared<std::atomic<bool>>(false);
};
