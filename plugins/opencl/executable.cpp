#include "executable.h"

namespace opencl {

Result<std::unique_ptr<Executable>> Executable::Create(Device& device, Plan plan,
                                                       std::span<const cl_mem> weights) {
  std::unique_ptr<Executable> executable(new Executable(std::move(plan)));
  PLUGIN_RETURN_IF_ERROR(executable->Prepare(device, weights));
  return executable;
}

Executable::~Executable() {
  if (last_event_) {
    Cl().clWaitForEvents(1, &last_event_);
    Cl().clReleaseEvent(last_event_);
  }
  for (const cl_kernel kernel : kernels_) Cl().clReleaseKernel(kernel);
  for (const cl_mem constant : constants_) Cl().clReleaseMemObject(constant);
  if (slab_) Cl().clReleaseMemObject(slab_);
}

Status Executable::Prepare(Device& device, std::span<const cl_mem> weights) {
  cl_int error = CL_SUCCESS;
  if (plan_.slab_bytes > 0) {
    if (plan_.slab_bytes > device.max_buffer_bytes()) {
      return Failure(
          "the values between the nodes take {} bytes, more than the {} of a buffer of "
          "the device",
          plan_.slab_bytes, device.max_buffer_bytes());
    }
    slab_ =
        Cl().clCreateBuffer(device.context(), CL_MEM_READ_WRITE, plan_.slab_bytes, nullptr, &error);
    PLUGIN_RETURN_IF_ERROR(Check(error, "clCreateBuffer"));
  }
  for (HostTensor& constant : plan_.constants) {
    if (constant.bytes.empty()) constant.bytes.resize(1);
    const cl_mem buffer =
        Cl().clCreateBuffer(device.context(), CL_MEM_READ_ONLY | CL_MEM_COPY_HOST_PTR,
                            constant.bytes.size(), constant.bytes.data(), &error);
    PLUGIN_RETURN_IF_ERROR(Check(error, "clCreateBuffer"));
    constants_.push_back(buffer);
  }
  run_arguments_.resize(plan_.launches.size());
  for (size_t i = 0; i < plan_.launches.size(); ++i) {
    Launch& launch = plan_.launches[i];
    PLUGIN_ASSIGN_OR_RETURN(const cl_kernel kernel,
                            device.programs().CreateKernel(launch.source, launch.name.c_str()));
    kernels_.push_back(kernel);
    PLUGIN_RETURN_IF_ERROR(SetArguments(i, weights));
    launch.source.clear();
    launch.source.shrink_to_fit();
  }
  return Status();
}

// A buffer takes two arguments of a kernel, others one.
Status Executable::SetArguments(size_t launch, std::span<const cl_mem> weights) {
  const cl_kernel kernel = kernels_[launch];
  cl_uint index = 0;
  for (const Argument& argument : plan_.launches[launch].arguments) {
    if (argument.kind == Argument::kInt) {
      PLUGIN_RETURN_IF_ERROR(
          Check(Cl().clSetKernelArg(kernel, index++, sizeof(cl_int), &argument.integer),
                "clSetKernelArg"));
      continue;
    }
    if (argument.kind == Argument::kFloat) {
      PLUGIN_RETURN_IF_ERROR(
          Check(Cl().clSetKernelArg(kernel, index++, sizeof(cl_float), &argument.real),
                "clSetKernelArg"));
      continue;
    }
    const Storage& storage = plan_.storages[static_cast<size_t>(argument.storage)];
    const auto number = static_cast<size_t>(storage.index);
    switch (storage.kind) {
      case Storage::kWeight:
        PLUGIN_RETURN_IF_ERROR(SetBuffer(kernel, index, argument, weights[number], 0));
        break;
      case Storage::kConstant:
        PLUGIN_RETURN_IF_ERROR(SetBuffer(kernel, index, argument, constants_[number], 0));
        break;
      case Storage::kScratch:
        PLUGIN_RETURN_IF_ERROR(SetBuffer(kernel, index, argument, slab_, storage.slab_offset));
        break;
      default:
        run_arguments_[launch].push_back({index, argument});
    }
    index += 2;
  }
  return Status();
}

Status Executable::SetBuffer(cl_kernel kernel, cl_uint index, const Argument& argument,
                             cl_mem buffer, size_t offset_bytes) {
  if (offset_bytes % argument.element_size != 0) {
    return Failure("expected memory aligned to its elements of {} bytes", argument.element_size);
  }
  const cl_long offset =
      argument.offset + static_cast<cl_long>(offset_bytes / argument.element_size);
  PLUGIN_RETURN_IF_ERROR(
      Check(Cl().clSetKernelArg(kernel, index, sizeof(cl_mem), &buffer), "clSetKernelArg"));
  return Check(Cl().clSetKernelArg(kernel, index + 1, sizeof(offset), &offset), "clSetKernelArg");
}

Status Executable::Run(cl_command_queue queue, std::span<const Location> inputs,
                       std::span<const Location> outputs, DeviceTrace& trace) {
  if (last_event_ && last_queue_ != queue) {
    PLUGIN_RETURN_IF_ERROR(Check(Cl().clEnqueueBarrierWithWaitList(queue, 1, &last_event_, nullptr),
                                 "clEnqueueBarrierWithWaitList"));
  }
  const bool is_traced = trace.is_active();
  for (size_t i = 0; i < kernels_.size(); ++i) {
    for (const RunArgument& run : run_arguments_[i]) {
      const Storage& storage = plan_.storages[static_cast<size_t>(run.argument.storage)];
      const Location& place = storage.kind == Storage::kInput
                                  ? inputs[static_cast<size_t>(storage.index)]
                                  : outputs[static_cast<size_t>(storage.index)];
      PLUGIN_RETURN_IF_ERROR(
          SetBuffer(kernels_[i], run.index, run.argument, place.buffer, place.offset_bytes));
    }
    const Launch& launch = plan_.launches[i];
    const bool is_last = i + 1 == kernels_.size();
    cl_event event = nullptr;
    PLUGIN_RETURN_IF_ERROR(
        Check(Cl().clEnqueueNDRangeKernel(queue, kernels_[i], 3, nullptr, launch.global.data(),
                                          launch.local.data(), 0, nullptr,
                                          is_traced || is_last ? &event : nullptr),
              "clEnqueueNDRangeKernel"));
    if (is_last) {
      if (last_event_) Cl().clReleaseEvent(last_event_);
      last_event_ = event;
      last_queue_ = queue;
      if (is_traced) Cl().clRetainEvent(event);
    }
    if (is_traced) trace.Add(launch.name, event);
  }
  return Check(Cl().clFlush(queue), "clFlush");
}

}  // namespace opencl
