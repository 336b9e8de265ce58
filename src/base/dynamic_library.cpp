#include "base/dynamic_library.h"

#include <dlfcn.h>

#include <string_view>

namespace tenon {
namespace {

// The loader's text for the last failure on this thread.
std::string LoaderError() {
  const char* const text = dlerror();
  return text ? text : "unknown reason";
}

}  // namespace

Result<DynamicLibrary> DynamicLibrary::Load(const std::string& path) {
  if (path.empty()) return InvalidArgument("cannot load a library: the path is empty");
  if (path.find('\0') != std::string::npos) {
    return InvalidArgument("cannot load a library: the path holds a NUL byte");
  }
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) return Fail("cannot load library '{}': {}", path, LoaderError());
  return DynamicLibrary(handle, path);
}

DynamicLibrary& DynamicLibrary::operator=(DynamicLibrary&& other) noexcept {
  if (this != &other) {
    if (handle_) dlclose(handle_);
    handle_ = std::exchange(other.handle_, nullptr);
    path_ = std::move(other.path_);
  }
  return *this;
}

DynamicLibrary::~DynamicLibrary() {
  if (handle_) dlclose(handle_);
}

Result<void*> DynamicLibrary::Symbol(const std::string& name) const {
  if (void* const symbol = dlsym(handle_, name.c_str())) return symbol;
  return NotFound("library '{}' has no symbol '{}': {}", path_, name, LoaderError());
}

Result<void*> DynamicLibrary::SymbolOfProgram(const std::string& name) {
  if (void* const symbol = dlsym(RTLD_DEFAULT, name.c_str())) return symbol;
  return NotFound("the process has no function '{}'", name);
}

std::string DynamicLibrary::Beside(const std::string& path) {
  if (path.starts_with('/')) return path;
  static const char anchor = 0;
  Dl_info info = {};
  if (dladdr(&anchor, &info) == 0 || info.dli_fname == nullptr) return path;
  const std::string_view own = info.dli_fname;
  return std::string(own.substr(0, own.rfind('/') + 1)) + path;
}

}  // namespace tenon
