#include "plugin/data_transfer.h"

#include <vector>

#include "capi/boundary/handles.h"
#include "capi/value/sync_stream.h"
#include "plugin/call.h"

namespace tenon::plugin {
namespace {

class PluginDataTransfer final : public DataTransfer {
 public:
  PluginDataTransfer(Made<OrtDataTransferImpl> impl, std::shared_ptr<void> owner)
      : owner_(std::move(owner)), impl_(std::move(impl)) {}

  bool CanCopy(const MemoryInfo& from, const MemoryInfo& into) const override {
    bool can = false;
    const Status status = CatchExceptions([&] {
      can = impl_->CanCopy(impl_.get(), capi::Wrap<OrtMemoryDevice>(&from),
                           capi::Wrap<OrtMemoryDevice>(&into));
      return OkStatus();
    });
    return status.ok() && can;
  }

  // One call for all; the wrappers of the tensors are valid during it.
  Status Copy(std::span<const TensorCopy> copies, Stream* stream) override {
    std::vector<Value> values;
    values.reserve(2 * copies.size());
    std::vector<const OrtValue*> from;
    std::vector<OrtValue*> into;
    for (const TensorCopy& copy : copies) {
      from.push_back(capi::Wrap<OrtValue>(&values.emplace_back(*copy.from)));
      into.push_back(capi::Wrap<OrtValue>(&values.emplace_back(*copy.into)));
    }
    auto* const client = dynamic_cast<OrtSyncStream*>(stream);
    std::vector<OrtSyncStream*> streams(client != nullptr ? copies.size() : 0, client);
    return Call([&] {
      return impl_->CopyTensors(impl_.get(), from.data(), into.data(),
                                streams.empty() ? nullptr : streams.data(), copies.size());
    });
  }

 private:
  const std::shared_ptr<void> owner_;
  const Made<OrtDataTransferImpl> impl_;
};

}  // namespace

Result<std::shared_ptr<DataTransfer>> AdoptDataTransfer(Made<OrtDataTransferImpl> impl,
                                                        std::shared_ptr<void> owner,
                                                        std::string_view provider) {
  TENON_RETURN_IF_ERROR(CheckSlots(
      provider, "data transfer",
      {TENON_SLOT(impl, Release), TENON_SLOT(impl, CanCopy), TENON_SLOT(impl, CopyTensors)}));
  return std::make_shared<PluginDataTransfer>(std::move(impl), std::move(owner));
}

}  // namespace tenon::plugin
