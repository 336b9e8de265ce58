#include "trace.h"

#include <algorithm>
#include <iterator>

namespace opencl {
namespace {

// Events hold driver objects: their times are read when this many wait.
constexpr size_t kMaxPending = 4096;

std::chrono::nanoseconds Now() { return std::chrono::steady_clock::now().time_since_epoch(); }

cl_ulong TimeOf(cl_event event, cl_profiling_info what) {
  cl_ulong time = 0;
  Cl().clGetEventProfilingInfo(event, what, sizeof(time), &time, nullptr);
  return time;
}

// The host's events that are open on this thread, the innermost one last.
std::vector<uint64_t>& OpenEvents() {
  thread_local std::vector<uint64_t> open;
  return open;
}

OrtStatus* AddRecords(const Trace::Records& records, std::chrono::nanoseconds start,
                      OrtProfilingEventsContainer* container) {
  using std::chrono::duration_cast;
  using std::chrono::microseconds;
  const char* const keys[] = {"provider", "parent", "correlation"};
  for (const Record& record : records.all) {
    const auto cause = records.causes.find(record.cause);
    const bool has_cause = cause != records.causes.end() && !cause->second.empty();
    const std::string id = std::to_string(record.cause);
    const char* const values[] = {kProviderName, has_cause ? cause->second.c_str() : "",
                                  id.c_str()};
    OrtProfilingEvent* event = nullptr;
    RETURN_IF_ORT_ERROR(
        ep->CreateProfilingEvent(OrtProfilingEventCategory_KERNEL, -1, -1, record.name.c_str(),
                                 duration_cast<microseconds>(record.start - start).count(),
                                 duration_cast<microseconds>(record.duration).count(), keys, values,
                                 has_cause ? 3 : 1, &event));
    OrtStatus* status = ep->ProfilingEventsContainer_AddEvents(container, &event, 1);
    ep->ReleaseProfilingEvent(event);
    RETURN_IF_ORT_ERROR(status);
  }
  return nullptr;
}

}  // namespace

Trace::~Trace() {
  for (const Pending& pending : pending_) Cl().clReleaseEvent(pending.event);
}

bool Trace::is_active() const {
  const std::lock_guard lock(mutex_);
  return profilers_ > 0;
}

// OpenCL 1.2 cannot ask for the device's time, but a marker that has just ended has it. How long
// the host takes to notice varies: the quickest of several markers is nearest to the truth.
Status Trace::Start() {
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
  const std::lock_guard lock(mutex_);
  device_to_host_ = difference;
  ++profilers_;
  return Status();
}

void Trace::Add(std::string name, cl_event event) {
  const std::lock_guard lock(mutex_);
  const uint64_t cause = OpenEvents().empty() ? 0 : OpenEvents().back();
  if (cause != 0) records_.causes.try_emplace(cause);
  pending_.push_back({std::move(name), event, cause});
  if (pending_.size() >= kMaxPending) ReadTimes();
}

void Trace::Flush() {
  const std::lock_guard lock(mutex_);
  ReadTimes();
}

void Trace::ReadTimes() {
  for (const Pending& pending : pending_) {
    if (Cl().clWaitForEvents(1, &pending.event) == CL_SUCCESS) {
      const auto start = static_cast<int64_t>(TimeOf(pending.event, CL_PROFILING_COMMAND_START));
      const auto end = static_cast<int64_t>(TimeOf(pending.event, CL_PROFILING_COMMAND_END));
      records_.all.push_back({pending.name, std::chrono::nanoseconds(start) + device_to_host_,
                              std::chrono::nanoseconds(std::max<int64_t>(end - start, 0)),
                              pending.cause});
    }
    Cl().clReleaseEvent(pending.event);
  }
  pending_.clear();
}

void Trace::StartEvent(uint64_t id) { OpenEvents().push_back(id); }

void Trace::StopEvent(uint64_t id, const char* name) {
  std::vector<uint64_t>& open = OpenEvents();
  const auto opened = std::find(open.rbegin(), open.rend(), id);
  if (opened != open.rend()) open.erase(std::prev(opened.base()), open.end());
  const std::lock_guard lock(mutex_);
  const auto cause = records_.causes.find(id);
  if (cause != records_.causes.end()) cause->second = name;
}

Trace::Records Trace::Stop(std::chrono::nanoseconds start) {
  const std::lock_guard lock(mutex_);
  ReadTimes();
  Records wanted = {{}, records_.causes};
  for (const Record& record : records_.all) {
    if (record.start >= start) wanted.all.push_back(record);
  }
  if (--profilers_ == 0) records_ = {};
  return wanted;
}

Profiler::Profiler(Trace& provider_trace) : OrtEpProfilerImpl{}, trace(provider_trace) {
  ort_version_supported = kAbiVersion;
  Release = [](OrtEpProfilerImpl* self) noexcept {
    auto* me = static_cast<Profiler*>(self);
    if (me->is_started) me->trace.Stop(me->start);
    delete me;
  };
  StartProfiling = [](OrtEpProfilerImpl* self, int64_t offset_ns) noexcept -> OrtStatus* {
    return Guarded([&]() -> OrtStatus* {
      auto* me = static_cast<Profiler*>(self);
      me->start = Now() - std::chrono::nanoseconds(offset_ns);
      RETURN_IF_ORT_ERROR(ToOrt(me->trace.Start()));
      me->is_started = true;
      return nullptr;
    });
  };
  StartEvent = [](OrtEpProfilerImpl*, uint64_t id) noexcept -> OrtStatus* {
    return Guarded([&]() -> OrtStatus* {
      Trace::StartEvent(id);
      return nullptr;
    });
  };
  StopEvent = [](OrtEpProfilerImpl* self, uint64_t id,
                 const OrtProfilingEvent* event) noexcept -> OrtStatus* {
    return Guarded([&]() -> OrtStatus* {
      const char* name = nullptr;
      RETURN_IF_ORT_ERROR(ep->ProfilingEvent_GetName(event, &name));
      static_cast<Profiler*>(self)->trace.StopEvent(id, name);
      return nullptr;
    });
  };
  EndProfiling = [](OrtEpProfilerImpl* self,
                    OrtProfilingEventsContainer* container) noexcept -> OrtStatus* {
    return Guarded([&]() -> OrtStatus* {
      auto* me = static_cast<Profiler*>(self);
      if (!me->is_started) return nullptr;
      me->is_started = false;
      return AddRecords(me->trace.Stop(me->start), me->start, container);
    });
  };
}

}  // namespace opencl
