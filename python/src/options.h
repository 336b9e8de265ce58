// SessionOptions and RunOptions of the Python package.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api.h"

namespace tenon::python {

// A provider's name and its options.
struct ProviderChoice {
  std::string name;
  std::map<std::string, std::string> options;
  // Of a provider of a plugin library, those that it shall use; empty: all that it has.
  std::vector<const OrtEpDevice*> devices = {};
};

// The C table has only setters, so the values that Python reads are kept here.
struct SessionOptions {
  SessionOptions();
  SessionOptions(const SessionOptions&) = delete;
  SessionOptions& operator=(const SessionOptions&) = delete;

  // Independent options for one session, with these providers in addition to the CPU's. If it is
  // null, those of these options are used, or what their policy selects.
  SessionOptionsHandle CloneWith(const std::vector<ProviderChoice>* providers) const;
  // Nothing without an entry of that key.
  std::optional<std::string> ConfigEntry(const std::string& key) const;

  SessionOptionsHandle handle;
  int intra_op_num_threads = 0;
  int inter_op_num_threads = 0;
  GraphOptimizationLevel graph_optimization_level = ORT_ENABLE_ALL;
  ExecutionMode execution_mode = ORT_SEQUENTIAL;
  std::string optimized_model_filepath;
  bool enable_profiling = false;
  std::string profile_file_prefix = "onnxruntime_profile_";
  std::string logid;
  int log_severity_level = -1;
  int log_verbosity_level = 0;
  bool enable_mem_pattern = true;
  bool enable_cpu_mem_arena = true;
  bool enable_mem_reuse = true;  // without effect: memory is always planned
  bool use_deterministic_compute = false;
  bool use_per_session_threads = true;
  nb::object execution_order = nb::int_(0);  // without effect: the memory size decides
  std::vector<ProviderChoice> providers;     // from add_provider, add_provider_for_devices
  // Selects devices where there are no providers: a policy, or a function, whichever came last.
  std::optional<OrtExecutionProviderDevicePolicy> policy;
  nb::object selection;
  nb::object progress = nb::none();  // called as a session is made
  nb::list calls;                    // the calls of methods that add something, for copies
  nb::list kept_values;              // objects that the session's initializers use
};

using LoraHandle = Handle<OrtLoraAdapter, &OrtApi::ReleaseLoraAdapter>;

// Values for the adapted parameters of a model.
struct LoraAdapter {
  LoraHandle handle;  // null until something is loaded
};

struct RunOptions {
  RunOptions();
  RunOptions(const RunOptions&) = delete;
  RunOptions& operator=(const RunOptions&) = delete;

  RunOptionsHandle handle;
  bool terminate = false;
  bool enable_profiling = false;
  std::string profile_file_prefix = "onnxruntime_profile_";
  nb::list adapters;                          // outlive the runs
  nb::object progress = nb::none();           // called in runs
  bool only_execute_path_to_fetches = false;  // without effect: nothing else is executed
};

void BindOptions(nb::module_& module);

}  // namespace tenon::python
