#include "base/watchdog.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace tenon {

class Watchdog::Watch {
 public:
  Watch(std::chrono::milliseconds interval, std::function<void()> bark)
      : interval_(interval), bark_(std::move(bark)) {
    try {
      thread_ = std::thread([this] { Wait(); });
    } catch (const std::exception&) {
      return;  // no thread can be started, so nothing is watched
    }
  }
  ~Watch() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    over_.notify_all();
    thread_.join();
  }

 private:
  void Wait() {
    std::unique_lock lock(mutex_);
    while (!over_.wait_for(lock, interval_, [this] { return is_over_; })) bark_();
  }

  const std::chrono::milliseconds interval_;
  const std::function<void()> bark_;
  std::mutex mutex_;
  std::condition_variable over_;
  bool is_over_ = false;
  std::thread thread_;
};

Watchdog::Watchdog(std::chrono::milliseconds interval, std::function<void()> bark)
    : watch_(std::make_unique<Watch>(interval, std::move(bark))) {}

Watchdog::~Watchdog() = default;

}  // namespace tenon
