#include "file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "text.h"

namespace tenon::cli {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

}  // namespace

std::vector<std::byte> ReadFile(const std::string& path) {
  const File file(std::fopen(path.c_str(), "rb"));
  if (!file) Fail("'{}': {}", path, std::strerror(errno));
  std::vector<std::byte> bytes;
  constexpr size_t kChunk = 1 << 20;
  for (size_t read = kChunk; read == kChunk;) {
    const size_t size = bytes.size();
    bytes.resize(size + kChunk);
    read = std::fread(bytes.data() + size, 1, kChunk, file.get());
    bytes.resize(size + read);
  }
  if (std::ferror(file.get())) Fail("'{}': {}", path, std::strerror(errno));
  return bytes;
}

void WriteFile(const std::string& path, std::span<const std::byte> bytes) {
  File file(std::fopen(path.c_str(), "wb"));
  if (!file) Fail("'{}': {}", path, std::strerror(errno));
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size();
  if (!written || std::fclose(file.release()) != 0) Fail("'{}': {}", path, std::strerror(errno));
}

void CheckFolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  if (access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) == 0) return;
  Fail("'{}': {}", path, std::strerror(errno));
}

std::vector<std::string> ReadLines(const std::string& path) {
  const std::vector<std::byte> bytes = ReadFile(path);
  std::string_view text = AsText(bytes);
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.emplace_back(line);
  }
  return lines;
}

}  // namespace tenon::cli
