#include "base/task_runner.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/cpu_info.h"

namespace tenon {

class TaskRunner::Crew {
 public:
  explicit Crew(int threads) : most_threads_(threads) {}
  ~Crew() {
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
      // The system has no thread to give: the caller does the work.
      task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      return;
    }
    lock.unlock();
    changed_.notify_one();
  }

 private:
  void StartThread() try {
    threads_.emplace_back([this] { Work(); });
  } catch (const std::system_error&) {
    return;  // those that there are do the work
  }

  void Work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      ++idle_;
      changed_.wait(lock, [this] { return ending_ || !tasks_.empty(); });
      --idle_;
      if (tasks_.empty()) return;
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      lock.lock();
    }
  }

  std::mutex mutex_;
  int most_threads_;  // 0: asked for at the first task
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::vector<std::thread> threads_;
  size_t idle_ = 0;
  bool ending_ = false;
};

TaskRunner::TaskRunner(int threads) : crew_(std::make_unique<Crew>(threads)) {}

TaskRunner::~TaskRunner() = default;

void TaskRunner::Post(std::function<void()> task) { crew_->Post(std::move(task)); }

}  // namespace tenon
