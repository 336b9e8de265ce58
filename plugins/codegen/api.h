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

namespace codegen {

// The oldest ABI that has all slots that are filled here: profilers came last.
inline constexpr uint32_t kAbiVersion = 25;

// The same for all factories of the library; set before any is made.
extern const OrtApi* ort;
extern const OrtEpApi* ep;

// Null for success.
OrtStatus* ToOrt(const Status& status);
// Takes `status` over.
Status FromOrt(OrtStatus* status);
// `source` is the name of what speaks, "OpenCL" say. A logger of null keeps silent.
void Log(const OrtLogger* logger, OrtLoggingLevel level, const char* source,
         const std::string& text);

// Runs `body`, which returns an OrtStatus*; no exception leaves the library.
template <class Body>
OrtStatus* Guarded(Body&& body) noexcept try {
  return body();
} catch (const std::exception& e) {
  return ort->CreateStatus(ORT_EP_FAIL, e.what());
} catch (...) {
  return ort->CreateStatus(ORT_EP_FAIL, "unknown exception");
}

}  // namespace codegen
