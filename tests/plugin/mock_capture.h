// The mock's recording and replaying of runs.
#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

namespace tenon::test {

// One product on the device.
struct MockWork {
  const float *from, *factors;
  float* into;
  size_t size;

  void Do() const {
    for (size_t i = 0; i < size; ++i) into[i] = from[i] * factors[i];
  }
};

// Like a device with command graphs: work that is queued while a run is recorded is done when the
// run ends, by a first replay.
class MockRecorder {
 public:
  // A run with that id starts; the first `warm_ups` runs with it are not recorded.
  void Start(int id, int warm_ups) {
    id_ = id;
    is_recording_ = id >= 0 && runs_[id]++ >= warm_ups;
    work_.clear();
  }
  // Whether the work was recorded, so that it is not done now.
  bool Take(const MockWork& work) {
    if (is_recording_) work_.push_back(work);
    return is_recording_;
  }
  // Whether a run was recorded.
  bool End() {
    if (!std::exchange(is_recording_, false)) return false;
    graphs_[id_] = std::move(work_);
    Replay(id_);
    return true;
  }
  bool Has(int id) const { return graphs_.find(id) != graphs_.end(); }
  void Replay(int id) const {
    for (const MockWork& work : graphs_.at(id)) work.Do();
  }
  void Release(int id) {
    graphs_.erase(id);
    runs_.erase(id);
  }

 private:
  int id_ = -1;
  bool is_recording_ = false;
  std::vector<MockWork> work_;
  std::map<int, int> runs_;
  std::map<int, std::vector<MockWork>> graphs_;
};

}  // namespace tenon::test
