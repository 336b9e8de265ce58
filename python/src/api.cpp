#include "api.h"

#include <cstring>
#include <exception>
#include <iterator>
#include <utility>

namespace tenon::python {
namespace {

struct ErrorKind {
  const char* code_name;
  const char* class_name;  // and the module from which users of onnxruntime import it
};

#define TENON_ERROR(code, name) \
  { code, "tenon.capi.onnxruntime_pybind11_state." name }

constexpr ErrorKind kErrorKinds[] = {
    TENON_ERROR("OK", "Fail"),  // no error has this code
    TENON_ERROR("FAIL", "Fail"),
    TENON_ERROR("INVALID_ARGUMENT", "InvalidArgument"),
    TENON_ERROR("NO_SUCHFILE", "NoSuchFile"),
    TENON_ERROR("NO_MODEL", "NoModel"),
    TENON_ERROR("ENGINE_ERROR", "EngineError"),
    TENON_ERROR("RUNTIME_EXCEPTION", "RuntimeException"),
    TENON_ERROR("INVALID_PROTOBUF", "InvalidProtobuf"),
    TENON_ERROR("MODEL_LOADED", "ModelLoaded"),
    TENON_ERROR("NOT_IMPLEMENTED", "NotImplemented"),
    TENON_ERROR("INVALID_GRAPH", "InvalidGraph"),
    TENON_ERROR("EP_FAIL", "EPFail"),
    TENON_ERROR("MODEL_LOAD_CANCELED", "ModelLoadCanceled"),
    TENON_ERROR("MODEL_REQUIRES_COMPILATION", "ModelRequiresCompilation"),
    TENON_ERROR("NOT_FOUND", "NotFound"),
    TENON_ERROR("DEVICE_RESET", "DeviceReset"),
};
constexpr size_t kErrorKindCount = std::size(kErrorKinds);

#undef TENON_ERROR

// Kept until the process ends, as modules keep their exceptions.
PyObject* exception_classes[kErrorKindCount] = {};

int log_severity = ORT_LOGGING_LEVEL_WARNING;
int global_threads = 0;  // 0: as many as the process may use

using ThreadingOptionsHandle = Handle<OrtThreadingOptions, &OrtApi::ReleaseThreadingOptions>;

// Kept until the process ends, so that the next session reuses the threads and the logger.
std::shared_ptr<OrtEnv>& KeptEnvironment() {
  static std::shared_ptr<OrtEnv> environment;
  return environment;
}

// See KeepException.
thread_local std::exception_ptr kept_exception;

// Raises what the failed call's callback raised, if it did.
void RaiseKept(OrtStatus* status) {
  if (!kept_exception) return;
  Api().ReleaseStatus(status);
  std::rethrow_exception(std::exchange(kept_exception, nullptr));
}

}  // namespace

void KeepException() { kept_exception = std::current_exception(); }

const OrtApi& Api() {
  static const OrtApi& api = *OrtGetApiBase()->GetApi(ORT_API_VERSION);
  return api;
}

const OrtTrainingApi& TrainingApi() {
  static const OrtTrainingApi& api = *Api().GetTrainingApi(ORT_API_VERSION);
  return api;
}

void AddExceptions(nb::module_& module) {
  for (size_t code = 1; code < kErrorKindCount; ++code) {
    const char* full_name = kErrorKinds[code].class_name;
    exception_classes[code] = PyErr_NewException(full_name, nullptr, nullptr);
    if (exception_classes[code] == nullptr) throw nb::python_error();
    module.attr(std::strrchr(full_name, '.') + 1) = nb::handle(exception_classes[code]);
  }
}

void Raise(PyObject* kind, const std::string& text) {
  // A path in the text may hold any bytes.
  const nb::object message = nb::steal(
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace"));
  PyErr_SetObject(kind, message.ptr());
  throw nb::python_error();
}

void Check(OrtStatus* status) {
  if (status == nullptr) return;
  RaiseKept(status);
  const size_t known = Api().GetErrorCode(status);
  const size_t code = known > 0 && known < kErrorKindCount ? known : size_t{ORT_FAIL};
  const std::string text = "[ONNXRuntimeError] : " + std::to_string(known) + " : " +
                           kErrorKinds[code].code_name + " : " + Api().GetErrorMessage(status);
  Api().ReleaseStatus(status);
  Raise(exception_classes[code], text);
}

void CheckPlain(OrtStatus* status, const char* prefix) {
  if (status == nullptr) return;
  RaiseKept(status);
  const std::string text = std::string(prefix) + Api().GetErrorMessage(status);
  Api().ReleaseStatus(status);
  Raise(PyExc_RuntimeError, text);
}

std::string TakeString(char* text) {
  if (text == nullptr) return {};
  std::string copy = text;
  Check(Api().AllocatorFree(DefaultAllocator(), text));
  return copy;
}

OrtAllocator* DefaultAllocator() {
  static OrtAllocator* const allocator = Get<OrtAllocator*>(Api().GetAllocatorWithDefaultOptions);
  return allocator;
}

const OrtMemoryInfo* CpuMemory() {
  static const OrtMemoryInfo* const info =
      Make<MemoryInfoHandle>(Api().CreateCpuMemoryInfo, OrtArenaAllocator, OrtMemTypeDefault)
          .release();
  return info;
}

std::shared_ptr<OrtEnv> Environment() {
  std::shared_ptr<OrtEnv>& environment = KeptEnvironment();
  if (environment == nullptr) {
    const auto level = static_cast<OrtLoggingLevel>(log_severity);
    if (global_threads == 0) {
      environment = Make<EnvHandle>(Api().CreateEnv, level, "tenon");
    } else {
      const auto threads = Make<ThreadingOptionsHandle>(Api().CreateThreadingOptions);
      Check(Api().SetGlobalIntraOpNumThreads(threads.get(), global_threads));
      environment =
          Make<EnvHandle>(Api().CreateEnvWithGlobalThreadPools, level, "tenon", threads.get());
    }
  }
  return environment;
}

void SetGlobalThreads(int threads) {
  if (threads < 0) throw nb::value_error("expected a number of threads, 0 for the default");
  if (KeptEnvironment() != nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "the threads are to be set before anything uses them");
    throw nb::python_error();
  }
  global_threads = threads;
}

void SetLogSeverity(int level) {
  if (level < ORT_LOGGING_LEVEL_VERBOSE || level > ORT_LOGGING_LEVEL_FATAL) {
    throw nb::value_error("expected a severity of 0 (verbose) to 4 (fatal)");
  }
  log_severity = level;
  if (KeptEnvironment() != nullptr) {
    Check(Api().UpdateEnvWithCustomLogLevel(KeptEnvironment().get(),
                                            static_cast<OrtLoggingLevel>(level)));
  }
}

}  // namespace tenon::python
