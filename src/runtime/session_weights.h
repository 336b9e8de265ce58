// The weights that a session's kernels make from constants: those that make the same form of the
// same constant do so once.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "tensor/tensor.h"

namespace tenon {

// Weights that are made part by part. `mutex` guards all but `form` and `ready`.
struct WeightsInMaking {
  WeightsInMaking(Tensor from, std::string made_form)
      : form(std::move(made_form)), constant(std::move(from)) {}

  const std::string form;  // all that decides about them besides the elements of the constant
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
  std::shared_ptr<WeightsInMaking> Of(const Tensor& constant, std::string form) {
    const MutexLock lock(mutex_);
    for (const Entry& entry : entries_) {
      if (entry.address != constant.raw()) continue;
      std::shared_ptr<WeightsInMaking> weights = entry.weights.lock();
      if (weights && weights->form == form && Reads(*weights)) return weights;
    }
    auto weights = std::make_shared<WeightsInMaking>(constant, std::move(form));
    entries_.push_back({constant.raw(), weights});
    return weights;
  }

 private:
  struct Entry {
    const void* address;  // of the constant
    std::weak_ptr<WeightsInMaking> weights;
  };

  // Whether the constant is still there; otherwise another one may have its address.
  static bool Reads(WeightsInMaking& weights) {
    const MutexLock lock(weights.mutex);
    return weights.constant.defined();
  }

  Mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace tenon
