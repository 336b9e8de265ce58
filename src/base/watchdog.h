// Reports that something takes long.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

namespace tenon {

// While it lives, `bark` is called every `interval`, from a separate thread. Without threads it is
// never called.
class Watchdog {
 public:
  Watchdog(std::chrono::milliseconds interval, std::function<void()> bark);
  // Returns when no call of `bark` is in progress, nor will be.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  class Watch;
  std::unique_ptr<Watch> watch_;
};

}  // namespace tenon
