#include "base/task_runner.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/cpu_info.h"

namespace tenon {
namespace {

// The threads of one process.
class Threads {
 public:
  explicit Threads(int most) : most_threads_(most) {}
  ~Threads() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void Post(std::function<void()> task) {
    std::unique_lock lock(mutex_);
    if (most_threads_ == 0) most_threads_ = UsableCpuCount();
    tasks_.push_back(std::move(task));
    const bool may_grow = threads_.size() < static_cast<size_t>(most_threads_);
    if (tasks_.size() > idle_ && may_grow) StartThread();
    if (threads_.empty()) {
      // The system cannot start a thread: the caller does the work.
      RunNext(lock);
      if (const std::function<void()> last = TakeLast()) {
        lock.unlock();
        last();
      }
      return;
    }
    // Still with the lock: the task may have destroyed this object as soon as it is open.
    changed_.notify_one();
  }

  // False in a child process of the one that made these.
  bool BelongsToThisProcess() const { return process_ == getpid(); }

  bool AfterTasks(std::function<void()> last) {
    if (running != this) return false;
    const std::lock_guard lock(mutex_);
    last_ = std::move(last);
    return true;
  }

 private:
  void StartThread() try {
    threads_.emplace_back([this] { Work(); });
  } catch (const std::system_error&) {
    return;  // the existing ones do the work
  }

  void Work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      changed_.wait(lock, [this] { return ending_ || !tasks_.empty(); });
      --idle_;
      if (tasks_.empty()) return;
      RunNext(lock);
      if (const std::function<void()> last = TakeLast()) {
        // It may wait for all threads but this one, and destroy this object.
        LeaveThreads();
        lock.unlock();
        last();
        return;
      }
    }
  }

  // Unlocks while the task runs.
  void RunNext(std::unique_lock<std::mutex>& lock) {
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    const Threads* const outer = std::exchange(running, this);
    task();
    running = outer;
    lock.lock();
  }
  // Null while more threads are needed.
  std::function<void()> TakeLast() {
    return tasks_.empty() ? std::exchange(last_, nullptr) : nullptr;
  }
  void LeaveThreads() {
    const auto self = std::find_if(threads_.begin(), threads_.end(), [](const std::thread& one) {
      return one.get_id() == std::this_thread::get_id();
    });
    self->detach();
    threads_.erase(self);
  }

  static thread_local constinit const Threads* running;  // whose task the thread is at

  const pid_t process_ = getpid();
  std::mutex mutex_;
  int most_threads_;  // 0: determined at the first task
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::vector<std::thread> threads_;
  size_t idle_ = 0;
  bool ending_ = false;
  std::function<void()> last_;
};

thread_local constinit const Threads* Threads::running = nullptr;

}  // namespace

class TaskRunner::Crew {
 public:
  explicit Crew(int most_threads)
      : most_threads_(most_threads), threads_(new Threads(most_threads)) {}
  ~Crew() {
    Threads* const threads = threads_.load(std::memory_order_acquire);
    if (threads->BelongsToThisProcess()) delete threads;
  }

  Threads& OfThisProcess() {
    Threads* threads = threads_.load(std::memory_order_acquire);
    if (threads->BelongsToThisProcess()) return *threads;
    // Those of a parent process are never freed: the state of their threads and locks is unknown
    // here.
    auto fresh = std::make_unique<Threads>(most_threads_);
    if (threads_.compare_exchange_strong(threads, fresh.get(), std::memory_order_acq_rel)) {
      threads = fresh.release();
    }
    return *threads;
  }

 private:
  const int most_threads_;
  std::atomic<Threads*> threads_;  // owned; replaced in a forked child
};

TaskRunner::TaskRunner(int threads) : crew_(std::make_unique<Crew>(threads)) {}

TaskRunner::~TaskRunner() = default;

bool TaskRunner::AfterTasks(std::function<void()> last) {
  return crew_->OfThisProcess().AfterTasks(std::move(last));
}

void TaskRunner::Post(std::function<void()> task) { crew_->OfThisProcess().Post(std::move(task)); }

}  // namespace tenon
