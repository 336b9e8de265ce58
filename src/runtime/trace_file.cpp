#include "runtime/trace_file.h"

#include <cerrno>
#include <cstring>
#include <ctime>

namespace tenon {
namespace {

std::string LocalTime() {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  localtime_r(&now, &local);
  return Format("{:04}-{:02}-{:02}_{:02}-{:02}-{:02}", local.tm_year + 1900, local.tm_mon + 1,
                local.tm_mday, local.tm_hour, local.tm_min, local.tm_sec);
}

}  // namespace

Result<TraceFile> TraceFile::Create(const std::string& prefix) {
  const std::string stem = Format("{}_{}", prefix, LocalTime());
  for (int number = 0;; ++number) {
    const std::string path = number == 0 ? stem + ".json" : Format("{}_{}.json", stem, number);
    if (std::FILE* file = std::fopen(path.c_str(), "wx")) return TraceFile(path, file);
    if (errno != EEXIST) return Fail("cannot create '{}': {}", path, std::strerror(errno));
  }
}

void TraceFile::Write(std::string_view line) {
  std::fputs(is_empty_ ? "[\n" : ",\n", file_.get());
  std::fwrite(line.data(), 1, line.size(), file_.get());
  is_empty_ = false;
}

void TraceFile::Flush() { std::fflush(file_.get()); }

Status TraceFile::Close() {
  std::fputs(is_empty_ ? "[\n]\n" : "\n]\n", file_.get());
  const bool is_written = std::ferror(file_.get()) == 0;
  if (std::fclose(file_.release()) != 0 || !is_written) {
    return Fail("cannot write '{}': {}", path_, std::strerror(errno));
  }
  return OkStatus();
}

}  // namespace tenon
