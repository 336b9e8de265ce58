// A line on stderr during work that takes more than a second.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace tenon::cli {

// Shows the current work, its duration, and its progress, if stderr is a terminal. The line is
// removed with the object.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Called by the working thread; `fraction` of the work is done, in [0, 1].
  void Set(double fraction) { fraction_.store(fraction, std::memory_order_relaxed); }
  // What there is to say of the work so far, such as "loss 0.5".
  void Say(std::string details);

 private:
  void Show();

  const std::string what_;
  std::atomic<double> fraction_ = -1;  // -1: not known
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::string details_;
  std::thread thread_;
};

}  // namespace tenon::cli
