// Watchdog without threads, as in WebAssembly.
#include "base/watchdog.h"

namespace tenon {

class Watchdog::Watch {};

Watchdog::Watchdog(std::chrono::milliseconds, std::function<void()>) {}

Watchdog::~Watchdog() = default;

}  // namespace tenon
