// The file of a trace; in WebAssembly, where there may be none, the console.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "base/status.h"

namespace tenon {

// A JSON array with one object per line. On the console the lines are the objects alone, without
// the array's brackets and commas. Not thread-safe.
class TraceFile {
 public:
  // Makes <prefix>_<YYYY-MM-DD>_<HH-MM-SS>.json, in local time. If that exists, _1, _2, ... is
  // added before the dot. Error: kFail naming the path. The console ignores the prefix.
  static Result<TraceFile> Create(const std::string& prefix);

  // "" for the console.
  const std::string& path() const { return path_; }
  // Writes one object. Close reports failures.
  void Write(std::string_view line);
  // Hands the text written so far to the system.
  void Flush();
  // Ends the array. Error: kFail naming the path if anything could not be written.
  Status Close();

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  TraceFile() = default;
  TraceFile(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {}

  std::string path_;
  std::unique_ptr<std::FILE, CloseFile> file_;  // null for the console
  bool is_empty_ = true;
};

}  // namespace tenon
