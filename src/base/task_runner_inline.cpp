// TaskRunner where there are no threads, as in WebAssembly: the caller does the work.
#include "base/task_runner.h"

namespace tenon {

class TaskRunner::Crew {};

TaskRunner::TaskRunner(int) {}

TaskRunner::~TaskRunner() = default;

void TaskRunner::Post(std::function<void()> task) { task(); }

}  // namespace tenon
