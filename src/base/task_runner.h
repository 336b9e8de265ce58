// Runs tasks beside their caller.
#pragma once

#include <functional>
#include <memory>

namespace tenon {

// Runs tasks on threads of its own, which start when the first tasks come: at most `threads` of
// them, asleep while there is nothing to do. Where there are no threads, Post runs the task.
// Thread-safe. After fork() the child has threads of its own, and none of the parent's tasks.
class TaskRunner {
 public:
  // 0: UsableCpuCount().
  explicit TaskRunner(int threads = 0);
  // Returns when every task has run. A task must not call it, but see AfterTasks.
  ~TaskRunner();
  TaskRunner(const TaskRunner&) = delete;
  TaskRunner& operator=(const TaskRunner&) = delete;

  // For a task: when it has returned and no other waits, `last` runs on one of the threads, and may
  // destroy this. Further tasks must not be posted. False, and nothing else, if the caller is no
  // task of this.
  bool AfterTasks(std::function<void()> last);

  // Tasks start in the order of their posting. `task` must not throw.
  void Post(std::function<void()> task);

 private:
  class Crew;
  std::unique_ptr<Crew> crew_;
};

}  // namespace tenon
