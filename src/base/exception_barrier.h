// Turns exceptions of foreign code into failures. Only this file knows whether a build has
// exceptions at all.
#pragma once

#include <exception>
#include <utility>

#include "base/status.h"

namespace tenon {

// body(), which returns a Status. An exception that leaves it becomes a failure with its text: of
// `code` for a std::exception, kRuntimeException for anything else.
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

}  // namespace tenon
