#include "device_trace.h"

#include <algorithm>

namespace opencl {
namespace {

// Events hold driver objects: their times are read when this many wait.
constexpr size_t kMaxPending = 4096;

cl_ulong TimeOf(cl_event event, cl_profiling_info what) {
  cl_ulong time = 0;
  Cl().clGetEventProfilingInfo(event, what, sizeof(time), &time, nullptr);
  return time;
}

}  // namespace

DeviceTrace::~DeviceTrace() {
  for (const Pending& pending : pending_) Cl().clReleaseEvent(pending.event);
}

// OpenCL 1.2 cannot ask for the device's time, but a marker that has just ended has it. How long
// the host takes to notice varies: the quickest of several markers is nearest to the truth.
Status DeviceTrace::Calibrate() {
  constexpr int kMarkers = 8;
  PLUGIN_ASSIGN_OR_RETURN(const cl_command_queue queue, device_.CreateQueue());
  auto difference = std::chrono::nanoseconds::max();
  cl_int error = CL_SUCCESS;
  for (int i = 0; i < kMarkers && error == CL_SUCCESS; ++i) {
    cl_event event = nullptr;
    error = Cl().clEnqueueMarkerWithWaitList(queue, 0, nullptr, &event);
    if (error != CL_SUCCESS) break;
    Cl().clFinish(queue);
    const auto now = Now();
    const auto ended = static_cast<int64_t>(TimeOf(event, CL_PROFILING_COMMAND_END));
    difference = std::min(difference, now - std::chrono::nanoseconds(ended));
    Cl().clReleaseEvent(event);
  }
  Cl().clReleaseCommandQueue(queue);
  PLUGIN_RETURN_IF_ERROR(Check(error, "clEnqueueMarkerWithWaitList"));
  device_to_host_ = difference;
  return Status();
}

void DeviceTrace::Add(std::string name, cl_event event) {
  const std::lock_guard lock(mutex());
  pending_.push_back({std::move(name), event, CurrentCause()});
  if (pending_.size() >= kMaxPending) ReadTimes();
}

void DeviceTrace::ReadTimes() {
  for (const Pending& pending : pending_) {
    if (Cl().clWaitForEvents(1, &pending.event) == CL_SUCCESS) {
      const auto start = static_cast<int64_t>(TimeOf(pending.event, CL_PROFILING_COMMAND_START));
      const auto end = static_cast<int64_t>(TimeOf(pending.event, CL_PROFILING_COMMAND_END));
      AddRecord({pending.name, std::chrono::nanoseconds(start) + device_to_host_,
                 std::chrono::nanoseconds(std::max<int64_t>(end - start, 0)), pending.cause});
    }
    Cl().clReleaseEvent(pending.event);
  }
  pending_.clear();
}

}  // namespace opencl
