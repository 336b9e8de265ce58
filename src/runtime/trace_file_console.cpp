// Traces on hosts that may have no files, such as WebAssembly: they go to the console, whose other
// lines do not begin with {"cat".
#include <cerrno>
#include <cstring>

#include "runtime/trace_file.h"

namespace tenon {

Result<TraceFile> TraceFile::Create(const std::string&) { return TraceFile(); }

void TraceFile::Write(std::string_view line) {
  std::fwrite(line.data(), 1, line.size(), stdout);
  std::fputc('\n', stdout);
  is_empty_ = false;
}

void TraceFile::Flush() { std::fflush(stdout); }

Status TraceFile::Close() {
  if (is_empty_) return OkStatus();
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return Fail("cannot write a trace to the console: {}", std::strerror(errno));
  }
  return OkStatus();
}

}  // namespace tenon
