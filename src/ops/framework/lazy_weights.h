// Weights in a kernel's own form, made from a constant in the first run: creating a session then
// does not copy the model's weights, and sessions with the same weights share one copy.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/function_ref.h"
#include "base/mapped_file.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/stop_signal.h"
#include "base/text.h"
#include "runtime/shared_weights.h"
#include "tensor/tensor.h"

namespace tenon {

// Thread-safe.
class LazyWeights {
 public:
  // Takes the constant from which the weights will be made. `form` identifies the form of the
  // weights: kernels with equal forms share them through `shared`, unless it is null.
  void Keep(Tensor constant, std::string_view form, std::shared_ptr<SharedWeights> shared) {
    constant_ = std::move(constant);
    form_ = Format("{} of {} {}", form, DataTypeName(constant_.type()), constant_.shape());
    shared_ = std::move(shared);
    is_kept_ = true;
  }
  // Whether Keep was called; unlike the constant, this does not change during other runs.
  bool is_kept() const { return is_kept_; }

  // The weights. The first call makes them by make(constant), while others wait, and releases the
  // constant, with its memory if it lies in a mapped file. Errors: those of make; a later call
  // tries again.
  Result<const float*> Get(FunctionRef<Result<Tensor>(const Tensor& constant)> make) const {
    if (const float* weights = ready_.load(std::memory_order_acquire)) return weights;
    const MutexLock lock(mutex_);
    if (const float* weights = ready_.load(std::memory_order_relaxed)) return weights;
    TENON_ASSIGN_OR_RETURN(weights_, Make(make));
    ready_.store(weights_->data<float>(), std::memory_order_release);
    MappedFile::ReleasePages(
        constant_.owner(),
        {static_cast<const std::byte*>(std::as_const(constant_).raw()), constant_.bytes()});
    constant_ = Tensor();
    return ready_.load(std::memory_order_relaxed);
  }

 private:
  Result<std::shared_ptr<const Tensor>> Make(
      FunctionRef<Result<Tensor>(const Tensor& constant)> make) const {
    const StopScope whole(nullptr);  // later runs use the weights
    if (shared_ != nullptr) return shared_->Get(constant_, form_, make);
    TENON_ASSIGN_OR_RETURN(Tensor made, make(constant_));
    return std::make_shared<const Tensor>(std::move(made));
  }

  bool is_kept_ = false;
  std::string form_;
  std::shared_ptr<SharedWeights> shared_;
  mutable Mutex mutex_;
  mutable std::atomic<const float*> ready_ = nullptr;
  mutable Tensor constant_;
  mutable std::shared_ptr<const Tensor> weights_;
};

}  // namespace tenon
