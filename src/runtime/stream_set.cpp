#include "runtime/stream_set.h"

#include <algorithm>
#include <utility>

namespace tenon {
namespace {

// Allocates for one stream.
class OnStream final : public Allocator {
 public:
  OnStream(std::shared_ptr<StreamAllocator> memory, Stream& stream)
      : memory_(std::move(memory)), stream_(stream) {}

  void* Allocate(size_t bytes) override { return memory_->AllocateOn(bytes, stream_); }
  // May be called after the stream is gone.
  void Free(void* block) override { memory_->Free(block); }
  const MemoryInfo& info() const override { return memory_->info(); }
  AllocatorStats Stats() const override { return memory_->Stats(); }
  void ReleaseStream() { memory_->ReleaseStream(stream_); }

 private:
  const std::shared_ptr<StreamAllocator> memory_;
  Stream& stream_;
};

}  // namespace

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
    ReleaseMemoryOf(stream);
  };
  for (const auto& stream : streams_) end(stream.get());
  Stream* const given = std::exchange(given_, nullptr);
  end(given);
  // Until the next run, the caller's stream may be freed and its address reused.
  std::erase_if(memories_,
                [&](const StreamMemory& one) { return given != nullptr && one.stream == given; });
  return first;
}

void StreamSet::Clear() {
  ReleaseMemoryOf(nullptr);
  memories_.clear();
  streams_.clear();
}

std::shared_ptr<Allocator> StreamSet::MemoryFor(const std::shared_ptr<Allocator>& memory,
                                                Stream* stream) {
  if (stream == nullptr) return memory;
  for (const StreamMemory& known : memories_) {
    if (known.memory == memory.get() && known.stream == stream) return known.on_stream;
  }
  auto on_streams = std::dynamic_pointer_cast<StreamAllocator>(memory);
  std::shared_ptr<Allocator> on_stream = memory;
  if (on_streams != nullptr) on_stream = std::make_shared<OnStream>(std::move(on_streams), *stream);
  memories_.push_back({memory.get(), stream, on_stream});
  return on_stream;
}

void StreamSet::ReleaseMemoryOf(const Stream* stream) {
  for (const StreamMemory& one : memories_) {
    if (stream != nullptr && one.stream != stream) continue;
    if (auto* const on_stream = dynamic_cast<OnStream*>(one.on_stream.get())) {
      on_stream->ReleaseStream();
    }
  }
}

}  // namespace tenon
