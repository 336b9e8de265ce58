#include "module.h"

#include <cstdlib>
#include <utility>

namespace tenon::web {
namespace {

constinit OrtEnv* env = nullptr;

std::string& LastText() {
  static std::string text;
  return text;
}

}  // namespace

const OrtApi& Api() {
  static const OrtApi* const api = OrtGetApiBase()->GetApi(ORT_API_VERSION);
  return *api;
}

OrtEnv* Env() { return env; }

int Outcome(OrtStatus* status) {
  if (status == nullptr) return ORT_OK;
  const Owned<OrtStatus> owned(status);
  LastText() = Api().GetErrorMessage(status);
  return Api().GetErrorCode(status);
}

const char* Lend(std::string text) {
  LastText() = std::move(text);
  return LastText().c_str();
}

std::string TakeText(char* text) {
  std::string taken = text;
  OrtAllocator* allocator = nullptr;
  // Neither call fails: the allocator always exists, and the text was allocated with it.
  (void)Outcome(Api().GetAllocatorWithDefaultOptions(&allocator));
  (void)Outcome(Api().AllocatorFree(allocator, text));
  return taken;
}

}  // namespace tenon::web

using namespace tenon::web;

// Creates the environment, once. `severity` is an OrtLoggingLevel.
TENON_WEB_EXPORT(tenon_initialize) int tenon_initialize(int severity) {
  return Outcome(Api().CreateEnv(static_cast<OrtLoggingLevel>(severity), "tenon", &env));
}

// The text of the last failure, valid until the next call.
TENON_WEB_EXPORT(tenon_last_error) const char* tenon_last_error() { return LastText().c_str(); }

// Memory for the caller, aligned for every element type; null if there is none left.
TENON_WEB_EXPORT(tenon_allocate) void* tenon_allocate(size_t bytes) {
  return std::malloc(bytes == 0 ? 1 : bytes);
}

TENON_WEB_EXPORT(tenon_free) void tenon_free(void* memory) { std::free(memory); }
