// A folder for the files of one test.
#pragma once

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <random>
#include <string>
#include <string_view>

namespace tenon {

// Without streams, which the C++ library for WebAssembly lacks for files.
inline void WriteFile(const std::string& path, std::string_view bytes) {
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  ASSERT_NE(file, nullptr) << "cannot write " << path;
  EXPECT_EQ(std::fwrite(bytes.data(), 1, bytes.size(), file), bytes.size());
  EXPECT_EQ(std::fclose(file), 0);
}

// Created empty; removed with its contents. Uses only functions that WebAssembly has, too.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::random_device random;
    path_ = testing::TempDir() + "tenon-" + std::to_string(random()) + std::to_string(random());
    if (mkdir(path_.c_str(), 0700) != 0) ADD_FAILURE() << "cannot create " << path_;
  }
  ~TemporaryFolder() { Remove(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }
  const std::string& path() const { return path_; }

  // Writes a file and the folders that lead to it; returns its path.
  std::string Write(std::string_view name, std::string_view text) const {
    MakeFoldersOf(name);
    std::string file = *this / name;
    WriteFile(file, text);
    return file;
  }
  void Link(std::string_view name, const std::string& target) const {
    MakeFoldersOf(name);
    EXPECT_EQ(symlink(target.c_str(), (*this / name).c_str()), 0);
  }
  // In bytes; -1 if there is no such file.
  int64_t SizeOf(std::string_view name) const {
    struct stat info;
    return stat((*this / name).c_str(), &info) == 0 ? static_cast<int64_t>(info.st_size) : -1;
  }

 private:
  void MakeFoldersOf(std::string_view name) const {
    for (size_t slash = name.find('/'); slash != name.npos; slash = name.find('/', slash + 1)) {
      mkdir((*this / name.substr(0, slash)).c_str(), 0700);  // it may be there
    }
  }

  // A folder with all that it holds, or anything else.
  static void Remove(const std::string& path) {
    if (std::remove(path.c_str()) == 0) return;
    DIR* const folder = opendir(path.c_str());
    if (folder == nullptr) return;
    while (const dirent* const entry = readdir(folder)) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") Remove(path + "/" + std::string(name));
    }
    closedir(folder);
    rmdir(path.c_str());
  }

  std::string path_;
};

}  // namespace tenon
