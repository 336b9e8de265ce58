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

  // For the coming run, `given` takes the place of the streams of its device. It outlives the run.
  // Error: kInvalidArgument if no provider has streams there.
  Status Use(Stream& given);
  // The stream of providers[provider]. Error: what the provider reports.
  Result<Stream*> Of(int32_t provider);
  // The run is over, and the given stream is forgotten: each stream is flushed if `synchronize` and
  // then told. The first error; all streams are told.
  Status EndRun(bool synchronize);
  void Clear() { streams_.clear(); }

 private:
  std::span<ExecutionProvider* const> providers_;
  std::vector<std::unique_ptr<Stream>> streams_;  // by provider; null: not made
  Stream* given_ = nullptr;
};

}  // namespace tenon
