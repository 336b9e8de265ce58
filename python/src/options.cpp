#include "options.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "devices.h"
#include "gil.h"
#include "value.h"

namespace tenon::python {
namespace {

using Options = SessionOptions;
using OptionsClass = nb::class_<Options>;

// Raised for a key that was never set, as onnxruntime does.
[[noreturn]] void RaiseMissingKey(const char* owner, const std::string& key) {
  PyErr_Format(PyExc_RuntimeError, "%s does not have configuration with key: %s", owner,
               key.c_str());
  throw nb::python_error();
}

// A property that is passed on by `setter(options.handle, value)`.
template <auto kMember, auto kSetter, class T>
void Property(OptionsClass& options, const char* name, T Options::*) {
  options.def_prop_rw(
      name, [](const Options& self) { return self.*kMember; },
      [](Options& self, T value) {
        Check((Api().*kSetter)(self.handle.get(), value));
        self.*kMember = value;
      });
}

template <auto kMember, auto kSetter>
void TextProperty(OptionsClass& options, const char* name) {
  options.def_prop_rw(
      name, [](const Options& self) { return self.*kMember; },
      [](Options& self, const std::string& value) {
        Check((Api().*kSetter)(self.handle.get(), value.c_str()));
        self.*kMember = value;
      });
}

// A switch that has one slot for on and one for off.
template <auto kMember, auto kEnable, auto kDisable>
void Switch(OptionsClass& options, const char* name) {
  options.def_prop_rw(
      name, [](const Options& self) { return self.*kMember; },
      [](Options& self, bool value) {
        Check(value ? (Api().*kEnable)(self.handle.get()) : (Api().*kDisable)(self.handle.get()));
        self.*kMember = value;
      });
}

void ApplyProfiling(const Options& self) {
  Check(self.enable_profiling
            ? Api().EnableProfiling(self.handle.get(), self.profile_file_prefix.c_str())
            : Api().DisableProfiling(self.handle.get()));
}

std::string GetConfigEntry(const Options& self, const std::string& key) {
  std::optional<std::string> value = self.ConfigEntry(key);
  if (!value) RaiseMissingKey("SessionOptions", key);
  return *std::move(value);
}

void AddInitializer(Options& self, const std::string& name, nb::handle value) {
  Check(Api().AddInitializer(self.handle.get(), name.c_str(), nb::cast<Value&>(value).get()));
  self.kept_values.append(value);
}

// Values that replace initializers in other files.
void AddExternalInitializers(Options& self, const std::vector<std::string>& names,
                             const std::vector<nb::object>& values) {
  if (names.size() != values.size()) throw nb::value_error("expected as many names as values");
  std::vector<const char*> texts;
  std::vector<const OrtValue*> handles;
  for (size_t i = 0; i < names.size(); ++i) {
    texts.push_back(names[i].c_str());
    handles.push_back(nb::cast<Value&>(values[i]).get());
    self.kept_values.append(values[i]);
  }
  Check(
      Api().AddExternalInitializers(self.handle.get(), texts.data(), handles.data(), texts.size()));
}

void AddFilesInMemory(Options& self, const std::vector<std::string>& names,
                      const std::vector<nb::object>& buffers, const std::vector<size_t>& sizes) {
  if (names.size() != buffers.size() || names.size() != sizes.size()) {
    throw nb::value_error("expected as many names as buffers and sizes");
  }
  std::vector<const char*> texts;
  std::vector<char*> contents;
  for (size_t i = 0; i < names.size(); ++i) {
    Buffer buffer;
    const bool fits =
        buffer.Borrow(buffers[i]) && sizes[i] <= static_cast<size_t>(buffer.view().len);
    if (!fits) throw nb::value_error("expected bytes, at least as many as the size says");
    texts.push_back(names[i].c_str());
    contents.push_back(static_cast<char*>(buffer.view().buf));
    self.kept_values.append(buffers[i]);
  }
  Check(Api().AddExternalInitializersFromFilesInMemory(
      self.handle.get(), texts.data(), contents.data(), sizes.data(), sizes.size()));
}

std::map<std::string, std::string> ReadPairs(const OrtKeyValuePairs* pairs) {
  std::map<std::string, std::string> entries;
  if (pairs == nullptr) return entries;
  const char* const* keys = nullptr;
  const char* const* values = nullptr;
  size_t count = 0;
  Api().GetKeyValuePairs(pairs, &keys, &values, &count);
  for (size_t i = 0; i < count; ++i) entries[keys[i]] = values[i];
  return entries;
}

// Calls a Python function that selects the session's devices.
OrtStatus* Select(const OrtEpDevice** devices, size_t count, const OrtKeyValuePairs* model,
                  const OrtKeyValuePairs* runtime, const OrtEpDevice** selected, size_t most,
                  size_t* selected_count, void* state) noexcept {
  const WithGil lock;
  try {
    nb::list offered;
    for (size_t i = 0; i < count; ++i) offered.append(nb::cast(EpDevice{devices[i]}));
    const nb::handle function(static_cast<PyObject*>(state));
    const nb::object chosen = function(offered, ReadPairs(model), ReadPairs(runtime), most);
    const std::vector<const OrtEpDevice*> list = ReadDevices(chosen);
    *selected_count = list.size();
    if (list.size() > most) {
      return Api().CreateStatus(ORT_INVALID_ARGUMENT, "more devices were selected than allowed");
    }
    std::copy(list.begin(), list.end(), selected);
    return nullptr;
  } catch (const std::exception& error) {
    return Api().CreateStatus(ORT_FAIL, error.what());
  }
}

void SetSelection(Options& self, nb::object function) {
  self.kept_values.append(function);
  self.selection = std::move(function);
  self.policy.reset();
}

// The devices of a registered plugin's provider.
std::vector<const OrtEpDevice*> DevicesOf(const std::string& provider) {
  const OrtEpDevice* const* devices = nullptr;
  size_t count = 0;
  Check(Api().GetEpDevices(Environment().get(), &devices, &count));
  std::vector<const OrtEpDevice*> found;
  std::copy_if(devices, devices + count, std::back_inserter(found), [&](const OrtEpDevice* device) {
    return provider == Api().EpDevice_EpName(device);
  });
  return found;
}

void Append(OrtSessionOptions* options, const ProviderChoice& provider) {
  std::vector<const char*> keys, values;
  for (const auto& [key, value] : provider.options) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  const std::vector<const OrtEpDevice*> devices =
      provider.devices.empty() ? DevicesOf(provider.name) : provider.devices;
  Check(devices.empty()
            ? Api().SessionOptionsAppendExecutionProvider(options, provider.name.c_str(),
                                                          keys.data(), values.data(), keys.size())
            : Api().SessionOptionsAppendExecutionProvider_V2(
                  options, Environment().get(), devices.data(), devices.size(), keys.data(),
                  values.data(), keys.size()));
}

SessionOptionsHandle Clone(const OrtSessionOptions* options) {
  return Make<SessionOptionsHandle>(Api().CloneSessionOptions, options);
}

// The options themselves get the devices only when a session uses them: the session that follows
// after a failure takes other providers.
void AddProviderForDevices(Options& self, nb::handle devices,
                           const std::map<std::string, std::string>& entries) {
  ProviderChoice choice = {"", entries, ReadDevices(devices)};
  if (choice.devices.empty()) throw nb::value_error("expected at least one device");
  if (choice.devices.front() != nullptr) {
    choice.name = Api().EpDevice_EpName(choice.devices.front());
  }
  Append(Clone(self.handle.get()).get(), choice);  // raises if they do not go together
  self.providers.push_back(std::move(choice));
}

void BindThreadsAndGraph(OptionsClass& options) {
  Property<&Options::intra_op_num_threads, &OrtApi::SetIntraOpNumThreads>(
      options, "intra_op_num_threads", &Options::intra_op_num_threads);
  Property<&Options::inter_op_num_threads, &OrtApi::SetInterOpNumThreads>(
      options, "inter_op_num_threads", &Options::inter_op_num_threads);
  Property<&Options::graph_optimization_level, &OrtApi::SetSessionGraphOptimizationLevel>(
      options, "graph_optimization_level", &Options::graph_optimization_level);
  Property<&Options::execution_mode, &OrtApi::SetSessionExecutionMode>(options, "execution_mode",
                                                                       &Options::execution_mode);
  TextProperty<&Options::optimized_model_filepath, &OrtApi::SetOptimizedModelFilePath>(
      options, "optimized_model_filepath");
  Switch<&Options::enable_mem_pattern, &OrtApi::EnableMemPattern, &OrtApi::DisableMemPattern>(
      options, "enable_mem_pattern");
  Switch<&Options::enable_cpu_mem_arena, &OrtApi::EnableCpuMemArena, &OrtApi::DisableCpuMemArena>(
      options, "enable_cpu_mem_arena");
  Property<&Options::use_deterministic_compute, &OrtApi::SetDeterministicCompute>(
      options, "use_deterministic_compute", &Options::use_deterministic_compute);
  options.def_rw("enable_mem_reuse", &Options::enable_mem_reuse)
      .def_rw("use_per_session_threads", &Options::use_per_session_threads);
}

void BindLoggingAndProfiling(OptionsClass& options) {
  TextProperty<&Options::logid, &OrtApi::SetSessionLogId>(options, "logid");
  Property<&Options::log_severity_level, &OrtApi::SetSessionLogSeverityLevel>(
      options, "log_severity_level", &Options::log_severity_level);
  Property<&Options::log_verbosity_level, &OrtApi::SetSessionLogVerbosityLevel>(
      options, "log_verbosity_level", &Options::log_verbosity_level);
  options.def_prop_rw(
      "enable_profiling", [](const Options& self) { return self.enable_profiling; },
      [](Options& self, bool value) {
        self.enable_profiling = value;
        ApplyProfiling(self);
      });
  options.def_prop_rw(
      "profile_file_prefix", [](const Options& self) { return self.profile_file_prefix; },
      [](Options& self, const std::string& value) {
        self.profile_file_prefix = value;
        if (self.enable_profiling) ApplyProfiling(self);
      });
}

void BindSessionOptions(nb::module_& module) {
  OptionsClass options(module, "SessionOptions");
  options.def(nb::init<>());
  BindThreadsAndGraph(options);
  BindLoggingAndProfiling(options);
  options
      .def("add_session_config_entry",
           [](Options& self, const std::string& key, const std::string& value) {
             Check(Api().AddSessionConfigEntry(self.handle.get(), key.c_str(), value.c_str()));
             self.calls.append(nb::make_tuple("add_session_config_entry", key, value));
           })
      .def("get_session_config_entry", &GetConfigEntry)
      .def("add_free_dimension_override_by_name",
           [](Options& self, const std::string& name, int64_t size) {
             Check(Api().AddFreeDimensionOverrideByName(self.handle.get(), name.c_str(), size));
             self.calls.append(nb::make_tuple("add_free_dimension_override_by_name", name, size));
           })
      .def("add_free_dimension_override_by_denotation",
           [](Options& self, const std::string& denotation, int64_t size) {
             Check(Api().AddFreeDimensionOverride(self.handle.get(), denotation.c_str(), size));
             self.calls.append(
                 nb::make_tuple("add_free_dimension_override_by_denotation", denotation, size));
           })
      .def("add_initializer", &AddInitializer)
      .def("add_provider",
           [](Options& self, std::string name, std::map<std::string, std::string> entries) {
             self.calls.append(nb::make_tuple("add_provider", name, entries));
             self.providers.push_back({std::move(name), std::move(entries)});
           })
      .def("has_providers",
           [](const Options& self) {
             return !self.providers.empty() || self.policy || self.selection.is_valid();
           })
      .def("_calls", [](const Options& self) { return self.calls; })
      .def("__reduce__",
           [](nb::handle self) {
             return nb::module_::import_("tenon._pickling").attr("reduce_options")(self);
           })
      .def("_has_core_fallback",
           [](const Options& self) { return self.ConfigEntry("tenon.ep_fail_fallback") == "1"; })
      .def("_provider_list",
           [](const Options& self) {
             nb::list list;
             for (const ProviderChoice& provider : self.providers) {
               list.append(nb::make_tuple(provider.name, provider.options));
             }
             return list;
           })
      .def("register_custom_ops_library",
           [](Options& self, const std::string& path) {
             Check(Api().RegisterCustomOpsLibrary_V2(self.handle.get(), path.c_str()));
             self.calls.append(nb::make_tuple("register_custom_ops_library", path));
           })
      .def("add_external_initializers", &AddExternalInitializers)
      .def("add_external_initializers_from_files_in_memory", &AddFilesInMemory)
      .def("add_provider_for_devices", &AddProviderForDevices)
      .def("set_provider_selection_policy",
           [](Options& self, int policy) {
             const auto wanted = static_cast<OrtExecutionProviderDevicePolicy>(policy);
             const SessionOptionsHandle trial = Clone(self.handle.get());  // raises for a wrong one
             Check(Api().SessionOptionsSetEpSelectionPolicy(trial.get(), wanted));
             self.policy = wanted;
             self.selection.reset();
           })
      .def("set_provider_selection_policy_delegate", &SetSelection)
      .def("set_ep_context_data_read_func", [](Options&, nb::handle, size_t) {})
      .def("clear_ep_context_data_read_func", [](Options&) {})
      .def_rw("execution_order", &Options::execution_order)
      .def_rw("progress", &Options::progress, nb::for_setter(nb::arg("callable").none()))
      .def("set_load_cancellation_flag", [](Options& self, bool cancel) {
        Check(Api().SessionOptionsSetLoadCancellationFlag(self.handle.get(), cancel));
      });
}

// For Progress functions: `user` is the nb::object of the options with the callable.
int CallProgress(void* user, const char* stage, uint64_t done, uint64_t total) noexcept {
  const WithGil gil;
  try {
    const nb::object callable = *static_cast<const nb::object*>(user);
    if (callable.is_none()) return 1;
    return callable(stage, done, total).ptr() != Py_False;
  } catch (...) {
    KeepException();
    return 0;
  }
}

template <auto kGetter, auto kSetter>
void RunLevel(nb::class_<RunOptions>& options, const char* name) {
  options.def_prop_rw(
      name, [](const RunOptions& self) { return Get<int>(Api().*kGetter, self.handle.get()); },
      [](RunOptions& self, int level) { Check((Api().*kSetter)(self.handle.get(), level)); });
}

std::string GetRunEntry(const RunOptions& self, const std::string& key) {
  const char* value = Api().GetRunConfigEntry(self.handle.get(), key.c_str());
  if (value == nullptr) RaiseMissingKey("RunOptions", key);
  return value;
}

void ApplyRunProfiling(const RunOptions& self) {
  Check(self.enable_profiling
            ? Api().RunOptionsEnableProfiling(self.handle.get(), self.profile_file_prefix.c_str())
            : Api().RunOptionsDisableProfiling(self.handle.get()));
}

void BindRunProfiling(nb::class_<RunOptions>& options) {
  options.def_prop_rw(
      "enable_profiling", [](const RunOptions& self) { return self.enable_profiling; },
      [](RunOptions& self, bool value) {
        self.enable_profiling = value;
        ApplyRunProfiling(self);
      });
  options.def_prop_rw(
      "profile_file_prefix", [](const RunOptions& self) { return self.profile_file_prefix; },
      [](RunOptions& self, const std::string& value) {
        self.profile_file_prefix = value;
        if (self.enable_profiling) ApplyRunProfiling(self);
      });
}

void SetTerminate(RunOptions& self, bool terminate) {
  Check(terminate ? Api().RunOptionsSetTerminate(self.handle.get())
                  : Api().RunOptionsUnsetTerminate(self.handle.get()));
  self.terminate = terminate;
}

void BindRunOptions(nb::module_& module) {
  nb::class_<LoraAdapter>(module, "LoraAdapter")
      .def(nb::init<>())
      .def("Load", [](LoraAdapter& self, const std::string& path) {
        self.handle = Make<LoraHandle>(Api().CreateLoraAdapter, path.c_str(), nullptr);
      });
  nb::class_<RunOptions> options(module, "RunOptions");
  options.def(nb::init<>());
  RunLevel<&OrtApi::RunOptionsGetRunLogSeverityLevel, &OrtApi::RunOptionsSetRunLogSeverityLevel>(
      options, "log_severity_level");
  RunLevel<&OrtApi::RunOptionsGetRunLogVerbosityLevel, &OrtApi::RunOptionsSetRunLogVerbosityLevel>(
      options, "log_verbosity_level");
  BindRunProfiling(options);
  options
      .def_prop_rw(
          "logid",
          [](const RunOptions& self) {
            const auto* tag = Get<const char*>(Api().RunOptionsGetRunTag, self.handle.get());
            return std::string(tag == nullptr ? "" : tag);
          },
          [](RunOptions& self, const std::string& tag) {
            Check(Api().RunOptionsSetRunTag(self.handle.get(), tag.c_str()));
          })
      .def_prop_rw(
          "terminate", [](const RunOptions& self) { return self.terminate; }, &SetTerminate)
      .def_prop_rw(
          "progress", [](const RunOptions& self) { return self.progress; },
          [](RunOptions& self, nb::object callable) {
            static const auto set =
                Experimental<TenonRunOptionsSetProgress>(TENON_RUN_OPTIONS_SET_PROGRESS);
            self.progress = std::move(callable);
            Check(set(self.handle.get(), self.progress.is_none() ? nullptr : &CallProgress,
                      &self.progress));
          },
          nb::for_setter(nb::arg("callable").none()))
      .def_rw("only_execute_path_to_fetches", &RunOptions::only_execute_path_to_fetches)
      .def("add_run_config_entry",
           [](RunOptions& self, const std::string& key, const std::string& value) {
             Check(Api().AddRunConfigEntry(self.handle.get(), key.c_str(), value.c_str()));
           })
      .def("get_run_config_entry", &GetRunEntry)
      .def("add_active_adapter",
           [](RunOptions& self, nb::handle adapter) {
             const auto& lora = nb::cast<LoraAdapter&>(adapter);
             Check(Api().RunOptionsAddActiveLoraAdapter(self.handle.get(), lora.handle.get()));
             self.adapters.append(adapter);
           })
      .def("get_run_report", [](const RunOptions& self) {
        static const auto get = Experimental<TenonRunGetReport>(TENON_RUN_GET_REPORT);
        const std::string json = TakeString(Get<char*>(get, self.handle.get(), DefaultAllocator()));
        return nb::module_::import_("json").attr("loads")(json);
      });
}

}  // namespace

SessionOptions::SessionOptions() : handle(Make<SessionOptionsHandle>(Api().CreateSessionOptions)) {}

SessionOptionsHandle SessionOptions::CloneWith(const std::vector<ProviderChoice>* chosen) const {
  SessionOptionsHandle clone = Clone(handle.get());
  if (!use_per_session_threads) Check(Api().DisablePerSessionThreads(clone.get()));
  for (const ProviderChoice& provider : chosen != nullptr ? *chosen : providers) {
    Append(clone.get(), provider);
  }
  if (!progress.is_none()) {
    static const auto set =
        Experimental<TenonSessionOptionsSetProgress>(TENON_SESSION_OPTIONS_SET_PROGRESS);
    Check(set(clone.get(), &CallProgress, const_cast<nb::object*>(&progress)));
  }
  if (chosen != nullptr) return clone;
  if (policy) Check(Api().SessionOptionsSetEpSelectionPolicy(clone.get(), *policy));
  if (selection.is_valid()) {
    Check(Api().SessionOptionsSetEpSelectionPolicyDelegate(clone.get(), &Select, selection.ptr()));
  }
  return clone;
}

std::optional<std::string> SessionOptions::ConfigEntry(const std::string& key) const {
  if (!Get<int>(Api().HasSessionConfigEntry, handle.get(), key.c_str())) return std::nullopt;
  size_t size = 0;
  Check(Api().GetSessionConfigEntry(handle.get(), key.c_str(), nullptr, &size));
  std::string value(size, '\0');
  Check(Api().GetSessionConfigEntry(handle.get(), key.c_str(), value.data(), &size));
  value.resize(size - 1);  // without the terminator
  return value;
}

RunOptions::RunOptions() : handle(Make<RunOptionsHandle>(Api().CreateRunOptions)) {}

void BindOptions(nb::module_& module) {
  nb::enum_<GraphOptimizationLevel>(module, "GraphOptimizationLevel", nb::is_arithmetic())
      .value("ORT_DISABLE_ALL", ORT_DISABLE_ALL)
      .value("ORT_ENABLE_BASIC", ORT_ENABLE_BASIC)
      .value("ORT_ENABLE_EXTENDED", ORT_ENABLE_EXTENDED)
      .value("ORT_ENABLE_LAYOUT", ORT_ENABLE_LAYOUT)
      .value("ORT_ENABLE_ALL", ORT_ENABLE_ALL);
  nb::enum_<ExecutionMode>(module, "ExecutionMode", nb::is_arithmetic())
      .value("ORT_SEQUENTIAL", ORT_SEQUENTIAL)
      .value("ORT_PARALLEL", ORT_PARALLEL);
  BindSessionOptions(module);
  BindRunOptions(module);
}

}  // namespace tenon::python
