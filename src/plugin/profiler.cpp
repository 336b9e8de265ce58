#include "plugin/profiler.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "capi/boundary/arguments.h"
#include "capi/boundary/slots.h"
#include "plugin/call.h"

namespace tenon::plugin {
namespace {

constexpr uint32_t kFirstWithProfilers = 25;

class PluginProfiler final : public ProviderProfiler {
 public:
  PluginProfiler(Made<OrtEpProfilerImpl> impl, std::shared_ptr<void> owner, bool outlives_provider)
      : owner_(std::move(owner)), impl_(std::move(impl)), outlives_provider_(outlives_provider) {}

  bool outlives_provider() const override { return outlives_provider_; }

  Status Start(std::chrono::nanoseconds offset) override {
    return Call([&] { return impl_->StartProfiling(impl_.get(), offset.count()); });
  }
  Status StartEvent(uint64_t id) override {
    if (impl_->StartEvent == nullptr) return OkStatus();
    return Call([&] { return impl_->StartEvent(impl_.get(), id); });
  }
  Status StopEvent(uint64_t id, const TraceEvent& event) override {
    if (impl_->StopEvent == nullptr) return OkStatus();
    const OrtProfilingEvent handle = {event};
    return Call([&] { return impl_->StopEvent(impl_.get(), id, &handle); });
  }
  Status End(std::vector<TraceEvent>& events) override {
    OrtProfilingEventsContainer container = {events};
    return Call([&] { return impl_->EndProfiling(impl_.get(), &container); });
  }

 private:
  const std::shared_ptr<void> owner_;
  const Made<OrtEpProfilerImpl> impl_;
  const bool outlives_provider_;
};

}  // namespace

std::unique_ptr<ProviderProfiler> AdoptProfiler(Made<OrtEpProfilerImpl> impl,
                                                std::shared_ptr<void> owner, bool outlives_provider,
                                                const std::string& provider, const Logger& logger) {
  Status status = CheckSlots(provider, "profiler",
                             {TENON_SLOT(impl, Release), TENON_SLOT(impl, StartProfiling),
                              TENON_SLOT(impl, EndProfiling)});
  if (impl->ort_version_supported < kFirstWithProfilers) {
    status = Fail("{} made a profiler of version {}; there are profilers since {}", provider,
                  impl->ort_version_supported, kFirstWithProfilers);
  }
  if (status.ok()) {
    return std::make_unique<PluginProfiler>(std::move(impl), std::move(owner), outlives_provider);
  }
  TENON_LOG(logger, kWarning, "a profiler is not used: {}", status.message());
  return nullptr;
}

}  // namespace tenon::plugin

namespace tenon::capi {
namespace {

// Reads one property of an event.
template <class Body>
OrtStatus* OfEvent(const OrtProfilingEvent* event, const void* out, Body&& body) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(event);
    TENON_RETURN_IF_NULL(out);
    body(event->event);
    return OkStatus();
  });
}

}  // namespace

OrtStatus* CreateProfilingEvent(OrtProfilingEventCategory category, int32_t process_id,
                                int32_t thread_id, const char* event_name, int64_t timestamp_us,
                                int64_t duration_us, const char* const* arg_keys,
                                const char* const* arg_values, size_t num_args,
                                OrtProfilingEvent** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(event_name);
    TENON_RETURN_IF_NULL(out);
    TENON_RETURN_IF_NULL_ARRAY(arg_keys, num_args);
    TENON_RETURN_IF_NULL_ARRAY(arg_values, num_args);
    const int number = category;
    if (number < OrtProfilingEventCategory_SESSION || number > OrtProfilingEventCategory_API) {
      return InvalidArgument("there is no category {} of events", number);
    }
    auto made = std::make_unique<OrtProfilingEvent>();
    made->event.category = static_cast<TraceCategory>(number);
    made->event.name = event_name;
    made->event.start = timestamp_us;
    made->event.duration = duration_us;
    made->event.process = process_id;
    made->event.thread = thread_id;
    for (size_t i = 0; i < num_args; ++i) {
      if (arg_keys[i] == nullptr || arg_values[i] == nullptr) {
        return InvalidArgument("argument {} of event '{}' must not be null", i, event_name);
      }
      made->event.args.push_back({arg_keys[i], arg_values[i]});
    }
    *out = made.release();
    return OkStatus();
  });
}

void ReleaseProfilingEvent(OrtProfilingEvent* input) noexcept { delete input; }

OrtStatus* ProfilingEvent_GetCategory(const OrtProfilingEvent* event,
                                      OrtProfilingEventCategory* out) noexcept {
  return OfEvent(event, out, [&](const TraceEvent& e) {
    *out = static_cast<OrtProfilingEventCategory>(e.category);
  });
}

OrtStatus* ProfilingEvent_GetName(const OrtProfilingEvent* event, const char** out) noexcept {
  return OfEvent(event, out, [&](const TraceEvent& e) { *out = e.name.c_str(); });
}

OrtStatus* ProfilingEvent_GetTimestampUs(const OrtProfilingEvent* event, int64_t* out) noexcept {
  return OfEvent(event, out, [&](const TraceEvent& e) { *out = e.start; });
}

OrtStatus* ProfilingEvent_GetDurationUs(const OrtProfilingEvent* event, int64_t* out) noexcept {
  return OfEvent(event, out, [&](const TraceEvent& e) { *out = e.duration; });
}

OrtStatus* ProfilingEvent_GetArgValue(const OrtProfilingEvent* event, const char* key,
                                      const char** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(event);
    TENON_RETURN_IF_NULL(key);
    TENON_RETURN_IF_NULL(out);
    *out = nullptr;
    for (const TraceArg& arg : event->event.args) {
      if (arg.key == key) *out = arg.value.c_str();
    }
    return OkStatus();
  });
}

OrtStatus* ProfilingEventsContainer_AddEvents(OrtProfilingEventsContainer* events_container,
                                              const OrtProfilingEvent* const* events,
                                              size_t num_events) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(events_container);
    TENON_RETURN_IF_NULL_ARRAY(events, num_events);
    for (size_t i = 0; i < num_events; ++i) {
      if (events[i] == nullptr) return InvalidArgument("events[{}] must not be null", i);
    }
    for (size_t i = 0; i < num_events; ++i) {
      events_container->events.push_back(events[i]->event);
    }
    return OkStatus();
  });
}

}  // namespace tenon::capi
