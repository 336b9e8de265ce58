// The streams of one run.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "runtime/provider.h"
#include "runtime/stream.h"

namespace tenon {

// Has one stream per provider that has streams, made when first needed and kept until Clear. Used
// by one thread at a time.
class StreamSet {
 public:
  explicit StreamSet(std::span<ExecutionProvider* const> providers) : providers_(providers) {}
  ~StreamSet() { Clear(); }
  StreamSet(const StreamSet&) = delete;
  StreamSet& operator=(const StreamSet&) = delete;

  // In the coming run, `given` replaces the streams of its device. It outlives the run. Error:
  // kInvalidArgument if no provider has streams on that device.
  Status Use(Stream& given);
  // The stream of providers[provider]. Error: what the provider reports.
  Result<Stream*> Of(int32_t provider);
  // Allocates blocks of `memory` for the work of `stream`, one of these or null. It is `memory`
  // itself unless that distinguishes streams. Valid as long as `memory`; blocks may outlive the
  // run.
  std::shared_ptr<Allocator> MemoryFor(const std::shared_ptr<Allocator>& memory, Stream* stream);
  // Called after the run. Flushes each stream if `synchronize`, tells it that the run ended, and
  // forgets the given stream. Handles all streams and returns the first error.
  Status EndRun(bool synchronize);
  void Clear();

 private:
  // An allocator for one stream.
  struct StreamMemory {
    const Allocator* memory;
    const Stream* stream;
    std::shared_ptr<Allocator> on_stream;
  };
  // Makes the freed blocks of `stream` available to all streams; of all streams if it is null.
  void ReleaseMemoryOf(const Stream* stream);

  std::span<ExecutionProvider* const> providers_;
  std::vector<std::unique_ptr<Stream>> streams_;  // by provider; null: not made
  Stream* given_ = nullptr;
  std::vector<StreamMemory> memories_;
};

}  // namespace tenon
