// Whole files.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::cli {

// Throws Error with the path and the system's reason.
std::vector<std::byte> ReadFile(const std::string& path);
void WriteFile(const std::string& path, std::span<const std::byte> bytes);
// Throws Error if no file can be made in the folder of this path.
void CheckFolderOf(const std::string& path);
// Lines without their line ends; an empty last line is left out.
std::vector<std::string> ReadLines(const std::string& path);

inline std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline std::span<const std::byte> AsBytes(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

}  // namespace tenon::cli
