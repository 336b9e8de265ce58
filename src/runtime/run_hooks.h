// Tells the providers of a session of one run's start and end.
#pragma once

#include <span>

#include "runtime/provider.h"

namespace tenon {

// Every provider whose start succeeded hears of the end, exactly once and in order, whatever
// happened in between. Exceptions of providers become failures.
class RunHooks {
 public:
  RunHooks(std::span<ExecutionProvider* const> providers, const RunOptions& run)
      : providers_(providers), run_(run) {}

  // The first failure; the providers after it hear nothing of the run.
  Status Start();
  // The first failure; all hear of the end.
  Status End(bool synchronize);

 private:
  const std::span<ExecutionProvider* const> providers_;
  const RunOptions& run_;
  size_t started_ = 0;
};

}  // namespace tenon
