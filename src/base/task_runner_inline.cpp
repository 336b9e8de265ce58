// TaskRunner without threads, as in WebAssembly: the caller does the work.
#include <utility>

#include "base/task_runner.h"

namespace tenon {

class TaskRunner::Crew {
 public:
  int depth = 0;  // of tasks that run
  std::function<void()> last;
};

TaskRunner::TaskRunner(int) : crew_(std::make_unique<Crew>()) {}

TaskRunner::~TaskRunner() = default;

void TaskRunner::Post(std::function<void()> task) {
  ++crew_->depth;
  task();
  if (--crew_->depth > 0 || crew_->last == nullptr) return;
  const std::function<void()> last = std::move(crew_->last);
  last();
}

bool TaskRunner::AfterTasks(std::function<void()> last) {
  if (crew_->depth == 0) return false;
  crew_->last = std::move(last);
  return true;
}

}  // namespace tenon
