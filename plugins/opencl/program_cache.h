// Programs by their source: built once for a device, in memory and, where a folder is named, on
// disk.
#pragma once

#include <filesystem>
#include <mutex>
#include <string>
#include <unordered_map>

#include "kernel_files.h"
#include "library.h"

namespace opencl {

// Thread-safe.
class ProgramCache {
 public:
  // `identity` tells devices and driver versions apart in files.
  ProgramCache(cl_context context, cl_device_id device, std::string identity)
      : context_(context), device_(device), files_(std::move(identity), ".clbin") {}
  ~ProgramCache();
  ProgramCache(const ProgramCache&) = delete;
  ProgramCache& operator=(const ProgramCache&) = delete;

  // Binaries are read from and written to this folder from now on; it is created.
  void SetFolder(const std::filesystem::path& folder);
  // A kernel of the program with this source, released by the caller.
  Result<cl_kernel> CreateKernel(const std::string& source, const char* kernel_name);
  // How many programs were compiled from source.
  size_t compiled() const;

 private:
  Result<cl_program> Build(const std::string& source);
  cl_program BuildFromBinary(const std::vector<char>& bytes);
  void WriteFile(cl_program program, const std::string& source) const;

  cl_context context_;
  cl_device_id device_;
  mutable std::mutex mutex_;
  KernelFiles files_;
  std::unordered_map<std::string, cl_program> programs_;  // by source
  size_t compiled_ = 0;
};

}  // namespace opencl
