// Kernels compiled at run time, once for each source.
#pragma once

#include <filesystem>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>

#include "kernel_files.h"
#include "libraries.h"

namespace cuda {

// Of one device, whose context is current in each call. Thread-safe.
class ProgramCache {
 public:
  // `architecture` is 90 for compute capability 9.0.
  explicit ProgramCache(int architecture);
  ~ProgramCache();
  ProgramCache(const ProgramCache&) = delete;
  ProgramCache& operator=(const ProgramCache&) = delete;

  // Compiled kernels are read from and written to this folder from now on; it is created.
  void SetFolder(const std::filesystem::path& folder);
  // Compiles those that are not there yet, side by side.
  Status Compile(std::span<const std::string* const> sources);
  // A kernel of the program with this source.
  Result<CUfunction> Find(const std::string& source, const char* kernel);
  // How many programs were compiled from source.
  size_t compiled() const;

 private:
  Result<std::vector<char>> MakeBinary(const std::string& source);
  Status Add(const std::string& source, const std::vector<char>& binary);
  bool Has(const std::string& source) const;

  int architecture_;
  KernelFiles files_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, CUmodule> modules_;  // by source
  size_t compiled_ = 0;
};

// Machine code for compute capability `architecture` (90). The failure has the compiler's messages
// and the source. Needs no device. Thread-safe.
Result<std::vector<char>> CompileForDevice(const std::string& source, int architecture);

}  // namespace cuda
