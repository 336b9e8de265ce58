#include "plugin/stream.h"

#include "capi/handles.h"
#include "capi/slots.h"
#include "plugin/call.h"

namespace tenon::plugin {
namespace {

class PluginNotification final : public Notification {
 public:
  PluginNotification(OrtSyncNotificationImpl* impl, OrtSyncStream& producer)
      : impl_(impl), producer_(producer) {}
  ~PluginNotification() override {
    if (impl_->Release != nullptr) impl_->Release(impl_);
  }

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
  PluginStream(OrtSyncStreamImpl* impl, const MemoryInfo& device, std::shared_ptr<void> owner)
      : impl_(impl), device_(device), owner_(std::move(owner)) {}
  ~PluginStream() override {
    LeaveAllocators();
    if (impl_->Release != nullptr) impl_->Release(impl_);
  }

  const MemoryInfo& device() const override { return device_; }
  OrtSyncStreamImpl* impl() const override { return impl_; }
  void* handle() const override {
    return impl_->GetHandle != nullptr ? impl_->GetHandle(impl_) : nullptr;
  }

  Result<std::unique_ptr<Notification>> CreateNotification() override {
    OrtSyncNotificationImpl* made = nullptr;
    TENON_RETURN_IF_ERROR(Call([&] { return impl_->CreateNotification(impl_, &made); }));
    if (made == nullptr) return Fail("the stream made no notification");
    return std::make_unique<PluginNotification>(made, *this);
  }

  Status Flush() override {
    if (impl_->Flush == nullptr) return OkStatus();
    return Call([&] { return impl_->Flush(impl_); });
  }

  Status OnRunEnd() override {
    if (impl_->OnSessionRunEnd == nullptr) return OkStatus();
    return Call([&] { return impl_->OnSessionRunEnd(impl_); });
  }

 private:
  OrtSyncStreamImpl* const impl_;
  const MemoryInfo& device_;
  const std::shared_ptr<void> owner_;
};

}  // namespace

std::unique_ptr<OrtSyncStream> AdoptStream(OrtSyncStreamImpl* impl, const MemoryInfo& device,
                                           std::shared_ptr<void> owner) {
  return std::make_unique<PluginStream>(impl, device, std::move(owner));
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
