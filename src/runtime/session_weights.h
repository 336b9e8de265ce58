// The weights that a session's kernels make from constants: those that make the same form of the
// same constant do so once.
#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/mutex.h"
#include "tensor/tensor.h"

namespace tenon {

// Weights that are made part by part. `mutex` guards all but `ready`.
struct WeightsInMaking {
  explicit WeightsInMaking(Tensor from) : constant(std::move(from)) {}

  Mutex mutex;
  std::atomic<const float*> ready = nullptr;  // the weights, once all are made
  Tensor constant;                            // until then
  Tensor memory;                              // where they are made, once it is allocated
  size_t made_parts = 0;                      // in `memory`
  std::shared_ptr<const Tensor> weights;
};

// Thread-safe.
class SessionWeights {
 public:
  // `form` describes all that decides about the weights besides the elements of `constant`.
  std::shared_ptr<WeightsInMaking> Of(const Tensor& constant, const std::string& form) {
    const MutexLock lock(mutex_);
    std::weak_ptr<WeightsInMaking>& entry = entries_[{constant.raw(), form}];
    std::shared_ptr<WeightsInMaking> weights = entry.lock();
    if (!weights || !Reads(*weights)) {
      weights = std::make_shared<WeightsInMaking>(constant);
      entry = weights;
    }
    return weights;
  }

 private:
  // Whether the constant is still there; otherwise another one may have its address.
  static bool Reads(WeightsInMaking& weights) {
    const MutexLock lock(weights.mutex);
    return weights.constant.defined();
  }

  Mutex mutex_;
  std::map<std::pair<const void*, std::string>, std::weak_ptr<WeightsInMaking>> entries_;
};

}  // namespace tenon
