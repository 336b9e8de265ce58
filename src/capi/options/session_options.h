// OrtSessionOptions: settings of sessions.
#pragma once

#include <onnxruntime_c_api.h>
#include <onnxruntime_experimental_c_api.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/dynamic_library.h"
#include "capi/boundary/client_logger.h"
#include "runtime/session_options.h"
#include "tensor/tensor.h"

namespace tenon::capi {

class ContextModel;
class CustomOps;
class PackedWeights;

// A provider of this library and its options, or one of a plugin, with its devices; its options are
// then entries of the session's config.
struct ProviderChoice {
  std::string name;
  StringMap options;
  std::vector<const OrtEpDevice*> devices;
};

// The client's functions that replace the files with the data of EPContext nodes; null: there is
// none.
struct ContextData {
  OrtReadNamedBufferFunc read = nullptr;
  void* read_state = nullptr;
  OrtWriteNamedBufferFunc write = nullptr;
  void* write_state = nullptr;
};

// By reference, because the client's number may not be an enumerator; that is kInvalidArgument.
Status SetOptimizationLevel(const GraphOptimizationLevel& level, OrtSessionOptions& options);

}  // namespace tenon::capi

struct OrtSessionOptions {
  tenon::SessionOptions session;
  // Whether the session shares the environment's threads, whatever the other settings of threads.
  bool use_env_threads = false;
  tenon::capi::ClientLogger client_logger;  // without a function: the environment's

  // Tensors that replace initializers of the model, and those of them that the model must have.
  std::map<std::string, tenon::Tensor, std::less<>> initializers;
  std::vector<std::string> expected_initializers;
  // External data in memory of the client, by file name.
  std::map<std::string, std::span<const std::byte>> external_files;

  // Owned by the client, and outlive the sessions. The libraries are kept loaded for their
  // operators.
  std::vector<const OrtCustomOpDomain*> custom_op_domains;
  std::vector<std::shared_ptr<tenon::DynamicLibrary>> custom_op_libraries;

  // Besides the CPU's, most preferred first. The CPU's is always the last, even if it was not
  // requested.
  std::vector<tenon::capi::ProviderChoice> providers;
  bool has_cpu_provider = false;

  // The client's settings for the automatic selection of devices, which has no effect if providers
  // are named. A function of the client selects them itself.
  std::optional<OrtExecutionProviderDevicePolicy> device_policy;
  EpSelectionDelegate select_devices = nullptr;
  void* select_devices_state = nullptr;

  // Stored without effect, and returned if the ABI has a query for it.
  int inter_op_threads = 0;
  bool use_cpu_arena = true;
  bool is_deterministic = false;
  std::string profile_prefix;  // "": no profiling
  std::span<const std::byte> weightless_source;

  tenon::capi::ContextData context_data;
  // Receives the compiled model of a session that makes one; null if it makes none. `is_compiled`
  // says whether anything was compiled.
  std::function<tenon::Status(const tenon::Model& model, bool is_compiled)> write_context_model;
  // Collects the compiled model, in the options for making providers; otherwise null.
  std::shared_ptr<tenon::capi::ContextModel> context_model;
  // The store of plugins' packed weights, in the same options; null: there is none.
  std::shared_ptr<tenon::capi::PackedWeights> packed_weights;
  // The custom operators of the session, in the same options; null if there are none.
  const tenon::capi::CustomOps* custom_ops = nullptr;

  // Set by any thread to cancel the creation of sessions; shared by clones.
  std::shared_ptr<std::atomic<bool>> cancel_load = std::make_shared<std::atomic<bool>>(false);
};
