#include "program_cache.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace cuda {
namespace {

// Part of the identity of files: change it when CompileForDevice or its options change.
constexpr const char* kRecipe = "1";

}  // namespace

Result<std::vector<char>> CompileForDevice(const std::string& source, int architecture) {
  if (!LoadCompiler().ok()) return LoadCompiler().status();
  const CompilerLibrary& nvrtc = *LoadCompiler();
  const auto check = [&](int code, const char* function) {
    return code == 0 ? Status() : Failure("{}: {}", function, nvrtc.nvrtcGetErrorString(code));
  };
  nvrtcProgram program = nullptr;
  PLUGIN_RETURN_IF_ERROR(
      check(nvrtc.nvrtcCreateProgram(&program, source.c_str(), "kernel.cu", 0, nullptr, nullptr),
            "nvrtcCreateProgram"));
  const std::string target = fmt::format("--gpu-architecture=sm_{}", architecture);
  const char* const options[] = {target.c_str(), "--std=c++17",
                                 "--device-as-default-execution-space"};
  const int error = nvrtc.nvrtcCompileProgram(program, 3, options);
  std::vector<char> binary;
  Status status;
  if (error != 0) {
    size_t size = 0;
    nvrtc.nvrtcGetProgramLogSize(program, &size);
    std::string log(size, '\0');
    nvrtc.nvrtcGetProgramLog(program, log.data());
    status = Failure("nvrtcCompileProgram: {}: {}\n{}", nvrtc.nvrtcGetErrorString(error),
                     log.c_str(), source);
  } else {
    size_t size = 0;
    status = check(nvrtc.nvrtcGetCUBINSize(program, &size), "nvrtcGetCUBINSize");
    binary.resize(size);
    if (status.ok()) status = check(nvrtc.nvrtcGetCUBIN(program, binary.data()), "nvrtcGetCUBIN");
  }
  nvrtc.nvrtcDestroyProgram(&program);
  PLUGIN_RETURN_IF_ERROR(status);
  return binary;
}

// A cached file serves all compilers: finding out the version of the one here would mean loading
// it.
ProgramCache::ProgramCache(int architecture)
    : architecture_(architecture),
      files_(fmt::format("sm_{} {}", architecture, kRecipe), ".cubin") {}

ProgramCache::~ProgramCache() {
  for (const auto& [source, module] : modules_) Cu().cuModuleUnload(module);
}

void ProgramCache::SetFolder(const std::filesystem::path& folder) {
  const std::lock_guard lock(mutex_);
  files_.SetFolder(folder);
}

size_t ProgramCache::compiled() const {
  const std::lock_guard lock(mutex_);
  return compiled_;
}

bool ProgramCache::Has(const std::string& source) const {
  const std::lock_guard lock(mutex_);
  return modules_.contains(source);
}

Result<std::vector<char>> ProgramCache::MakeBinary(const std::string& source) {
  if (auto binary = files_.Read(source)) return std::move(*binary);
  PLUGIN_ASSIGN_OR_RETURN(std::vector<char> binary, CompileForDevice(source, architecture_));
  files_.Write(source, binary);
  const std::lock_guard lock(mutex_);
  ++compiled_;
  return binary;
}

Status ProgramCache::Add(const std::string& source, const std::vector<char>& binary) {
  const std::lock_guard lock(mutex_);
  if (modules_.contains(source)) return Status();
  CUmodule module = nullptr;
  PLUGIN_RETURN_IF_ERROR(CU_CHECK(cuModuleLoadData, &module, binary.data()));
  modules_.emplace(source, module);
  return Status();
}

Status ProgramCache::Compile(std::span<const std::string* const> sources) {
  std::vector<const std::string*> missing;
  for (const std::string* source : sources) {
    const bool is_listed = std::any_of(missing.begin(), missing.end(),
                                       [&](const std::string* other) { return *other == *source; });
    if (!is_listed && !Has(*source)) missing.push_back(source);
  }
  std::vector<Result<std::vector<char>>> binaries(missing.size(), Result(std::vector<char>()));
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < missing.size(); i = next++) binaries[i] = MakeBinary(*missing[i]);
  };
  const size_t limit = std::min<size_t>(missing.size(), std::thread::hardware_concurrency());
  std::vector<std::thread> helpers;
  while (helpers.size() + 1 < limit) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  for (size_t i = 0; i < missing.size(); ++i) {
    PLUGIN_RETURN_IF_ERROR(binaries[i].status());
    PLUGIN_RETURN_IF_ERROR(Add(*missing[i], *binaries[i]));
  }
  return Status();
}

Result<CUfunction> ProgramCache::Find(const std::string& source, const char* kernel) {
  const std::string* const sources[] = {&source};
  PLUGIN_RETURN_IF_ERROR(Compile(sources));
  const std::lock_guard lock(mutex_);
  CUfunction function = nullptr;
  PLUGIN_RETURN_IF_ERROR(
      CU_CHECK(cuModuleGetFunction, &function, modules_.find(source)->second, kernel));
  return function;
}

}  // namespace cuda
