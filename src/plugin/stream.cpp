#include "plugin/stream.h"

#include "capi/boundary/handles.h"
#include "capi/boundary/slots.h"
#include "plugin/call.h"

namespace tenon::plugin {
namespace {

class PluginNotification final : public Notification {
 public:
  PluginNotification(Made<OrtSyncNotificationImpl> impl, OrtSyncStream& producer)
      : impl_(std::move(impl)), producer_(producer) {}

  Status Activate() override {
    TENON_RETURN_IF_ERROR(Call([&] { return impl_->Activate(impl_.get()); }));
    sync_id_ = producer_.NextSyncId();
    return OkStatus();
  }

  Status WaitOnDevice(Stream& consumer) override {
    auto* const stream = dynamic_cast<OrtSyncStream*>(&consumer);
    if (stream == nullptr) return WaitOnHost();
    TENON_RETURN_IF_ERROR(Call([&] { return impl_->WaitOnDevice(impl_.get(), stream); }));
    stream->RecordWaitFor(producer_, sync_id_);
    return OkStatus();
  }

  Status WaitOnHost() override {
    return Call([&] { return impl_->WaitOnHost(impl_.get()); });
  }

 private:
  const Made<OrtSyncNotificationImpl> impl_;
  OrtSyncStream& producer_;
  uint64_t sync_id_ = 0;
};

class PluginStream final : public OrtSyncStream {
 public:
  PluginStream(Made<OrtSyncStreamImpl> impl, const MemoryInfo& device, std::shared_ptr<void> owner,
               std::string_view provider)
      : device_(device), owner_(std::move(owner)), provider_(provider), impl_(std::move(impl)) {}
  ~PluginStream() override { LeaveAllocators(); }

  const MemoryInfo& device() const override { return device_; }
  OrtSyncStreamImpl* impl() const override { return impl_.get(); }
  void* handle() const override { return impl_->GetHandle(impl_.get()); }

  Result<std::unique_ptr<Notification>> CreateNotification() override {
    TENON_ASSIGN_OR_RETURN(auto made, MakeOwned<OrtSyncNotificationImpl>([&](auto** notification) {
                             return impl_->CreateNotification(impl_.get(), notification);
                           }));
    if (made == nullptr) return Fail("a stream of {} made no notification", provider_);
    TENON_RETURN_IF_ERROR(
        CheckSlots(provider_, "notification",
                   {TENON_SLOT(made, Release), TENON_SLOT(made, Activate),
                    TENON_SLOT(made, WaitOnDevice), TENON_SLOT(made, WaitOnHost)}));
    return std::make_unique<PluginNotification>(std::move(made), *this);
  }

  Status Flush() override {
    return Call([&] { return impl_->Flush(impl_.get()); });
  }

  Status OnRunEnd() override {
    return Call([&] { return impl_->OnSessionRunEnd(impl_.get()); });
  }

 private:
  const MemoryInfo& device_;
  const std::shared_ptr<void> owner_;
  const std::string provider_;
  const Made<OrtSyncStreamImpl> impl_;
};

}  // namespace

Result<std::unique_ptr<OrtSyncStream>> AdoptStream(Made<OrtSyncStreamImpl> impl,
                                                   const MemoryInfo& device,
                                                   std::shared_ptr<void> owner,
                                                   std::string_view provider) {
  if (impl == nullptr) return Fail("{} made no stream", provider);
  TENON_RETURN_IF_ERROR(CheckSlots(
      provider, "stream",
      {TENON_SLOT(impl, Release), TENON_SLOT(impl, GetHandle), TENON_SLOT(impl, CreateNotification),
       TENON_SLOT(impl, Flush), TENON_SLOT(impl, OnSessionRunEnd)}));
  return std::make_unique<PluginStream>(std::move(impl), device, std::move(owner), provider);
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
