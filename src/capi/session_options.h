// OrtSessionOptions: settings of sessions.
#pragma once

#include <onnxruntime_c_api.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/dynamic_library.h"
#include "capi/client_logger.h"
#include "runtime/session_options.h"
#include "tensor/tensor.h"

namespace tenon::capi {

class ContextModel;
class CustomOps;
class PackedWeights;

// A provider of this library and its options, or one of a plugin, for which there are devices; its
// options are entries of the session's config.
struct ProviderChoice {
  std::string name;
  StringMap options;
  std::vector<const OrtEpDevice*> devices;
};

// By reference, since the number that a client hands over may be no enumerator; kInvalidArgument
// then.
Status SetOptimizationLevel(const GraphOptimizationLevel& level, OrtSessionOptions& options);

}  // namespace tenon::capi

struct OrtSessionOptions {
  tenon::SessionOptions session;
  // Whether the session shares the environment's threads whatever else is said about threads.
  bool use_env_threads = false;
  tenon::capi::ClientLogger client_logger;  // without a function: the environment's

  // Tensors that stand for initializers of the model, and those of them that it must have.
  std::map<std::string, tenon::Tensor, std::less<>> initializers;
  std::vector<std::string> expected_initializers;
  // External data in memory of the client, by file name.
  std::map<std::string, std::span<const std::byte>> external_files;

  // The client's; they outlive the sessions. The libraries are kept loaded for their operators.
  std::vector<const OrtCustomOpDomain*> custom_op_domains;
  std::vector<std::shared_ptr<tenon::DynamicLibrary>> custom_op_libraries;

  // Besides the CPU's, most preferred first; the CPU's comes last also if nobody asked for it.
  std::vector<tenon::capi::ProviderChoice> providers;
  bool has_cpu_provider = false;

  // What the client wants of the automatic choice of devices, which such providers rule out; a
  // function makes it itself.
  std::optional<OrtExecutionProviderDevicePolicy> device_policy;
  EpSelectionDelegate select_devices = nullptr;
  void* select_devices_state = nullptr;

  // Accepted, and given back where the ABI can ask.
  int inter_op_threads = 0;
  bool use_cpu_arena = true;
  bool is_deterministic = false;
  std::string profile_prefix;  // "": no profiling
  std::span<const std::byte> weightless_source;

  // Takes the compiled model of a session that makes one; null if it makes none. `is_compiled` says
  // whether anything was compiled.
  std::function<tenon::Status(const tenon::Model& model, bool is_compiled)> write_context_model;
  // What collects it, in the options that providers are made with; else null.
  std::shared_ptr<tenon::capi::ContextModel> context_model;
  // Where plugins' kernels share packed weights, in the same options; null: nowhere.
  std::shared_ptr<tenon::capi::PackedWeights> packed_weights;
  // The custom operators of the session, in the same options; null if there are none.
  const tenon::capi::CustomOps* custom_ops = nullptr;

  // Set from any thread to give up the creation of sessions; shared by clones.
  std::shared_ptr<std::atomic<bool>> cancel_load = std::make_shared<std::atomic<bool>>(false);
};
