// Tells the providers of a session that a run starts and ends.
#pragma once

#include <span>

#include "runtime/provider.h"

namespace tenon {

// Every provider whose start hook succeeded gets the end hook, exactly once and in order, whatever
// happened in between. Exceptions of providers become failures.
class RunHooks {
 public:
  RunHooks(std::span<ExecutionProvider* const> providers, const RunOptions& run)
      : providers_(providers), run_(run) {}
  // Calls the end hooks that End did not reach.
  ~RunHooks();
  RunHooks(const RunHooks&) = delete;
  RunHooks& operator=(const RunHooks&) = delete;

  // Returns the first failure; later providers then get neither hook.
  Status Start();
  // Calls the end hooks and returns the first failure.
  Status End(bool synchronize);

 private:
  const std::span<ExecutionProvider* const> providers_;
  const RunOptions& run_;
  size_t started_ = 0;
  size_t ended_ = 0;
};

}  // namespace tenon
