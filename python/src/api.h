// Tenon's C table in C++: handles that release themselves, and statuses that become Python
// exceptions. The package uses only this table.
#pragma once

#include <nanobind/nanobind.h>
#include <onnxruntime_c_api.h>
#include <onnxruntime_training_c_api.h>
#include <tenon_c_api.h>

#include <memory>
#include <string>

namespace nb = nanobind;

namespace tenon::python {

// The function table; never null once the module is imported.
const OrtApi& Api();
// The table of on-device training.
const OrtTrainingApi& TrainingApi();

template <auto kRelease>
struct Releaser {
  template <class T>
  void operator()(T* object) const {
    (Api().*kRelease)(object);
  }
};

template <class T, auto kRelease>
using Handle = std::unique_ptr<T, Releaser<kRelease>>;

using BindingHandle = Handle<OrtIoBinding, &OrtApi::ReleaseIoBinding>;
using EnvHandle = Handle<OrtEnv, &OrtApi::ReleaseEnv>;
using MemoryInfoHandle = Handle<OrtMemoryInfo, &OrtApi::ReleaseMemoryInfo>;
using ModelMetadataHandle = Handle<OrtModelMetadata, &OrtApi::ReleaseModelMetadata>;
using RunOptionsHandle = Handle<OrtRunOptions, &OrtApi::ReleaseRunOptions>;
using SessionHandle = Handle<OrtSession, &OrtApi::ReleaseSession>;
using SessionOptionsHandle = Handle<OrtSessionOptions, &OrtApi::ReleaseSessionOptions>;
using TensorInfoHandle = Handle<OrtTensorTypeAndShapeInfo, &OrtApi::ReleaseTensorTypeAndShapeInfo>;
using TypeInfoHandle = Handle<OrtTypeInfo, &OrtApi::ReleaseTypeInfo>;
using ValueHandle = Handle<OrtValue, &OrtApi::ReleaseValue>;

// Makes the exception classes and adds them to the module.
void AddExceptions(nb::module_& module);

// Raises an exception of the class `kind`. The text need not be UTF-8. Needs the GIL.
[[noreturn]] void Raise(PyObject* kind, const std::string& text);

// Releases the status and raises the exception of its code; does nothing for null. Needs the GIL.
void Check(OrtStatus* status);

// As Check, but raises RuntimeError with `prefix` before the text, as onnxruntime does in places.
void CheckPlain(OrtStatus* status, const char* prefix = "");

// Calls a slot whose last parameter is `T** out` and takes what it made.
template <class HandleType, class Slot, class... Arguments>
HandleType Make(Slot slot, Arguments... arguments) {
  typename HandleType::pointer out = nullptr;
  Check(slot(arguments..., &out));
  return HandleType(out);
}

// Calls a slot whose last parameter is `T* out` and returns what it wrote.
template <class T, class Slot, class... Arguments>
T Get(Slot slot, Arguments... arguments) {
  T out{};
  Check(slot(arguments..., &out));
  return out;
}

// A function of tenon_c_api.h by its name.
template <class Function>
Function Experimental(const char* name) {
  return reinterpret_cast<Function>(Api().GetExperimentalFunction(name));
}

// Called in a handler of an exception, in a function that the C interface called: the next Check of
// a failure on this thread raises it again.
void KeepException();

// The text that a slot allocated with the default allocator; the memory is freed. "" for null.
std::string TakeString(char* text);

// The allocator of the process; never released.
OrtAllocator* DefaultAllocator();

// Names CPU memory; never released.
const OrtMemoryInfo* CpuMemory();

// The environment of the process, made at the first call. Sessions share it, so it outlives them
// even when the process ends.
std::shared_ptr<OrtEnv> Environment();

// The pool size of the environment, if it has not been made yet; 0: the default.
void SetGlobalThreads(int threads);

// The least severe level that is logged from now on, also by an existing environment.
void SetLogSeverity(int level);

}  // namespace tenon::python
