// FileDescriptor: sole owner of an open file of the operating system.
#pragma once

#include <unistd.h>

#include <utility>

namespace tenon {

class FileDescriptor {
 public:
  FileDescriptor() = default;
  // Takes ownership; a negative number means none.
  explicit FileDescriptor(int number) : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) {
      Close();
      number_ = std::exchange(other.number_, -1);
    }
    return *this;
  }
  ~FileDescriptor() { Close(); }

  bool valid() const { return number_ >= 0; }
  int number() const { return number_; }

 private:
  void Close() {
    if (valid()) close(number_);
  }

  int number_ = -1;
};

}  // namespace tenon
