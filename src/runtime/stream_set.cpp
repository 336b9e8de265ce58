#include "runtime/stream_set.h"

#include <algorithm>
#include <utility>

namespace tenon {

Status WaitFor(Stream& producer, Stream* consumer) {
  TENON_ASSIGN_OR_RETURN(const std::unique_ptr<Notification> mark, producer.CreateNotification());
  TENON_RETURN_IF_ERROR(mark->Activate());
  return consumer ? mark->WaitOnDevice(*consumer) : mark->WaitOnHost();
}

Status StreamSet::Use(Stream& given) {
  const bool is_used = std::any_of(providers_.begin(), providers_.end(), [&](const auto* provider) {
    return provider->HasStreams() && provider->memory().SameDevice(given.device());
  });
  if (!is_used) {
    return InvalidArgument(
        "the run's stream is of the device of '{}', which no provider of the "
        "session uses",
        given.device().name);
  }
  given_ = &given;
  return OkStatus();
}

Result<Stream*> StreamSet::Of(int32_t provider) {
  const auto index = static_cast<size_t>(provider);
  if (given_ != nullptr && providers_[index]->memory().SameDevice(given_->device())) return given_;
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
  const auto end = [&](Stream* stream) {
    if (stream == nullptr) return;
    if (synchronize) keep(stream->Flush());
    keep(stream->OnRunEnd());
  };
  for (const auto& stream : streams_) end(stream.get());
  end(std::exchange(given_, nullptr));
  return first;
}

}  // namespace tenon
