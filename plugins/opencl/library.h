// The OpenCL library, found when it is needed: nothing links to it.
#pragma once

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <type_traits>

#include "status.h"

namespace opencl {

using namespace codegen;  // NOLINT: the provider is the planner on a device

// Functions of OpenCL 1.2 that the provider uses.
// clang-format off
#define OPENCL_FUNCTIONS(X) \
  X(clGetPlatformIDs) X(clGetPlatformInfo) X(clGetDeviceIDs) X(clGetDeviceInfo) \
  X(clCreateContext) X(clReleaseContext) X(clCreateCommandQueue) X(clReleaseCommandQueue) \
  X(clCreateBuffer) X(clReleaseMemObject) X(clEnqueueReadBuffer) X(clEnqueueWriteBuffer) \
  X(clEnqueueCopyBuffer) X(clEnqueueMapBuffer) X(clEnqueueUnmapMemObject) X(clFinish) X(clFlush) \
  X(clCreateProgramWithSource) X(clCreateProgramWithBinary) X(clBuildProgram) \
  X(clGetProgramInfo) X(clGetProgramBuildInfo) X(clReleaseProgram) X(clCreateKernel) \
  X(clReleaseKernel) X(clSetKernelArg) X(clEnqueueNDRangeKernel) X(clEnqueueMarkerWithWaitList) \
  X(clEnqueueBarrierWithWaitList) X(clWaitForEvents) X(clReleaseEvent) X(clRetainEvent) \
  X(clGetEventProfilingInfo)
// clang-format on

struct Library {
#define X(name) decltype(&::name) name = nullptr;
  OPENCL_FUNCTIONS(X)
#undef X
};

// Opens libOpenCL once for the process; the text says which file names were tried.
const Result<Library>& LoadLibrary();

// The loaded library. Only called after LoadLibrary has succeeded, as finding a device implies.
const Library& Cl();

// "clBuildProgram: error -11" if `code` is one.
Status Check(cl_int code, const char* function);

}  // namespace opencl
