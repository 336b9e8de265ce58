// Tells a client how far work has come.
#pragma once

#include <cstdint>

#include "base/status.h"

namespace tenon {

// A client's function, or null. Thread-safe if the function is.
struct Progress {
  using Function = int (*)(void* user, const char* stage, uint64_t done, uint64_t total);

  Function function = nullptr;
  void* user = nullptr;

  explicit operator bool() const { return function != nullptr; }
  // Calls the function, if there is one. `total` is 0 if it is not known. Returns an error with
  // `code` if the function returns 0.
  Status Report(const char* stage, uint64_t done, uint64_t total,
                StatusCode code = StatusCode::kModelLoadCanceled) const {
    if (function == nullptr || function(user, stage, done, total) != 0) return OkStatus();
    return Status(code, "the progress function asked to stop");
  }
};

}  // namespace tenon
