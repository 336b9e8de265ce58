// Checks of clients' arguments.
#pragma once

#include <cstddef>

#include "base/status.h"

namespace tenon::capi {

// Leaves the enclosing function with kInvalidArgument, which names the parameter, if it is null.
#define TENON_RETURN_IF_NULL(argument)                                   \
  do {                                                                   \
    if ((argument) == nullptr) {                                         \
      return ::tenon::InvalidArgument("{} must not be null", #argument); \
    }                                                                    \
  } while (false)

// The same for an array that may only be null if it has no elements.
#define TENON_RETURN_IF_NULL_ARRAY(array, count)                                               \
  do {                                                                                         \
    if ((array) == nullptr && (count) != 0) {                                                  \
      return ::tenon::InvalidArgument("{} must not be null, {} is {}", #array, #count, count); \
    }                                                                                          \
  } while (false)

// kInvalidArgument unless index < count; `what` is the plural of the counted things.
inline Status CheckIndex(size_t index, size_t count, const char* what) {
  if (index < count) return OkStatus();
  return InvalidArgument("index {} is out of range: there are {} {}", index, count, what);
}

}  // namespace tenon::capi
