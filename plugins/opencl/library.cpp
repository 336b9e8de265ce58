#include "library.h"

#include <dlfcn.h>

namespace opencl {
namespace {

Result<Library> Open() {
  void* handle = nullptr;
  for (const char* name : {"libOpenCL.so.1", "libOpenCL.so"}) {
    // Never closed: drivers keep threads that must not lose their code.
    handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle) break;
  }
  if (!handle) {
    return Failure(
        "no OpenCL on this machine: neither libOpenCL.so.1 nor libOpenCL.so is found; "
        "install the driver of the device, or PoCL (pocl-opencl-icd) for the CPU");
  }
  Library library;
#define X(name)                                                                  \
  library.name = reinterpret_cast<decltype(library.name)>(dlsym(handle, #name)); \
  if (!library.name) return Failure("libOpenCL lacks {}, a function of OpenCL 1.2", #name);
  OPENCL_FUNCTIONS(X)
#undef X
  return library;
}

}  // namespace

const Result<Library>& LoadLibrary() {
  static const Result<Library> library = Open();
  return library;
}

const Library& Cl() { return *LoadLibrary(); }

Status Check(cl_int code, const char* function) {
  return code == CL_SUCCESS ? Status() : Failure("{}: OpenCL error {}", function, code);
}

}  // namespace opencl
