#include "kernel_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>

namespace codegen {
namespace {

// FNV-1a, 64 bits: stable between processes, unlike std::hash.
uint64_t HashOf(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

void KernelFiles::SetFolder(const std::filesystem::path& folder) {
  std::error_code error;  // a folder that cannot be made costs compile time only
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  folder_ = folder;
}

std::filesystem::path KernelFiles::PathOf(const std::string& source) const {
  return folder_ / fmt::format("{:016x}{:016x}{}", HashOf(identity_), HashOf(source), extension_);
}

std::optional<std::vector<char>> KernelFiles::Read(const std::string& source) const {
  if (folder_.empty()) return std::nullopt;
  std::ifstream stream(PathOf(source), std::ios::binary);
  if (!stream) return std::nullopt;
  return std::vector<char>{std::istreambuf_iterator<char>(stream), {}};
}

void KernelFiles::Write(const std::string& source, std::span<const char> binary) const {
  if (folder_.empty()) return;
  const std::filesystem::path file = PathOf(source);
  static std::atomic<int> number{0};
  const std::filesystem::path partial =
      fmt::format("{}.{}.{}", file.string(), getpid(), number.fetch_add(1));
  {
    std::ofstream stream(partial, std::ios::binary);
    stream.write(binary.data(), static_cast<std::streamsize>(binary.size()));
    if (!stream) return;
  }
  std::error_code error;
  std::filesystem::rename(partial, file, error);
}

}  // namespace codegen
