// Weights in a kernel's own form, made from a constant in one of the first runs: creating a session
// then does not copy the model's weights, and sessions with the same weights share one copy.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "base/huge_pages.h"
#include "base/status.h"
#include "runtime/session_weights.h"
#include "runtime/weight_policy.h"
#include "tensor/tensor.h"

namespace tenon {

// Thread-safe.
class LazyWeights {
 public:
  // Writes the weights.
  using Fill = FunctionRef<void(const Tensor& constant, float* weights)>;

  // Takes the constant from which the weights will be made. `form` identifies the form of the
  // weights, and the parts in which they are made: kernels with equal forms share them.
  void Keep(Tensor constant, std::string_view form, const WeightPolicy& policy);
  // Whether Keep was called; unlike the constant, this does not change during other runs.
  bool is_kept() const { return making_ != nullptr; }
  // Takes the memory of the weights, so many floats, so that no later call fails.
  Status Reserve(size_t floats);

  // The weights if they were made, else null.
  const float* ready() const {
    return making_ ? making_->ready.load(std::memory_order_acquire) : nullptr;
  }

  // The weights, so many floats. The first call makes them by `fill`, while others wait, and
  // releases the constant, with its memory if it lies in a mapped file. Weights that a run reads
  // once are read faster from huge pages; those that it reads many times need not wait for them.
  // Error: no memory; a later call tries again.
  Result<const float*> Get(size_t floats, Fill fill, HugePages pages = HugePages::kPreferred) const;

  // For kernels that can also read the constant. Either the weights, or null and the constant, as
  // long as the policy leaves the weights unmade, or some of them.
  struct Source {
    const float* weights;
    Tensor constant;
  };
  // Writes the parts [first, last) of the weights.
  using FillParts =
      FunctionRef<void(const Tensor& constant, float* weights, size_t first, size_t last)>;
  Result<Source> GetOrRead(size_t floats, size_t parts, FillParts fill,
                           HugePages pages = HugePages::kPreferred) const;

 private:
  // These need the mutex of making_.
  // Whether another session has made the weights.
  bool IsShared() const;
  Status Allocate(size_t floats, HugePages pages) const;
  // Whether it is time to make all that is left. Makes as many parts as the policy grants now.
  Result<bool> MakeSome(size_t floats, size_t parts, FillParts fill, HugePages pages) const;
  Result<Tensor> Make(const Tensor& constant, size_t floats, Fill fill, HugePages pages) const;
  Result<const float*> MakeAll(size_t floats, Fill fill, HugePages pages) const;

  WeightPolicy policy_;
  std::shared_ptr<WeightsInMaking> making_;  // null until Keep
  mutable size_t reads_ = 0;                 // of the constant by this kernel's runs; by its mutex
};

}  // namespace tenon
