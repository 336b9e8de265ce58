// Shared by the parts of the shim: the C table, the last error, and the attribute of functions that
// JavaScript calls.
//
// These functions return 0 or an OrtErrorCode, whose text tenon_last_error returns; or a pointer,
// which is null after a failure. Addresses and sizes refer to the module's memory. Texts are
// null-terminated UTF-8.
#pragma once

#include <onnxruntime_c_api.h>
#include <tenon_webnn_c_api.h>

#include <memory>
#include <string>

#define TENON_WEB_EXPORT(name) extern "C" __attribute__((export_name(#name)))

// Leaves the enclosing function, which returns an OrtStatus*, with the status of `expression` if it
// failed.
#define TENON_WEB_RETURN_IF_ERROR(expression)                        \
  do {                                                               \
    if (OrtStatus* const failed = (expression); failed != nullptr) { \
      return failed;                                                 \
    }                                                                \
  } while (false)

namespace tenon::web {

const OrtApi& Api();

// The environment of all sessions; null before tenon_initialize.
OrtEnv* Env();

// Keeps the text of a failure for tenon_last_error, and releases the status. Returns its code; 0
// for null.
int Outcome(OrtStatus* status);

// Keeps a text that the caller reads before its next call.
const char* Lend(std::string text);

// A function outside the table, which must exist. `Pointer` is its type.
template <class Pointer>
Pointer Function(const char* name) {
  return reinterpret_cast<Pointer>(Api().GetExperimentalFunction(name));
}

struct Release {
  void operator()(OrtStatus* handle) const { Api().ReleaseStatus(handle); }
  void operator()(OrtSession* handle) const { Api().ReleaseSession(handle); }
  void operator()(OrtValue* handle) const { Api().ReleaseValue(handle); }
  void operator()(OrtTypeInfo* handle) const { Api().ReleaseTypeInfo(handle); }
  void operator()(OrtTensorTypeAndShapeInfo* handle) const {
    Api().ReleaseTensorTypeAndShapeInfo(handle);
  }
  void operator()(TenonBarrierRun* handle) const {
    Function<TenonReleaseBarrierRun>(TENON_RELEASE_BARRIER_RUN)(handle);
  }
};
template <class Handle>
using Owned = std::unique_ptr<Handle, Release>;

// Takes a text that the default allocator holds.
std::string TakeText(char* text);

}  // namespace tenon::web
