#include "device.h"

#include "operators.h"

namespace opencl {
namespace {

constexpr std::string_view kPrelude =
    "#define KERNEL kernel\n#define GLOBAL global\n#define LOCAL local\n";

std::string Text(cl_device_id id, cl_device_info what) {
  size_t size = 0;
  if (Cl().clGetDeviceInfo(id, what, 0, nullptr, &size) != CL_SUCCESS || size == 0) return {};
  std::string text(size, '\0');
  Cl().clGetDeviceInfo(id, what, size, text.data(), nullptr);
  text.resize(size - 1);  // without the terminating zero
  return text;
}

template <class T>
T Number(cl_device_id id, cl_device_info what) {
  T value = 0;
  Cl().clGetDeviceInfo(id, what, sizeof(value), &value, nullptr);
  return value;
}

// "OpenCL 3.0 ..." -> 30.
int VersionOf(const std::string& text) {
  constexpr size_t kDigits = 7;  // "OpenCL "
  if (text.size() < kDigits + 3) return 0;
  return (text[kDigits] - '0') * 10 + (text[kDigits + 2] - '0');
}

}  // namespace

Result<std::unique_ptr<Device>> Device::Create(cl_platform_id platform, cl_device_id id) {
  std::unique_ptr<Device> device(new Device);
  device->id_ = id;
  device->name_ = Text(id, CL_DEVICE_NAME);
  device->version_ = Text(id, CL_DEVICE_VERSION);
  if (VersionOf(device->version_) < 12 || !Number<cl_bool>(id, CL_DEVICE_COMPILER_AVAILABLE)) {
    return Failure("{}: expected OpenCL 1.2 and a compiler, got {}", device->name_,
                   device->version_);
  }
  device->type_ = Number<cl_device_type>(id, CL_DEVICE_TYPE);
  device->vendor_id_ = Number<cl_uint>(id, CL_DEVICE_VENDOR_ID);
  device->max_buffer_bytes_ = Number<cl_ulong>(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  device->target_ = {.find = FindGenerated,
                     .prelude = kPrelude,
                     .max_group_size = Number<size_t>(id, CL_DEVICE_MAX_WORK_GROUP_SIZE)};
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM,
                                              reinterpret_cast<cl_context_properties>(platform), 0};
  cl_int error = CL_SUCCESS;
  device->context_ = Cl().clCreateContext(properties, 1, &id, nullptr, nullptr, &error);
  PLUGIN_RETURN_IF_ERROR(Check(error, "clCreateContext"));
  device->memory_ = std::make_unique<AddressSpace>(device->context_);
  device->programs_ = std::make_unique<ProgramCache>(
      device->context_, id, device->name_ + device->version_ + Text(id, CL_DRIVER_VERSION));
  return device;
}

Device::~Device() {
  if (transfer_queue_) Cl().clReleaseCommandQueue(transfer_queue_);
  programs_.reset();
  memory_.reset();
  if (context_) Cl().clReleaseContext(context_);
}

Result<cl_command_queue> Device::transfer_queue() {
  const std::lock_guard lock(mutex_);
  if (!transfer_queue_) {
    PLUGIN_ASSIGN_OR_RETURN(transfer_queue_, CreateQueue());
  }
  return transfer_queue_;
}

Result<cl_command_queue> Device::CreateQueue() const {
  cl_int error = CL_SUCCESS;
  const cl_command_queue queue =
      Cl().clCreateCommandQueue(context_, id_, CL_QUEUE_PROFILING_ENABLE, &error);
  PLUGIN_RETURN_IF_ERROR(Check(error, "clCreateCommandQueue"));
  return queue;
}

std::vector<std::unique_ptr<Device>> FindDevices(std::string& problems) {
  std::vector<std::unique_ptr<Device>> devices;
  if (!LoadLibrary().ok()) {
    problems = LoadLibrary().status().text();
    return devices;
  }
  cl_uint count = 0;
  if (Cl().clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS) count = 0;
  if (count == 0) problems = "libOpenCL is here, but no driver: no platform is registered with it";
  std::vector<cl_platform_id> platforms(count);
  if (count > 0) Cl().clGetPlatformIDs(count, platforms.data(), nullptr);
  for (const cl_platform_id platform : platforms) {
    cl_uint found = 0;
    if (Cl().clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &found) != CL_SUCCESS) {
      continue;
    }
    std::vector<cl_device_id> ids(found);
    Cl().clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, found, ids.data(), nullptr);
    for (const cl_device_id id : ids) {
      auto device = Device::Create(platform, id);
      if (device.ok()) {
        devices.push_back(std::move(*device));
      } else {
        problems += device.status().text() + "\n";
      }
    }
  }
  return devices;
}

}  // namespace opencl
