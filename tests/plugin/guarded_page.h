// A page of memory that can be read only for a while.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

namespace tenon::test {

// Any other access ends the process.
class GuardedPage {
 public:
  // A read-only copy of an object that fits.
  const void* Show(const void* data, size_t bytes) {
    if (page_ == nullptr) {
      page_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    mprotect(page_, bytes_, PROT_READ | PROT_WRITE);
    std::memcpy(page_, data, bytes);
    mprotect(page_, bytes_, PROT_READ);
    return page_;
  }
  // Makes the page unreadable.
  void Hide() {
    if (page_ != nullptr) mprotect(page_, bytes_, PROT_NONE);
  }

 private:
  const size_t bytes_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* page_ = nullptr;
};

}  // namespace tenon::test
