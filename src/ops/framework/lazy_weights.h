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
  // weights: kernels with equal forms share them.
  void Keep(Tensor constant, std::string_view form, const WeightPolicy& policy) {
    constant_ = std::move(constant);
    form_ = Format("{} of {} {} on {}", form, DataTypeName(constant_.type()), constant_.shape(),
                   kernels::ActiveForm());
    policy_ = policy;
    is_kept_ = true;
  }
  // Whether Keep was called; unlike the constant, this does not change during other runs.
  bool is_kept() const { return is_kept_; }
  // Takes the memory of the weights, so many floats, so that no later call fails.
  Status Reserve(size_t floats) {
    TENON_ASSIGN_OR_RETURN(reserved_, AllocatePacked(floats, HugePages::kPreferred));
    return OkStatus();
  }

  // The weights if they were made, else null.
  const float* ready() const { return ready_.load(std::memory_order_acquire); }

  // The weights, so many floats. The first call makes them by `fill`, while others wait, and
  // releases the constant, with its memory if it lies in a mapped file. Weights that a run reads
  // once are read faster from huge pages; those that it reads many times need not wait for them.
  // Error: no memory; a later call tries again.
  Result<const float*> Get(size_t floats, Fill fill,
                           HugePages pages = HugePages::kPreferred) const {
    if (const float* weights = ready()) return weights;
    const MutexLock lock(mutex_);
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
    const MutexLock lock(mutex_);
    if (ready() == nullptr && !IsShared()) {
      TENON_ASSIGN_OR_RETURN(const bool is_time, MakeSome(floats, parts, fill, pages));
      if (!is_time) return Source{nullptr, constant_};
    }
    const auto fill_rest = [&](const Tensor& constant, float* weights) {
      if (made_parts_ < parts) fill(constant, weights, made_parts_, parts);
    };
    TENON_ASSIGN_OR_RETURN(const float* weights, MakeLocked(floats, fill_rest, pages));
    return Source{weights, {}};
  }

 private:
  // Whether another session has made the weights.
  bool IsShared() const {
    return policy_.shared != nullptr && policy_.shared->Find(constant_, form_) != nullptr;
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
    while (made_parts_ < parts) {
      const PackingPace::Clock::time_point begin = PackingPace::Clock::now();
      if (!policy_.pace->MayPack(begin)) return false;
      if (!reserved_.defined()) {
        TENON_ASSIGN_OR_RETURN(reserved_, AllocatePacked(floats, pages));
      }
      const size_t end = std::min(parts, made_parts_ + step);
      fill(constant_, reserved_.data<float>(), made_parts_, end);
      made_parts_ = end;
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
    Tensor made = reserved_;
    if (!made.defined()) {
      TENON_ASSIGN_OR_RETURN(made, AllocatePacked(floats, pages));
    }
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
    if (policy_.shared != nullptr) {
      TENON_ASSIGN_OR_RETURN(weights_, policy_.shared->Get(constant_, form_, make));
    } else {
      TENON_ASSIGN_OR_RETURN(Tensor made, make(constant_));
      weights_ = std::make_shared<const Tensor>(std::move(made));
    }
    ready_.store(weights_->data<float>(), std::memory_order_release);
    MappedFile::ReleasePages(
        constant_.owner(),
        {static_cast<const std::byte*>(std::as_const(constant_).raw()), constant_.bytes()});
    constant_ = reserved_ = Tensor();
    return ready();
  }

  bool is_kept_ = false;
  std::string form_;
  WeightPolicy policy_;
  mutable Mutex mutex_;
  mutable std::atomic<const float*> ready_ = nullptr;
  mutable Tensor constant_, reserved_;
  mutable size_t reads_ = 0;       // of the constant, by runs
  mutable size_t made_parts_ = 0;  // in reserved_
  mutable std::shared_ptr<const Tensor> weights_;
};

}  // namespace tenon
