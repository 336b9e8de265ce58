#include "program_cache.h"

#include <vector>

namespace opencl {
namespace {

// Results must not depend on the device more than its arithmetic does.
constexpr const char* kOptions = "-cl-std=CL1.2";

std::string BuildLog(cl_program program, cl_device_id device) {
  size_t size = 0;
  Cl().clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &size);
  std::string log(size, '\0');
  Cl().clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, size, log.data(), nullptr);
  return log;
}

}  // namespace

ProgramCache::~ProgramCache() {
  for (const auto& [source, program] : programs_) Cl().clReleaseProgram(program);
}

void ProgramCache::SetFolder(const std::filesystem::path& folder) {
  const std::lock_guard lock(mutex_);
  files_.SetFolder(folder);
}

size_t ProgramCache::compiled() const {
  const std::lock_guard lock(mutex_);
  return compiled_;
}

Result<cl_kernel> ProgramCache::CreateKernel(const std::string& source, const char* kernel_name) {
  const std::lock_guard lock(mutex_);
  auto it = programs_.find(source);
  if (it == programs_.end()) {
    PLUGIN_ASSIGN_OR_RETURN(const cl_program program, Build(source));
    it = programs_.emplace(source, program).first;
  }
  cl_int error = CL_SUCCESS;
  const cl_kernel kernel = Cl().clCreateKernel(it->second, kernel_name, &error);
  PLUGIN_RETURN_IF_ERROR(Check(error, "clCreateKernel"));
  return kernel;
}

Result<cl_program> ProgramCache::Build(const std::string& source) {
  if (const auto binary = files_.Read(source)) {
    if (const cl_program program = BuildFromBinary(*binary)) return program;
  }
  const char* text = source.data();
  const size_t length = source.size();
  cl_int error = CL_SUCCESS;
  const cl_program program = Cl().clCreateProgramWithSource(context_, 1, &text, &length, &error);
  PLUGIN_RETURN_IF_ERROR(Check(error, "clCreateProgramWithSource"));
  error = Cl().clBuildProgram(program, 1, &device_, kOptions, nullptr, nullptr);
  if (error != CL_SUCCESS) {
    const std::string log = BuildLog(program, device_);
    Cl().clReleaseProgram(program);
    return Failure("clBuildProgram: OpenCL error {}: {}\n{}", error, log, source);
  }
  ++compiled_;
  WriteFile(program, source);
  return program;
}

cl_program ProgramCache::BuildFromBinary(const std::vector<char>& bytes) {
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  const size_t size = bytes.size();
  cl_int error = CL_SUCCESS;
  const cl_program program =
      Cl().clCreateProgramWithBinary(context_, 1, &device_, &size, &data, nullptr, &error);
  if (error != CL_SUCCESS) return nullptr;  // of another version: built anew
  if (Cl().clBuildProgram(program, 1, &device_, kOptions, nullptr, nullptr) != CL_SUCCESS) {
    Cl().clReleaseProgram(program);
    return nullptr;
  }
  return program;
}

void ProgramCache::WriteFile(cl_program program, const std::string& source) const {
  size_t size = 0;
  if (Cl().clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, nullptr) !=
          CL_SUCCESS ||
      size == 0) {
    return;
  }
  std::vector<unsigned char> bytes(size);
  unsigned char* data = bytes.data();
  if (Cl().clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(data), &data, nullptr) !=
      CL_SUCCESS) {
    return;
  }
  files_.Write(source, {reinterpret_cast<const char*>(bytes.data()), size});
}

}  // namespace opencl
