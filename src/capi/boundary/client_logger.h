// Adapts a client's logging function to a sink for log lines.
#pragma once

#include <onnxruntime_c_api.h>

#include "base/logging.h"

namespace tenon::capi {

// Must outlive the loggers that use its sink.
struct ClientLogger {
  OrtLoggingFunction function = nullptr;
  void* param = nullptr;

  LogSink Sink() {
    return {[](void* self, Severity severity, const char* category, const char* log_id,
               const char* code_location, const char* message) {
              const auto* logger = static_cast<const ClientLogger*>(self);
              logger->function(logger->param, static_cast<OrtLoggingLevel>(severity), category,
                               log_id, code_location, message);
            },
            this};
  }
};

}  // namespace tenon::capi
