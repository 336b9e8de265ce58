// Turns exceptions into failures: those of foreign code, and that memory is out. Only this file
// knows whether a build has exceptions at all.
#pragma once

#include <exception>
#include <new>
#include <utility>

#include "base/status.h"

namespace tenon {

// body(), which returns a Status. An exception that leaves it becomes a failure with its text: of
// `code` for a std::exception, kRuntimeException for anything else. Throws std::bad_alloc if there
// is no memory for that.
template <class Body>
Status CatchExceptions(Body&& body, StatusCode code = StatusCode::kFail) {
#if defined(__cpp_exceptions)
  try {
    return std::forward<Body>(body)();
  } catch (const std::exception& exception) {
    return Status(code, exception.what());
  } catch (...) {
    return RuntimeException("unknown exception");
  }
#else
  (void)code;
  return std::forward<Body>(body)();
#endif
}

// Calls body(). False if there was not enough memory for it.
template <class Body>
bool HasMemoryFor(Body&& body) {
#if defined(__cpp_exceptions)
  try {
    std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    return false;
  }
#else
  std::forward<Body>(body)();
#endif
  return true;
}

}  // namespace tenon
