#include "trace.h"

#include <algorithm>
#include <iterator>

namespace codegen {
namespace {

// The host's events that are open on this thread, the innermost one last.
std::vector<uint64_t>& OpenEvents() {
  thread_local std::vector<uint64_t> open;
  return open;
}

OrtStatus* AddRecords(const Trace::Records& records, const char* provider,
                      std::chrono::nanoseconds start, OrtProfilingEventsContainer* container) {
  using std::chrono::duration_cast;
  using std::chrono::microseconds;
  const char* const keys[] = {"provider", "parent", "correlation"};
  for (const Trace::Record& record : records.all) {
    const auto cause = records.causes.find(record.cause);
    const bool has_cause = cause != records.causes.end() && !cause->second.empty();
    const std::string id = std::to_string(record.cause);
    const char* const values[] = {provider, has_cause ? cause->second.c_str() : "", id.c_str()};
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

bool Trace::is_active() const {
  const std::lock_guard lock(mutex_);
  return profilers_ > 0;
}

Status Trace::Start() {
  const std::lock_guard lock(mutex_);
  PLUGIN_RETURN_IF_ERROR(Calibrate());
  ++profilers_;
  return Status();
}

uint64_t Trace::CurrentCause() {
  const uint64_t cause = OpenEvents().empty() ? 0 : OpenEvents().back();
  if (cause != 0) records_.causes.try_emplace(cause);
  return cause;
}

void Trace::Flush() {
  const std::lock_guard lock(mutex_);
  ReadTimes();
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

Profiler::Profiler(Trace& provider_trace, const char* provider_name)
    : OrtEpProfilerImpl{}, trace(provider_trace), provider(provider_name) {
  ort_version_supported = kAbiVersion;
  Release = [](OrtEpProfilerImpl* self) noexcept {
    auto* me = static_cast<Profiler*>(self);
    if (me->is_started) me->trace.Stop(me->start);
    delete me;
  };
  StartProfiling = [](OrtEpProfilerImpl* self, int64_t offset_ns) noexcept -> OrtStatus* {
    return Guarded([&]() -> OrtStatus* {
      auto* me = static_cast<Profiler*>(self);
      me->start = Trace::Now() - std::chrono::nanoseconds(offset_ns);
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
      return AddRecords(me->trace.Stop(me->start), me->provider, me->start, container);
    });
  };
}

}  // namespace codegen
