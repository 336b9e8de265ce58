#include "base/stop_signal.h"

#include <utility>

namespace tenon {

const StopSignal*& StopSignal::OfThread() {
  thread_local const StopSignal* current = nullptr;
  return current;
}

const StopSignal* StopSignal::Current() { return OfThread(); }

StopScope::StopScope(const StopSignal* signal)
    : previous_(std::exchange(StopSignal::OfThread(), signal)) {}

StopScope::~StopScope() { StopSignal::OfThread() = previous_; }

}  // namespace tenon
