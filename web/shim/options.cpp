// Options of sessions and of runs. Each setter is one slot of the table.
#include <tenon_c_api.h>

#include "module.h"

using namespace tenon::web;

TENON_WEB_EXPORT(tenon_session_options_create) OrtSessionOptions* tenon_session_options_create() {
  OrtSessionOptions* options = nullptr;
  return Outcome(Api().CreateSessionOptions(&options)) == ORT_OK ? options : nullptr;
}

TENON_WEB_EXPORT(tenon_session_options_release)
void tenon_session_options_release(OrtSessionOptions* options) {
  Api().ReleaseSessionOptions(options);
}

// `level` is a GraphOptimizationLevel.
TENON_WEB_EXPORT(tenon_session_options_graph_optimization_level)
int tenon_session_options_graph_optimization_level(OrtSessionOptions* options, int level) {
  return Outcome(
      Api().SetSessionGraphOptimizationLevel(options, static_cast<GraphOptimizationLevel>(level)));
}

// `mode` is an ExecutionMode.
TENON_WEB_EXPORT(tenon_session_options_execution_mode)
int tenon_session_options_execution_mode(OrtSessionOptions* options, int mode) {
  return Outcome(Api().SetSessionExecutionMode(options, static_cast<ExecutionMode>(mode)));
}

// 0: all threads that there are.
TENON_WEB_EXPORT(tenon_session_options_intra_op_num_threads)
int tenon_session_options_intra_op_num_threads(OrtSessionOptions* options, int threads) {
  return Outcome(Api().SetIntraOpNumThreads(options, threads));
}

TENON_WEB_EXPORT(tenon_session_options_cpu_mem_arena)
int tenon_session_options_cpu_mem_arena(OrtSessionOptions* options, bool is_enabled) {
  return Outcome(is_enabled ? Api().EnableCpuMemArena(options) : Api().DisableCpuMemArena(options));
}

TENON_WEB_EXPORT(tenon_session_options_mem_pattern)
int tenon_session_options_mem_pattern(OrtSessionOptions* options, bool is_enabled) {
  return Outcome(is_enabled ? Api().EnableMemPattern(options) : Api().DisableMemPattern(options));
}

TENON_WEB_EXPORT(tenon_session_options_enable_profiling)
int tenon_session_options_enable_profiling(OrtSessionOptions* options, const char* prefix) {
  return Outcome(Api().EnableProfiling(options, prefix));
}

TENON_WEB_EXPORT(tenon_session_options_log_id)
int tenon_session_options_log_id(OrtSessionOptions* options, const char* id) {
  return Outcome(Api().SetSessionLogId(options, id));
}

TENON_WEB_EXPORT(tenon_session_options_log_severity_level)
int tenon_session_options_log_severity_level(OrtSessionOptions* options, int level) {
  return Outcome(Api().SetSessionLogSeverityLevel(options, level));
}

TENON_WEB_EXPORT(tenon_session_options_log_verbosity_level)
int tenon_session_options_log_verbosity_level(OrtSessionOptions* options, int level) {
  return Outcome(Api().SetSessionLogVerbosityLevel(options, level));
}

TENON_WEB_EXPORT(tenon_session_options_free_dimension_override)
int tenon_session_options_free_dimension_override(OrtSessionOptions* options, const char* name,
                                                  double size) {
  return Outcome(Api().AddFreeDimensionOverrideByName(options, name, static_cast<int64_t>(size)));
}

TENON_WEB_EXPORT(tenon_session_options_config_entry)
int tenon_session_options_config_entry(OrtSessionOptions* options, const char* key,
                                       const char* value) {
  return Outcome(Api().AddSessionConfigEntry(options, key, value));
}

// A file with weights, by its name in the model. The bytes are copied when a session is created
// with these options.
TENON_WEB_EXPORT(tenon_session_options_external_file)
int tenon_session_options_external_file(OrtSessionOptions* options, const char* name, char* bytes,
                                        size_t size) {
  return Outcome(Api().AddExternalInitializersFromFilesInMemory(options, &name, &bytes, &size, 1));
}

// Appends WebNN. `limits` is the JSON text of opSupportLimits(); `excluded` has the names of the
// first nodes of partitions that stay on the CPU, one per line.
TENON_WEB_EXPORT(tenon_session_options_webnn)
int tenon_session_options_webnn(OrtSessionOptions* options, const char* limits,
                                const char* excluded) {
  const char* const keys[] = {"limits", "excluded_partitions"};
  const char* const values[] = {limits, excluded};
  return Outcome(Api().SessionOptionsAppendExecutionProvider(options, "WebNN", keys, values, 2));
}

TENON_WEB_EXPORT(tenon_run_options_create) OrtRunOptions* tenon_run_options_create() {
  OrtRunOptions* options = nullptr;
  return Outcome(Api().CreateRunOptions(&options)) == ORT_OK ? options : nullptr;
}

TENON_WEB_EXPORT(tenon_run_options_release) void tenon_run_options_release(OrtRunOptions* options) {
  Api().ReleaseRunOptions(options);
}

TENON_WEB_EXPORT(tenon_run_options_log_severity_level)
int tenon_run_options_log_severity_level(OrtRunOptions* options, int level) {
  return Outcome(Api().RunOptionsSetRunLogSeverityLevel(options, level));
}

TENON_WEB_EXPORT(tenon_run_options_log_verbosity_level)
int tenon_run_options_log_verbosity_level(OrtRunOptions* options, int level) {
  return Outcome(Api().RunOptionsSetRunLogVerbosityLevel(options, level));
}

TENON_WEB_EXPORT(tenon_run_options_tag)
int tenon_run_options_tag(OrtRunOptions* options, const char* tag) {
  return Outcome(Api().RunOptionsSetRunTag(options, tag));
}

TENON_WEB_EXPORT(tenon_run_options_terminate)
int tenon_run_options_terminate(OrtRunOptions* options) {
  return Outcome(Api().RunOptionsSetTerminate(options));
}

TENON_WEB_EXPORT(tenon_run_options_config_entry)
int tenon_run_options_config_entry(OrtRunOptions* options, const char* key, const char* value) {
  return Outcome(Api().AddRunConfigEntry(options, key, value));
}

// The report of the last run with these options, as JSON. It is valid until the next call, and null
// if the run config "tenon.run_report" is not "1".
TENON_WEB_EXPORT(tenon_run_options_report)
const char* tenon_run_options_report(const OrtRunOptions* options) {
  static const auto get_report =
      reinterpret_cast<TenonRunGetReport>(Api().GetExperimentalFunction(TENON_RUN_GET_REPORT));
  OrtAllocator* allocator = nullptr;
  char* json = nullptr;
  if (Outcome(Api().GetAllocatorWithDefaultOptions(&allocator)) != ORT_OK ||
      Outcome(get_report(options, allocator, &json)) != ORT_OK) {
    return nullptr;
  }
  return Lend(TakeText(json));
}
