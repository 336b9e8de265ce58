// The runtime's function tables, and statuses across the border.
#pragma once

#include <exception>
#include <utility>

#include "status.h"
#include "tenon_c_api.h"

#define RETURN_IF_ORT_ERROR(expression)                    \
  do {                                                     \
    if (OrtStatus* status_ = (expression)) return status_; \
  } while (false)

namespace opencl {

// The oldest ABI that has all slots that are filled here: profilers came last.
inline constexpr uint32_t kAbiVersion = 25;
inline constexpr const char* kProviderName = "OpenCLExecutionProvider";
// Of the provider's memory infos; no vendor of the PCI registry has it.
inline constexpr uint32_t kVendorId = 0x4F43;

// The same for all factories of the library; set before any is made.
extern const OrtApi* ort;
extern const OrtEpApi* ep;

// Null for success.
OrtStatus* ToOrt(const Status& status);
// Takes `status` over.
Status FromOrt(OrtStatus* status);
void Log(const OrtLogger* logger, OrtLoggingLevel level, const std::string& text);

// Runs `body`, which returns an OrtStatus*; no exception leaves the library.
template <class Body>
OrtStatus* Guarded(Body&& body) noexcept try {
  return body();
} catch (const std::exception& e) {
  return ort->CreateStatus(ORT_EP_FAIL, e.what());
} catch (...) {
  return ort->CreateStatus(ORT_EP_FAIL, "unknown exception");
}

}  // namespace opencl
