#include "capi/not_implemented.h"

#include "capi/status.h"

namespace tenon::capi {

OrtStatus* NotImplementedStatus(const char* slot) noexcept {
  return AtBoundary([&]() -> Status { return NotImplemented("{} is not implemented", slot); });
}

}  // namespace tenon::capi
