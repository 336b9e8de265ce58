// OrtEnv: the process's environment.
#pragma once

#include <onnxruntime_c_api.h>

#include <memory>
#include <string_view>

#include "base/mutex.h"
#include "base/string_map.h"
#include "base/thread_pool.h"
#include "capi/boundary/client_logger.h"
#include "capi/env/ep_registry.h"
#include "capi/env/shared_allocators.h"
#include "runtime/environment.h"

namespace tenon::capi {

// An environment and the objects that its logger needs. Shared with the sessions, so that a client
// may release its handles in any order.
struct SharedEnvironment {
  SharedEnvironment(std::unique_ptr<ClientLogger> logger, StringMap entries,
                    EnvironmentOptions options)
      : client_logger(std::move(logger)),
        environment(std::move(options)),
        entries_(std::move(entries)) {}

  std::unique_ptr<ClientLogger> client_logger;
  SharedAllocators allocators;
  Environment environment;
  EpRegistry eps;

  // The entries of onnxruntime_env_config_keys.h: the client's, and permission for virtual devices
  // while there is a library whose registered name gives it.
  StringMap Config() const;
  // Such a library comes (1) or goes (-1).
  void CountVirtual(int change);
  static bool AllowsVirtual(std::string_view registered_name) {
    return registered_name.ends_with(".virtual");
  }

  // The callbacks for later sessions' own threads.
  WorkCallbacks work_callbacks() const {
    const MutexLock lock(mutex_);
    return work_callbacks_;
  }
  void set_work_callbacks(const WorkCallbacks& callbacks) {
    const MutexLock lock(mutex_);
    work_callbacks_ = callbacks;
  }

  // Removes everything that came with a library: its devices, shared allocators and transfers. Code
  // that is still in use is unloaded later, with a warning. If the entry
  // "tenon.unregister_busy_library" is "error", that is an error instead and nothing changes. While
  // the process ends, nothing is done. Error: kFail if there is no such library.
  Status UnregisterLibrary(std::string_view name);
  ~SharedEnvironment();

 private:
  Status CheckIsIdle(std::string_view name);
  // Takes what it has of a library, which is not in the registry any more. Needs no memory.
  void Leave(RegisteredLibrary library);

  mutable Mutex mutex_;
  WorkCallbacks work_callbacks_;
  StringMap entries_;
  int virtual_libraries_ = 0;
};

// The entries of the process's environment; none if there is no environment.
StringMap EnvironmentConfig();

}  // namespace tenon::capi

struct OrtEnv {
  std::shared_ptr<tenon::capi::SharedEnvironment> shared;
  int references = 0;  // guarded by the lock in env.cpp
};

struct OrtThreadingOptions {
  tenon::ThreadPoolOptions threads;
  int inter_op_threads = 0;
};
