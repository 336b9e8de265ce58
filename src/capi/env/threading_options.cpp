// OrtThreadingOptions: settings of the environment's threads; and the callbacks of those of
// sessions.
#include "base/thread_affinity.h"
#include "capi/boundary/arguments.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/env/env.h"
#include "capi/options/thread_callbacks.h"

namespace tenon::capi {
namespace {

template <class Body>
OrtStatus* Change(OrtThreadingOptions* tp_options, Body&& body) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(tp_options);
    return body(*tp_options);
  });
}

}  // namespace

OrtStatus* CreateThreadingOptions(OrtThreadingOptions** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(out);
    *out = new OrtThreadingOptions();
    return OkStatus();
  });
}

void ReleaseThreadingOptions(OrtThreadingOptions* input) noexcept { delete input; }

OrtStatus* SetGlobalIntraOpNumThreads(OrtThreadingOptions* tp_options,
                                      int intra_op_num_threads) noexcept {
  return Change(tp_options, [&](OrtThreadingOptions& options) -> Status {
    TENON_RETURN_IF_ERROR(CheckThreadCount(intra_op_num_threads));
    options.threads.threads = intra_op_num_threads;
    return OkStatus();
  });
}

OrtStatus* SetGlobalInterOpNumThreads(OrtThreadingOptions* tp_options,
                                      int inter_op_num_threads) noexcept {
  return Change(tp_options, [&](OrtThreadingOptions& options) -> Status {
    TENON_RETURN_IF_ERROR(CheckThreadCount(inter_op_num_threads));
    options.inter_op_threads = inter_op_num_threads;
    return OkStatus();
  });
}

OrtStatus* SetGlobalSpinControl(OrtThreadingOptions* tp_options, int allow_spinning) noexcept {
  return Change(tp_options, [&](OrtThreadingOptions& options) -> Status {
    if (allow_spinning != 0 && allow_spinning != 1) {
      return InvalidArgument("allow_spinning is 0 or 1, got {}", allow_spinning);
    }
    options.threads.spin =
        allow_spinning == 1 ? ThreadPoolOptions().spin : std::chrono::microseconds(0);
    return OkStatus();
  });
}

OrtStatus* SetGlobalDenormalAsZero(OrtThreadingOptions* tp_options) noexcept {
  return Change(tp_options, [](OrtThreadingOptions& options) -> Status {
    options.threads.denormals_as_zero = true;
    return OkStatus();
  });
}

OrtStatus* SetGlobalIntraOpThreadAffinity(OrtThreadingOptions* tp_options,
                                          const char* affinity_string) noexcept {
  return Change(tp_options, [&](OrtThreadingOptions& options) -> Status {
    TENON_RETURN_IF_NULL(affinity_string);
    TENON_ASSIGN_OR_RETURN(options.threads.affinities, ParseThreadAffinities(affinity_string));
    return OkStatus();
  });
}

OrtStatus* SetGlobalCustomCreateThreadFn(
    OrtThreadingOptions* tp_options, OrtCustomCreateThreadFn ort_custom_create_thread_fn) noexcept {
  return Change(tp_options, [&](OrtThreadingOptions& options) -> Status {
    TENON_RETURN_IF_NULL(ort_custom_create_thread_fn);
    options.threads.callbacks.create = CreateCallback(ort_custom_create_thread_fn);
    return OkStatus();
  });
}

OrtStatus* SetGlobalCustomThreadCreationOptions(OrtThreadingOptions* tp_options,
                                                void* ort_custom_thread_creation_options) noexcept {
  return Change(tp_options, [&](OrtThreadingOptions& options) -> Status {
    options.threads.callbacks.options = ort_custom_thread_creation_options;
    return OkStatus();
  });
}

OrtStatus* SetGlobalCustomJoinThreadFn(OrtThreadingOptions* tp_options,
                                       OrtCustomJoinThreadFn ort_custom_join_thread_fn) noexcept {
  return Change(tp_options, [&](OrtThreadingOptions& options) -> Status {
    TENON_RETURN_IF_NULL(ort_custom_join_thread_fn);
    options.threads.callbacks.join = JoinCallback(ort_custom_join_thread_fn);
    return OkStatus();
  });
}

OrtStatus* SetPerSessionThreadPoolCallbacks(OrtEnv* env,
                                            const OrtThreadPoolCallbacksConfig* config) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(env);
    TENON_RETURN_IF_NULL(config);
    constexpr uint32_t kSince = 25;
    if (config->version < kSince) {
      return InvalidArgument("config->version: expected ORT_API_VERSION, {} or more, got {}",
                             kSince, config->version);
    }
    env->shared->set_work_callbacks({config->on_enqueue, config->on_start_work,
                                     config->on_stop_work, config->on_abandon,
                                     config->user_context});
    return OkStatus();
  });
}

}  // namespace tenon::capi
