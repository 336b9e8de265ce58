// Weights in a kernel's own form, made from a constant in one of the first runs: creating a session
// then does not copy the model's weights, and sessions with the same weights share one copy.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/function_ref.h"
#include "base/huge_pages.h"
#include "base/mapped_file.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/stop_signal.h"
#include "base/text.h"
#include "kernels/dispatch.h"
#include "runtime/packed_weight_files.h"
#include "runtime/packing_pace.h"
#include "runtime/session_weights.h"
#include "runtime/shared_weights.h"
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
  void Keep(Tensor constant, std::string_view form, const WeightPolicy& policy) {
    form_ = Format("{} of {} {} on {}", form, DataTypeName(constant.type()), constant.shape(),
                   kernels::ActiveForm());
    policy_ = policy;
    making_ = policy.session ? policy.session->Of(constant, form_)
                             : std::make_shared<WeightsInMaking>(std::move(constant));
  }
  // Whether Keep was called; unlike the constant, this does not change during other runs.
  bool is_kept() const { return making_ != nullptr; }
  // Takes the memory of the weights, so many floats, so that no later call fails.
  Status Reserve(size_t floats) {
    const MutexLock lock(making_->mutex);
    return AllocateLocked(floats, HugePages::kPreferred);
  }

  // The weights if they were made, else null.
  const float* ready() const {
    return making_ ? making_->ready.load(std::memory_order_acquire) : nullptr;
  }

  // The weights, so many floats. The first call makes them by `fill`, while others wait, and
  // releases the constant, with its memory if it lies in a mapped file. Weights that a run reads
  // once are read faster from huge pages; those that it reads many times need not wait for them.
  // Error: no memory; a later call tries again.
  Result<const float*> Get(size_t floats, Fill fill,
                           HugePages pages = HugePages::kPreferred) const {
    if (const float* weights = ready()) return weights;
    const MutexLock lock(making_->mutex);
    return MakeLocked(floats, fill, pages);
  }

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
                           HugePages pages = HugePages::kPreferred) const {
    if (const float* weights = ready()) return Source{weights, {}};
    const MutexLock lock(making_->mutex);
    if (ready() == nullptr && !IsShared()) {
      TENON_ASSIGN_OR_RETURN(const bool is_time, MakeSome(floats, parts, fill, pages));
      if (!is_time) return Source{nullptr, making_->constant};
    }
    const auto fill_rest = [&](const Tensor& constant, float* weights) {
      if (making_->made_parts < parts) fill(constant, weights, making_->made_parts, parts);
    };
    TENON_ASSIGN_OR_RETURN(const float* weights, MakeLocked(floats, fill_rest, pages));
    return Source{weights, {}};
  }

 private:
  // Whether another session has made the weights.
  bool IsShared() const {
    return policy_.shared != nullptr && policy_.shared->Find(making_->constant, form_) != nullptr;
  }

  Status AllocateLocked(size_t floats, HugePages pages) const {
    if (making_->memory.defined()) return OkStatus();
    TENON_ASSIGN_OR_RETURN(making_->memory, AllocatePacked(floats, pages));
    return OkStatus();
  }

  // Whether it is time to make all that is left. Makes as many parts as the policy grants now.
  Result<bool> MakeSome(size_t floats, size_t parts, FillParts fill, HugePages pages) const {
    constexpr size_t kFloatsAtOnce = 1 << 20;
    if (reads_ < policy_.runs_before_packing) {
      ++reads_;
      return false;
    }
    if (policy_.pace == nullptr) return true;
    const StopScope whole(nullptr);  // a part is not made again
    const size_t step = std::max<size_t>(1, parts * kFloatsAtOnce / std::max<size_t>(1, floats));
    while (making_->made_parts < parts) {
      const PackingPace::Clock::time_point begin = PackingPace::Clock::now();
      if (!policy_.pace->MayPack(begin)) return false;
      TENON_RETURN_IF_ERROR(AllocateLocked(floats, pages));
      const size_t end = std::min(parts, making_->made_parts + step);
      fill(making_->constant, making_->memory.data<float>(), making_->made_parts, end);
      making_->made_parts = end;
      policy_.pace->Packed(begin, PackingPace::Clock::now());
    }
    return true;
  }

  Result<Tensor> Make(const Tensor& constant, size_t floats, Fill fill, HugePages pages) const {
    std::optional<PackedWeightFiles::Key> key;
    if (policy_.files != nullptr) key = policy_.files->KeyOf(constant, form_, floats);
    if (key) {
      if (std::optional<Tensor> loaded = policy_.files->Load(*key)) return *std::move(loaded);
    }
    TENON_RETURN_IF_ERROR(AllocateLocked(floats, pages));
    Tensor made = making_->memory;
    fill(constant, made.data<float>());
    // The system may join the small pages, now that they are there.
    PreferHugePages(made.raw(), made.bytes(), HugePages::kPreferred);
    if (key) policy_.files->Store(*key, made);
    return made;
  }

  Result<const float*> MakeLocked(size_t floats, Fill fill, HugePages pages) const {
    if (const float* weights = ready()) return weights;
    const StopScope whole(nullptr);  // later runs use the weights
    const auto make = [&](const Tensor& constant) { return Make(constant, floats, fill, pages); };
    Tensor& constant = making_->constant;
    if (policy_.shared != nullptr) {
      TENON_ASSIGN_OR_RETURN(making_->weights, policy_.shared->Get(constant, form_, make));
    } else {
      TENON_ASSIGN_OR_RETURN(Tensor made, make(constant));
      making_->weights = std::make_shared<const Tensor>(std::move(made));
    }
    making_->ready.store(making_->weights->data<float>(), std::memory_order_release);
    MappedFile::ReleasePages(
        constant.owner(),
        {static_cast<const std::byte*>(std::as_const(constant).raw()), constant.bytes()});
    constant = making_->memory = Tensor();
    return ready();
  }

  std::string form_;
  WeightPolicy policy_;
  std::shared_ptr<WeightsInMaking> making_;  // null until Keep
  mutable size_t reads_ = 0;                 // of the constant by this kernel's runs; by its mutex
};

}  // namespace tenon
