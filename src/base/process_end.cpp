#include "base/process_end.h"

#include <atomic>
#include <cstdlib>

namespace tenon {
namespace {

constinit std::atomic<bool> is_ending = false;

}  // namespace

void WatchForProcessEnd() {
  // Functions that are registered last are called first.
  (void)std::atexit([] { is_ending = true; });
}

bool IsProcessEnding() { return is_ending; }

}  // namespace tenon
