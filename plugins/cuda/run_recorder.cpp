#include "run_recorder.h"

namespace cuda {

void RunRecorder::Begin(int id) {
  const std::lock_guard lock(mutex_);
  current_.clear();
  current_id_ = runs_.contains(id) ? -1 : id;
}

void RunRecorder::Add(const std::shared_ptr<Executable>& executable, CUstream stream,
                      const std::vector<void*>& inputs, const std::vector<void*>& outputs) {
  const std::lock_guard lock(mutex_);
  if (current_id_ >= 0) current_.push_back({executable, stream, inputs, outputs});
}

void RunRecorder::End(bool is_complete) {
  const std::lock_guard lock(mutex_);
  if (current_id_ >= 0 && is_complete && !current_.empty()) {
    runs_[current_id_] = std::move(current_);
  }
  current_.clear();
  current_id_ = -1;
}

bool RunRecorder::IsRecorded(int id) const {
  const std::lock_guard lock(mutex_);
  return runs_.contains(id);
}

Status RunRecorder::Replay(int id, DeviceTrace& trace) {
  const std::lock_guard lock(mutex_);
  const auto it = runs_.find(id);
  if (it == runs_.end()) return Failure("there is no recorded run {}", id);
  PLUGIN_RETURN_IF_ERROR(device_.MakeCurrent());
  for (const Step& step : it->second) {
    PLUGIN_RETURN_IF_ERROR(step.executable->Run(step.stream, step.inputs, step.outputs, trace));
  }
  for (const Step& step : it->second) {
    PLUGIN_RETURN_IF_ERROR(CU_CHECK(cuStreamSynchronize, step.stream));
  }
  return Status();
}

void RunRecorder::Forget(int id) {
  const std::lock_guard lock(mutex_);
  runs_.erase(id);
}

}  // namespace cuda
