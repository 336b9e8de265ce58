// Runs tasks concurrently with their caller.
#pragma once

#include <functional>
#include <memory>

namespace tenon {

// Runs tasks on its own threads, which start with the first tasks: at most `threads` of them,
// asleep while there is nothing to do. If there are no threads, Post runs the task. Thread-safe.
// After fork() the child process has its own threads, and none of the parent's tasks.
class TaskRunner {
 public:
  // 0: UsableCpuCount().
  explicit TaskRunner(int threads = 0);
  // Returns when every task has run. A task must not call it, but see AfterTasks.
  ~TaskRunner();
  TaskRunner(const TaskRunner&) = delete;
  TaskRunner& operator=(const TaskRunner&) = delete;

  // For a task: when it has returned and no other waits, `last` runs on one of the threads, and may
  // destroy this. No further tasks may be posted. Returns false, and does nothing else, if the
  // caller is not a task of this.
  bool AfterTasks(std::function<void()> last);

  // Tasks start in the order of their posting. `task` must not throw.
  void Post(std::function<void()> task);

 private:
  class Crew;
  std::unique_ptr<Crew> crew_;
};

}  // namespace tenon
