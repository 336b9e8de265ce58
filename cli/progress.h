// A line on stderr about work that takes more than a second.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace tenon::cli {

// Shows what is being done, for how long, and how much of it; only if stderr is a terminal. The
// line goes when the object does.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // From the thread that works; `fraction` of the work is done, in [0, 1].
  void Set(double fraction) { fraction_.store(fraction, std::memory_order_relaxed); }

 private:
  void Show();

  const std::string what_;
  std::atomic<double> fraction_ = -1;  // -1: not known
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace tenon::cli
