#include "progress.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "text.h"

namespace tenon::cli {

Progress::Progress(std::string what) : what_(std::move(what)) {
  if (isatty(STDERR_FILENO)) thread_ = std::thread([this] { Show(); });
}

Progress::~Progress() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Progress::Say(std::string details) {
  const std::lock_guard lock(mutex_);
  details_ = std::move(details);
}

void Progress::Show() {
  using std::chrono::milliseconds;
  constexpr milliseconds kFirst(1000);
  constexpr milliseconds kStep(200);
  const auto start = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, kFirst, [&] { return done_; })) return;
  do {
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    const double fraction = fraction_.load(std::memory_order_relaxed);
    const std::string share = fraction < 0 ? "" : Format(" {:.0f} %", fraction * 100);
    const std::string details = details_.empty() ? "" : " " + details_ + ",";
    const std::string line =
        Format("\r\x1b[K{}:{}{} {:.0f} s", what_, share, details, elapsed.count());
    std::fputs(line.c_str(), stderr);
    std::fflush(stderr);
  } while (!changed_.wait_for(lock, kStep, [&] { return done_; }));
  std::fputs("\r\x1b[K", stderr);
}

}  // namespace tenon::cli
