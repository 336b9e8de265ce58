#include "plugin/stream.h"

#include "capi/boundary/handles.h"
#include "capi/boundary/slots.h"
#include "plugin/call.h"

namespace tenon::plugin {
namespace {

class PluginNotification final : public Notification {
 public:
  PluginNotification(OrtSyncNotificationImpl* impl, OrtSyncStream& producer)
      : impl_(impl), producer_(producer) {}
  ~PluginNotification() override { impl_->Release(impl_); }

  Status Activate() override {
    TENON_RETURN_IF_ERROR(Call([&] { return impl_->Activate(impl_); }));
    sync_id_ = producer_.NextSyncId();
    return OkStatus();
  }

  Status WaitOnDevice(Stream& consumer) override {
    auto* const stream = dynamic_cast<OrtSyncStream*>(&consumer);
    if (stream == nullptr) return WaitOnHost();
    TENON_RETURN_IF_ERROR(Call([&] { return impl_->WaitOnDevice(impl_, stream); }));
    stream->RecordWaitFor(producer_, sync_id_);
    return OkStatus();
  }

  Status WaitOnHost() override {
    return Call([&] { return impl_->WaitOnHost(impl_); });
  }

 private:
  OrtSyncNotificationImpl* const impl_;
  OrtSyncStream& producer_;
  uint64_t sync_id_ = 0;
};

class PluginStream final : public OrtSyncStream {
 public:
  PluginStream(OrtSyncStreamImpl* impl, const MemoryInfo& device, std::shared_ptr<void> owner,
               std::string_view provider)
      : impl_(impl), device_(device), owner_(std::move(owner)), provider_(provider) {}
  ~PluginStream() override {
    LeaveAllocators();
    impl_->Release(impl_);
  }

  const MemoryInfo& device() const override { return device_; }
  OrtSyncStreamImpl* impl() const override { return impl_; }
  void* handle() const override { return impl_->GetHandle(impl_); }

  Result<std::unique_ptr<Notification>> CreateNotification() override {
    OrtSyncNotificationImpl* made = nullptr;
    TENON_RETURN_IF_ERROR(Call([&] { return impl_->CreateNotification(impl_, &made); }));
    if (made == nullptr) return Fail("a stream of {} made no notification", provider_);
    Status status = CheckSlots(provider_, "notification",
                               {TENON_SLOT(made, Release), TENON_SLOT(made, Activate),
                                TENON_SLOT(made, WaitOnDevice), TENON_SLOT(made, WaitOnHost)});
    if (status.ok()) return std::make_unique<PluginNotification>(made, *this);
    if (made->Release != nullptr) made->Release(made);
    return Failure(std::move(status));
  }

  Status Flush() override {
    return Call([&] { return impl_->Flush(impl_); });
  }

  Status OnRunEnd() override {
    return Call([&] { return impl_->OnSessionRunEnd(impl_); });
  }

 private:
  OrtSyncStreamImpl* const impl_;
  const MemoryInfo& device_;
  const std::shared_ptr<void> owner_;
  const std::string provider_;
};

}  // namespace

Result<std::unique_ptr<OrtSyncStream>> AdoptStream(OrtSyncStreamImpl* impl,
                                                   const MemoryInfo& device,
                                                   std::shared_ptr<void> owner,
                                                   std::string_view provider) {
  if (impl == nullptr) return Fail("{} made no stream", provider);
  Status status = CheckSlots(
      provider, "stream",
      {TENON_SLOT(impl, Release), TENON_SLOT(impl, GetHandle), TENON_SLOT(impl, CreateNotification),
       TENON_SLOT(impl, Flush), TENON_SLOT(impl, OnSessionRunEnd)});
  if (status.ok()) return std::make_unique<PluginStream>(impl, device, std::move(owner), provider);
  if (impl->Release != nullptr) impl->Release(impl);
  return Failure(std::move(status));
}

}  // namespace tenon::plugin

namespace tenon::capi {

const OrtSyncStreamImpl* SyncStream_GetImpl(const OrtSyncStream* stream) noexcept {
  return stream == nullptr ? nullptr : stream->impl();
}
uint64_t SyncStream_GetSyncId(const OrtSyncStream* stream) noexcept {
  return stream == nullptr ? 0 : stream->sync_id();
}
uint64_t GetSyncIdForLastWaitOnSyncStream(const OrtSyncStream* producer_stream,
                                          const OrtSyncStream* consumer_stream) noexcept {
  if (producer_stream == nullptr || consumer_stream == nullptr) return 0;
  return consumer_stream->WaitedFor(*producer_stream);
}

}  // namespace tenon::capi
