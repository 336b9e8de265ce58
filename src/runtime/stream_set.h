// The streams of one run.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "runtime/provider.h"
#include "runtime/stream.h"

namespace tenon {

// One stream per provider that has streams, made when it is first needed and kept until Clear.
// Used by one thread at a time.
class StreamSet {
 public:
  explicit StreamSet(std::span<ExecutionProvider* const> providers) : providers_(providers) {}
  ~StreamSet() { Clear(); }
  StreamSet(const StreamSet&) = delete;
  StreamSet& operator=(const StreamSet&) = delete;

  // For the coming run, `given` takes the place of the streams of its device. It outlives the run.
  // Error: kInvalidArgument if no provider has streams there.
  Status Use(Stream& given);
  // The stream of providers[provider]. Error: what the provider reports.
  Result<Stream*> Of(int32_t provider);
  // What gives blocks of `memory` to the work of `stream`, one of these or null: `memory` itself
  // unless it knows of streams. Valid as long as `memory`; blocks may outlive the run.
  std::shared_ptr<Allocator> MemoryFor(const std::shared_ptr<Allocator>& memory, Stream* stream);
  // The run is over, and the given stream is forgotten: each stream is flushed if `synchronize` and
  // then told. The first error; all streams are told.
  Status EndRun(bool synchronize);
  void Clear();

 private:
  // An allocator as one stream uses it.
  struct StreamMemory {
    const Allocator* memory;
    const Stream* stream;
    std::shared_ptr<Allocator> on_stream;
  };
  // Blocks that `stream` worked on are anybody's; all streams if it is null.
  void ReleaseMemoryOf(const Stream* stream);

  std::span<ExecutionProvider* const> providers_;
  std::vector<std::unique_ptr<Stream>> streams_;  // by provider; null: not made
  Stream* given_ = nullptr;
  std::vector<StreamMemory> memories_;
};

}  // namespace tenon
