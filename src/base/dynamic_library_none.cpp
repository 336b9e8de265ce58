// DynamicLibrary for platforms that load none, such as WebAssembly.
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

Result<void*> DynamicLibrary::SymbolOfProgram(const std::string& name) {
  return NotFound("the process has no function '{}': this platform looks none up by name", name);
}

std::string DynamicLibrary::Beside(const std::string& path) { return path; }

}  // namespace tenon
