// Logging: loggers with a level and an identity. Messages are formatted only if a sink takes them.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/text.h"

namespace tenon {

// Same numbers as OrtLoggingLevel of the C ABI.
enum class Severity : int32_t {
  kVerbose = 0,
  kInfo = 1,
  kWarning = 2,
  kError = 3,
  kFatal = 4,
};

// The destination of messages. `write` may be called from several threads at once; the texts live
// until it returns. The arguments are those of OrtLoggingFunction.
struct LogSink {
  void (*write)(void* param, Severity severity, const char* category, const char* log_id,
                const char* code_location, const char* message) = nullptr;
  void* param = nullptr;
};

// Writes one line to standard error, in one piece and with the time in UTC:
// 2025-01-31 12:34:56.123456 [W:category:log_id, code_location] message
LogSink StderrSink();

// Thread-safe. The sink's param must outlive the logger.
class Logger {
 public:
  // verbosity  the most detailed TENON_VLOG level that is written; needs severity kVerbose
  explicit Logger(std::string id, Severity severity = Severity::kWarning, int verbosity = 0,
                  LogSink sink = StderrSink())
      : id_(std::move(id)), severity_(severity), verbosity_(verbosity), sink_(sink) {}

  const std::string& id() const { return id_; }
  const LogSink& sink() const { return sink_; }
  int verbosity() const { return verbosity_; }
  // The least severity that is written; may change at any time.
  Severity severity() const { return severity_.load(std::memory_order_relaxed); }
  void set_severity(Severity severity) { severity_.store(severity, std::memory_order_relaxed); }

  bool IsEnabled(Severity severity) const { return severity >= this->severity(); }
  bool IsVerbose(int level) const { return level <= verbosity_ && IsEnabled(Severity::kVerbose); }

  // Passes one message to the sink if the severity is enabled. Never fails: exceptions of a
  // client's sink are dropped.
  void Log(Severity severity, const char* category, const char* code_location,
           const std::string& message) const noexcept;

 private:
  const std::string id_;
  std::atomic<Severity> severity_;
  const int verbosity_;
  const LogSink sink_;
};

namespace internal {
// "softmax.cpp:42 RunSoftmax".
std::string CodeLocation(const char* file, int line, const char* function);
}  // namespace internal

// TENON_LOG(logger, kWarning, "node '{}' is slow", name): the arguments are evaluated and formatted
// only if the logger takes that severity.
#define TENON_LOG(logger, severity, ...) \
  TENON_LOG_IF((logger).IsEnabled(::tenon::Severity::severity), logger, severity, __VA_ARGS__)

// The same for details: level 0 is the least detailed.
#define TENON_VLOG(logger, level, ...) \
  TENON_LOG_IF((logger).IsVerbose(level), logger, kVerbose, __VA_ARGS__)

// The name of a file is without its folder, which only the machine that compiles it has.
#define TENON_LOG_IF(condition, logger, severity, ...)                                         \
  do {                                                                                         \
    if (condition) {                                                                           \
      (logger).Log(::tenon::Severity::severity, "tenon",                                       \
                   ::tenon::internal::CodeLocation(__FILE_NAME__, __LINE__, __func__).c_str(), \
                   ::tenon::Format(__VA_ARGS__));                                              \
    }                                                                                          \
  } while (false)

}  // namespace tenon
