#include "capi/boundary/status.h"

#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <string_view>

#include "capi/boundary/slots.h"

// One block of malloc: the struct, then its text.
struct OrtStatus {
  OrtErrorCode code;
  const char* message;
};

namespace tenon::capi {
namespace {

// Returned when there is no memory for another status. Never changed, never freed.
constinit OrtStatus out_of_memory = {ORT_FAIL, "out of memory"};

OrtStatus* NewStatus(OrtErrorCode code, std::string_view message) noexcept {
  void* const block = std::malloc(sizeof(OrtStatus) + message.size() + 1);
  if (block == nullptr) return &out_of_memory;
  char* const text = static_cast<char*>(block) + sizeof(OrtStatus);
  message.copy(text, message.size());
  text[message.size()] = '\0';
  return new (block) OrtStatus{code, text};
}

}  // namespace

OrtStatus* ToOrtStatus(const Status& status) noexcept {
  if (status.ok()) return nullptr;
  return NewStatus(static_cast<OrtErrorCode>(status.code()), status.message());
}

Status TakeOrtStatus(OrtStatus* status) {
  if (status == nullptr) return OkStatus();
  const std::unique_ptr<OrtStatus, decltype(&ReleaseStatus)> owned(status, &ReleaseStatus);
  return Status(static_cast<StatusCode>(status->code), status->message);
}

OrtStatus* StatusFromCurrentException() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return &out_of_memory;
  } catch (const std::exception& exception) {
    return NewStatus(ORT_RUNTIME_EXCEPTION, exception.what());
  } catch (...) {
    return NewStatus(ORT_RUNTIME_EXCEPTION, "an exception of unknown type");
  }
}

OrtStatus* CreateStatus(OrtErrorCode code, const char* msg) noexcept {
  return NewStatus(code, msg == nullptr ? "" : msg);
}

OrtErrorCode GetErrorCode(const OrtStatus* status) noexcept { return status->code; }

const char* GetErrorMessage(const OrtStatus* status) noexcept { return status->message; }

void ReleaseStatus(OrtStatus* status) noexcept {
  if (status != &out_of_memory) std::free(status);
}

}  // namespace tenon::capi
