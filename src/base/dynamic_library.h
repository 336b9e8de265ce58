// DynamicLibrary: code loaded at run time.
#pragma once

#include <string>
#include <type_traits>
#include <utility>

#include "base/status.h"

namespace tenon {

// A loaded shared library; unloaded by its destructor. Every error names the library's path.
class DynamicLibrary {
 public:
  // Loads the library with all symbols resolved, and none of them visible to other libraries. A
  // path without '/' is searched in the system's library path.
  // errors  kFail with the loader's reason; kInvalidArgument for an empty path, which would be the
  //         program itself, or one with a NUL
  static Result<DynamicLibrary> Load(const std::string& path);

  DynamicLibrary(DynamicLibrary&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), path_(std::move(other.path_)) {}
  DynamicLibrary& operator=(DynamicLibrary&& other) noexcept;
  ~DynamicLibrary();

  const std::string& path() const { return path_; }

  // The address of an exported symbol, valid while the library is loaded.
  // errors  kNotFound
  Result<void*> Symbol(const std::string& name) const;

  // The same for functions: library.Function<int(float)>("name") is an int (*)(float). That the
  // type is right cannot be checked.
  template <class Signature>
  requires std::is_function_v<Signature> Result<Signature*> Function(const std::string& name)
  const {
    TENON_ASSIGN_OR_RETURN(void* const symbol, Symbol(name));
    return reinterpret_cast<Signature*>(symbol);
  }

  // The address of a symbol that the program, or a library it was linked to, exports.
  // errors  kNotFound
  static Result<void*> SymbolOfProgram(const std::string& name);

  // The path of a library in the folder of Tenon's own library, for a name that is not absolute.
  static std::string Beside(const std::string& path);

  // Releases ownership: the library stays loaded until the caller unloads the system's handle.
  void* Release() && { return std::exchange(handle_, nullptr); }

 private:
  DynamicLibrary(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}

  void* handle_;
  std::string path_;
};

}  // namespace tenon
