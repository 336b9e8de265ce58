#include "runtime/stream_set.h"

namespace tenon {

Status WaitFor(Stream& producer, Stream* consumer) {
  TENON_ASSIGN_OR_RETURN(const std::unique_ptr<Notification> mark, producer.CreateNotification());
  TENON_RETURN_IF_ERROR(mark->Activate());
  return consumer ? mark->WaitOnDevice(*consumer) : mark->WaitOnHost();
}

Result<Stream*> StreamSet::Of(int32_t provider) {
  const auto index = static_cast<size_t>(provider);
  if (streams_.empty()) streams_.resize(providers_.size());
  if (streams_[index] == nullptr) {
    TENON_ASSIGN_OR_RETURN(streams_[index], providers_[index]->CreateStream());
  }
  return streams_[index].get();
}

Status StreamSet::EndRun(bool synchronize) {
  Status first;
  const auto keep = [&](Status status) {
    if (first.ok()) first = std::move(status);
  };
  for (const auto& stream : streams_) {
    if (stream == nullptr) continue;
    if (synchronize) keep(stream->Flush());
    keep(stream->OnRunEnd());
  }
  return first;
}

}  // namespace tenon
