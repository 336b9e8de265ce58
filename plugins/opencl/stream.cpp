#include "stream.h"

namespace opencl {
namespace {

// A point of a queue: the end of a marker.
struct Notification : OrtSyncNotificationImpl {
  explicit Notification(cl_command_queue producer) : OrtSyncNotificationImpl{}, queue(producer) {
    ort_version_supported = kAbiVersion;
    Release = [](OrtSyncNotificationImpl* self) noexcept {
      auto* me = static_cast<Notification*>(self);
      me->Forget();
      delete me;
    };
    Activate = [](OrtSyncNotificationImpl* self) noexcept -> OrtStatus* {
      auto* me = static_cast<Notification*>(self);
      me->Forget();
      const cl_int error = Cl().clEnqueueMarkerWithWaitList(me->queue, 0, nullptr, &me->event);
      if (error == CL_SUCCESS) Cl().clFlush(me->queue);  // others may wait for it
      return ToOrt(Check(error, "clEnqueueMarkerWithWaitList"));
    };
    WaitOnDevice = [](OrtSyncNotificationImpl* self, OrtSyncStream* consumer) noexcept {
      auto* me = static_cast<Notification*>(self);
      Stream* stream = Stream::Of(consumer);
      if (!stream) return me->WaitOnHost(self);
      if (!me->event) return static_cast<OrtStatus*>(nullptr);
      return ToOrt(Check(Cl().clEnqueueBarrierWithWaitList(stream->queue, 1, &me->event, nullptr),
                         "clEnqueueBarrierWithWaitList"));
    };
    WaitOnHost = [](OrtSyncNotificationImpl* self) noexcept -> OrtStatus* {
      auto* me = static_cast<Notification*>(self);
      if (!me->event) return nullptr;  // never activated: there is nothing to wait for
      return ToOrt(Check(Cl().clWaitForEvents(1, &me->event), "clWaitForEvents"));
    };
  }

  void Forget() {
    if (event) Cl().clReleaseEvent(event);
    event = nullptr;
  }

  cl_command_queue queue;
  cl_event event = nullptr;
};

}  // namespace

Stream::Stream(cl_command_queue stream_queue, DeviceTrace* stream_trace)
    : OrtSyncStreamImpl{}, queue(stream_queue), trace(stream_trace) {
  ort_version_supported = kAbiVersion;
  Release = [](OrtSyncStreamImpl* self) noexcept { delete static_cast<Stream*>(self); };
  GetHandle = [](OrtSyncStreamImpl* self) noexcept -> void* {
    return static_cast<Stream*>(self)->queue;
  };
  CreateNotification = [](OrtSyncStreamImpl* self,
                          OrtSyncNotificationImpl** out) noexcept -> OrtStatus* {
    return Guarded([&]() -> OrtStatus* {
      *out = new Notification(static_cast<Stream*>(self)->queue);
      return nullptr;
    });
  };
  OrtSyncStreamImpl::Flush = [](OrtSyncStreamImpl* self) noexcept -> OrtStatus* {
    return ToOrt(Check(Cl().clFinish(static_cast<Stream*>(self)->queue), "clFinish"));
  };
  OnSessionRunEnd = [](OrtSyncStreamImpl*) noexcept -> OrtStatus* { return nullptr; };
}

Result<Stream*> Stream::Create(const Device& device, DeviceTrace* trace) {
  PLUGIN_ASSIGN_OR_RETURN(const cl_command_queue queue, device.CreateQueue());
  return new Stream(queue, trace);
}

Stream::~Stream() {
  Cl().clFinish(queue);
  Cl().clReleaseCommandQueue(queue);
}

Stream* Stream::Of(const OrtSyncStream* stream) {
  if (!stream) return nullptr;
  const OrtSyncStreamImpl* impl = ep->SyncStream_GetImpl(stream);
  return const_cast<Stream*>(static_cast<const Stream*>(impl));
}

}  // namespace opencl
