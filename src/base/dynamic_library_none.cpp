// DynamicLibrary where the platform loads none, as in WebAssembly.
#include "base/dynamic_library.h"

namespace tenon {

Result<DynamicLibrary> DynamicLibrary::Load(const std::string& path) {
  return Fail("cannot load library '{}': this platform loads none", path);
}

DynamicLibrary& DynamicLibrary::operator=(DynamicLibrary&& other) noexcept {
  handle_ = std::exchange(other.handle_, nullptr);
  path_ = std::move(other.path_);
  return *this;
}

DynamicLibrary::~DynamicLibrary() = default;

Result<void*> DynamicLibrary::Symbol(const std::string& name) const {
  return NotFound("library '{}' has no symbol '{}': this platform loads none", path_, name);
}

}  // namespace tenon
