#include "options.h"

#include <cstdlib>
#include <mutex>

namespace cuda {
namespace {

constexpr std::string_view kPrefix = "ep.cudaexecutionprovider.";

// ~/.cache/tenon/cuda, as the desktop's rules have it; empty if there is no home.
std::filesystem::path DefaultFolder() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache) {
    return std::filesystem::path(cache) / "tenon" / "cuda";
  }
  const char* home = std::getenv("HOME");
  if (!home || !*home) return {};
  return std::filesystem::path(home) / ".cache" / "tenon" / "cuda";
}

Result<bool> ReadFlag(const char* key, std::string_view value) {
  if (value == "1" || value == "true" || value == "True") return true;
  if (value == "0" || value == "false" || value == "False") return false;
  return Failure("option {}: expected 0 or 1, got '{}'", key, value);
}

bool IsThere(const Status& status, const OrtLogger* logger, std::once_flag& flag) {
  if (status.ok()) return true;
  std::call_once(flag, [&] {
    Log(logger, ORT_LOGGING_LEVEL_WARNING, "CUDA",
        status.text() + "; slower kernels serve instead");
  });
  return false;
}

}  // namespace

bool Context::HasBlas() {
  static std::once_flag flag;
  return IsThere(device.blas().status(), logger, flag);
}

bool Context::HasDnn() {
  static std::once_flag flag;
  const std::lock_guard lock(device.dnn_mutex());
  return IsThere(device.dnn().status(), logger, flag);
}

Result<Options> Options::Read(const OrtSessionOptions* session_options) {
  Options options;
  options.kernel_cache_folder = DefaultFolder();
  OrtKeyValuePairs* entries = nullptr;
  PLUGIN_RETURN_IF_ERROR(FromOrt(ort->GetSessionOptionsConfigEntries(session_options, &entries)));
  const auto read = [&](const char* name) {
    return ort->GetKeyValue(entries, (std::string(kPrefix) + name).c_str());
  };
  const auto read_flag = [&](const char* name, bool& flag) {
    const char* value = read(name);
    if (!value) return Status();
    PLUGIN_ASSIGN_OR_RETURN(flag, ReadFlag(name, value));
    return Status();
  };
  Status status = read_flag("use_tf32", options.use_tf32);
  if (status.ok()) status = read_flag("enable_cuda_graph", options.enable_cuda_graph);
  if (const char* folder = read("kernel_cache_folder")) options.kernel_cache_folder = folder;
  ort->ReleaseKeyValuePairs(entries);
  PLUGIN_RETURN_IF_ERROR(status);
  return options;
}

}  // namespace cuda
