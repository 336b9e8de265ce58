// OrtStatus, and conversions between Tenon's Status and the C ABI.
#pragma once

#include <onnxruntime_c_api.h>

#include "base/status.h"

namespace tenon::capi {

// A new OrtStatus with code and message of `status`, which the receiver releases; null for OK. If
// memory is out, the shared out-of-memory status.
OrtStatus* ToOrtStatus(const Status& status) noexcept;

// The result of a client's callback as a Status; releases `status`. OK for null.
Status TakeOrtStatus(OrtStatus* status);

// For a catch clause: the exception being handled as a new OrtStatus.
OrtStatus* StatusFromCurrentException() noexcept;

// Runs the body of a slot. `body` returns a Status. No exception, neither of the standard library
// nor of a client's code, crosses the ABI.
template <class Body>
OrtStatus* AtBoundary(Body&& body) noexcept try {
  return ToOrtStatus(body());
} catch (...) {
  return StatusFromCurrentException();
}

}  // namespace tenon::capi
