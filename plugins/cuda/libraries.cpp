#include "libraries.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace cuda {
namespace {

namespace fs = std::filesystem;

// Where PyPI's packages have their libraries, if the provider lies in a package itself.
void AddPackageFolders(std::vector<fs::path>& folders) {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&AddPackageFolders), &info) == 0) return;
  std::error_code error;
  fs::path folder = fs::absolute(info.dli_fname, error).parent_path();
  for (; folder.has_relative_path(); folder = folder.parent_path()) {
    if (folder.filename() != "site-packages" && folder.filename() != "dist-packages") continue;
    for (const char* part : {"cu13", "cublas", "cudnn", "cuda_nvrtc"}) {
      folders.push_back(folder / "nvidia" / part / "lib");
    }
    return;
  }
}

std::vector<fs::path> Folders() {
  std::vector<fs::path> folders;
  if (const char* list = std::getenv("TENON_CUDA_LIBRARY_PATH")) {
    std::string_view rest = list;
    while (!rest.empty()) {
      const size_t end = std::min(rest.find(':'), rest.size());
      if (end > 0) folders.emplace_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  if (const char* root = std::getenv("CUDA_PATH")) folders.push_back(fs::path(root) / "lib64");
  folders.emplace_back("/usr/local/cuda/lib64");
  AddPackageFolders(folders);
  return folders;
}

// Null if no file of these names can be opened.
void* Open(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
  }
  for (const fs::path& folder : Folders()) {
    for (const std::string& name : names) {
      if (void* handle = dlopen((folder / name).c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    }
  }
  return nullptr;
}

void Nothing(void*) {}

// The compiler looks for its second library with the loader alone, which may not know the folder.
void OpenBuiltins(void* compiler) {
  Dl_info info{};
  void* symbol = dlsym(compiler, "nvrtcVersion");
  if (!symbol || dladdr(symbol, &info) == 0) return;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(fs::path(info.dli_fname).parent_path(), error)) {
    if (file.path().filename().string().starts_with("libnvrtc-builtins.so")) {
      dlopen(file.path().c_str(), RTLD_NOW | RTLD_LOCAL);
    }
  }
}

template <class Function>
bool Find(void* handle, const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(dlsym(handle, symbol));
  return function != nullptr;
}

Status NotFound(const std::vector<std::string>& names) {
  return Failure(
      "no {} was found: looked with the loader, in TENON_CUDA_LIBRARY_PATH, in CUDA_PATH, in "
      "/usr/local/cuda and in Python's packages",
      fmt::join(names, " or "));
}

}  // namespace

#define FIND_FUNCTION(name, symbol, ...)                             \
  if (!Find(handle, symbol, library.name)) {                         \
    return Failure("{} has no {}; it is too old", files[0], symbol); \
  }
#define LOAD(Library, FUNCTIONS, prepare, ...)                      \
  static const Result<Library> kLibrary = []() -> Result<Library> { \
    const std::vector<std::string> files = {__VA_ARGS__};           \
    void* handle = Open(files);                                     \
    if (!handle) return NotFound(files);                            \
    prepare(handle);                                                \
    Library library;                                                \
    FUNCTIONS(FIND_FUNCTION)                                        \
    return library;                                                 \
  }();                                                              \
  return kLibrary

const Result<DriverLibrary>& LoadDriver() {
  LOAD(DriverLibrary, CUDA_DRIVER_FUNCTIONS, Nothing, "libcuda.so.1");
}

const Result<CompilerLibrary>& LoadCompiler() {
  LOAD(CompilerLibrary, CUDA_NVRTC_FUNCTIONS, OpenBuiltins, "libnvrtc.so.13", "libnvrtc.so.12");
}

const Result<BlasLibrary>& LoadBlas() {
  LOAD(BlasLibrary, CUDA_BLAS_FUNCTIONS, Nothing, "libcublasLt.so.13", "libcublasLt.so.12");
}

const Result<DnnLibrary>& LoadDnn() {
  LOAD(DnnLibrary, CUDA_DNN_FUNCTIONS, Nothing, "libcudnn.so.9");
}

const DriverLibrary& Cu() { return *LoadDriver(); }

Status Check(CUresult code, const char* function) {
  if (code == CUDA_SUCCESS) return Status();
  const char* name = nullptr;
  const char* text = nullptr;
  Cu().cuGetErrorName(code, &name);
  Cu().cuGetErrorString(code, &text);
  return Failure("{}: {} ({})", function, name ? name : "unknown error", text ? text : "no text");
}

Status CheckBlas(int code, const char* function) {
  return code == 0 ? Status() : Failure("{}: cuBLAS status {}", function, code);
}

Status CheckDnn(int code, const char* function) {
  if (code == 0) return Status();
  return Failure("{}: {}", function, (*LoadDnn()).cudnnGetErrorString(code));
}

}  // namespace cuda
