#include "base/logging.h"

#include <chrono>
#include <cstdio>
#include <ctime>

namespace tenon {
namespace {

char Letter(Severity severity) {
  constexpr std::string_view kLetters = "VIWEF";
  const auto index = static_cast<size_t>(severity);
  return index < kLetters.size() ? kLetters[index] : '?';
}

std::string UtcNow() {
  using std::chrono::microseconds;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const int64_t count = std::chrono::duration_cast<microseconds>(now).count();
  const std::time_t seconds = count / 1'000'000;
  std::tm utc = {};
  gmtime_r(&seconds, &utc);
  return Format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:06}", utc.tm_year + 1900, utc.tm_mon + 1,
                utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, count % 1'000'000);
}

void WriteToStderr(void* /*param*/, Severity severity, const char* category, const char* log_id,
                   const char* code_location, const char* message) {
  const std::string line = Format("{} [{}:{}:{}, {}] {}\n", UtcNow(), Letter(severity), category,
                                  log_id, code_location, message);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace

LogSink StderrSink() { return {.write = &WriteToStderr, .param = nullptr}; }

void Logger::Log(Severity severity, const char* category, const char* code_location,
                 const std::string& message) const noexcept {
  if (!IsEnabled(severity) || !sink_.write) return;
  try {
    sink_.write(sink_.param, severity, category, id_.c_str(), code_location, message.c_str());
  } catch (...) {
    return;
  }
}

namespace internal {

std::string CodeLocation(const char* file, int line, const char* function) {
  return Format("{}:{} {}", file, line, function);
}

}  // namespace internal
}  // namespace tenon
