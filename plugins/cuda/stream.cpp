#include "stream.h"

namespace cuda {
namespace {

// A point of a stream.
struct Notification : OrtSyncNotificationImpl {
  Notification(Device& of_device, CUstream producer, CUevent point)
      : OrtSyncNotificationImpl{}, device(of_device), stream(producer), event(point) {
    ort_version_supported = kAbiVersion;
    Release = [](OrtSyncNotificationImpl* self) noexcept {
      auto* me = static_cast<Notification*>(self);
      if (me->device.MakeCurrent().ok()) Cu().cuEventDestroy(me->event);
      delete me;
    };
    Activate = [](OrtSyncNotificationImpl* self) noexcept -> OrtStatus* {
      auto* me = static_cast<Notification*>(self);
      RETURN_IF_ORT_ERROR(ToOrt(me->device.MakeCurrent()));
      return ToOrt(CU_CHECK(cuEventRecord, me->event, me->stream));
    };
    // An event that was never recorded is over.
    WaitOnDevice = [](OrtSyncNotificationImpl* self, OrtSyncStream* consumer) noexcept {
      auto* me = static_cast<Notification*>(self);
      const Stream* waiting = Stream::Of(consumer);
      if (!waiting) return me->WaitOnHost(self);
      if (OrtStatus* status = ToOrt(waiting->device.MakeCurrent())) return status;
      return ToOrt(CU_CHECK(cuStreamWaitEvent, waiting->stream, me->event, 0));
    };
    WaitOnHost = [](OrtSyncNotificationImpl* self) noexcept -> OrtStatus* {
      auto* me = static_cast<Notification*>(self);
      RETURN_IF_ORT_ERROR(ToOrt(me->device.MakeCurrent()));
      return ToOrt(CU_CHECK(cuEventSynchronize, me->event));
    };
  }

  Device& device;
  CUstream stream;
  CUevent event;
};

}  // namespace

Stream::Stream(Device& stream_device, CUstream handle, DeviceTrace* stream_trace)
    : OrtSyncStreamImpl{}, device(stream_device), stream(handle), trace(stream_trace) {
  ort_version_supported = kAbiVersion;
  Release = [](OrtSyncStreamImpl* self) noexcept { delete static_cast<Stream*>(self); };
  GetHandle = [](OrtSyncStreamImpl* self) noexcept -> void* {
    return static_cast<Stream*>(self)->stream;
  };
  CreateNotification = [](OrtSyncStreamImpl* self,
                          OrtSyncNotificationImpl** out) noexcept -> OrtStatus* {
    return Guarded([&]() -> OrtStatus* {
      auto* me = static_cast<Stream*>(self);
      CUevent event = nullptr;
      RETURN_IF_ORT_ERROR(ToOrt(me->device.MakeCurrent()));
      RETURN_IF_ORT_ERROR(ToOrt(CU_CHECK(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING)));
      *out = new Notification(me->device, me->stream, event);
      return nullptr;
    });
  };
  OrtSyncStreamImpl::Flush = [](OrtSyncStreamImpl* self) noexcept -> OrtStatus* {
    auto* me = static_cast<Stream*>(self);
    RETURN_IF_ORT_ERROR(ToOrt(me->device.MakeCurrent()));
    return ToOrt(CU_CHECK(cuStreamSynchronize, me->stream));
  };
  OnSessionRunEnd = [](OrtSyncStreamImpl*) noexcept -> OrtStatus* { return nullptr; };
}

Result<Stream*> Stream::Create(Device& device, DeviceTrace* trace) {
  PLUGIN_ASSIGN_OR_RETURN(CUstream const stream, device.CreateStream());
  return new Stream(device, stream, trace);
}

Stream::~Stream() { device.DestroyStream(stream); }

Stream* Stream::Of(const OrtSyncStream* stream) {
  if (!stream) return nullptr;
  const OrtSyncStreamImpl* impl = ep->SyncStream_GetImpl(stream);
  return const_cast<Stream*>(static_cast<const Stream*>(impl));
}

}  // namespace cuda
