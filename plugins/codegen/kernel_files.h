// Compiled kernels in files, found by their source.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace codegen {

// `identity` tells devices, compilers and their versions apart. Reading and writing are
// thread-safe; setting the folder is not.
class KernelFiles {
 public:
  KernelFiles(std::string identity, std::string extension)
      : identity_(std::move(identity)), extension_(std::move(extension)) {}

  // The folder from now on; it is created. Empty: no files.
  void SetFolder(const std::filesystem::path& folder);
  // Nothing if there is no file.
  std::optional<std::vector<char>> Read(const std::string& source) const;
  // Other processes see the whole file or none. A file that cannot be written costs compile time
  // only.
  void Write(const std::string& source, std::span<const char> binary) const;

 private:
  std::filesystem::path PathOf(const std::string& source) const;

  std::string identity_;
  std::string extension_;  // ".cubin"
  std::filesystem::path folder_;
};

}  // namespace codegen
