#include "ops/framework/lazy_weights.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/mapped_file.h"
#include "base/mutex.h"
#include "base/stop_signal.h"
#include "base/text.h"
#include "kernels/dispatch.h"
#include "runtime/packed_weight_files.h"
#include "runtime/packing_pace.h"
#include "runtime/shared_weights.h"
#include "tensor/lasting_memory.h"

namespace tenon {
namespace {

// So many floats of memory that lasts as a session does.
Result<Tensor> AllocatePacked(size_t floats, HugePages pages) {
  return Tensor::Allocate(
      DataType::kFloat, Shape({static_cast<int64_t>(floats)}),
      pages == HugePages::kPreferred ? SharedLastingMemory() : SharedWorkMemory());
}

}  // namespace

void LazyWeights::Keep(Tensor constant, std::string_view form, const WeightPolicy& policy) {
  std::string full_form = Format("{} of {} {} on {}", form, DataTypeName(constant.type()),
                                 constant.shape(), kernels::ActiveForm());
  policy_ = policy;
  making_ = policy.session
                ? policy.session->Of(constant, std::move(full_form))
                : std::make_shared<WeightsInMaking>(std::move(constant), std::move(full_form));
}

Status LazyWeights::Reserve(size_t floats) {
  const MutexLock lock(making_->mutex);
  return Allocate(floats, HugePages::kPreferred);
}

Result<const float*> LazyWeights::Get(size_t floats, Fill fill, HugePages pages) const {
  if (const float* weights = ready()) return weights;
  const MutexLock lock(making_->mutex);
  return MakeAll(floats, fill, pages);
}

Result<LazyWeights::Source> LazyWeights::GetOrRead(size_t floats, size_t parts, FillParts fill,
                                                   HugePages pages) const {
  if (const float* weights = ready()) return Source{weights, {}};
  const MutexLock lock(making_->mutex);
  if (ready() == nullptr && !IsShared()) {
    TENON_ASSIGN_OR_RETURN(const bool is_time, MakeSome(floats, parts, fill, pages));
    if (!is_time) return Source{nullptr, making_->constant};
  }
  const auto fill_rest = [&](const Tensor& constant, float* weights) {
    if (making_->made_parts < parts) fill(constant, weights, making_->made_parts, parts);
  };
  TENON_ASSIGN_OR_RETURN(const float* weights, MakeAll(floats, fill_rest, pages));
  return Source{weights, {}};
}

bool LazyWeights::IsShared() const {
  return policy_.shared != nullptr &&
         policy_.shared->Find(making_->constant, making_->form) != nullptr;
}

Status LazyWeights::Allocate(size_t floats, HugePages pages) const {
  if (making_->memory.defined()) return OkStatus();
  TENON_ASSIGN_OR_RETURN(making_->memory, AllocatePacked(floats, pages));
  return OkStatus();
}

Result<bool> LazyWeights::MakeSome(size_t floats, size_t parts, FillParts fill,
                                   HugePages pages) const {
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
    TENON_RETURN_IF_ERROR(Allocate(floats, pages));
    const size_t end = std::min(parts, making_->made_parts + step);
    fill(making_->constant, making_->memory.data<float>(), making_->made_parts, end);
    making_->made_parts = end;
    policy_.pace->Packed(begin, PackingPace::Clock::now());
  }
  return true;
}

Result<Tensor> LazyWeights::Make(const Tensor& constant, size_t floats, Fill fill,
                                 HugePages pages) const {
  std::optional<PackedWeightFiles::Key> key;
  if (policy_.files != nullptr) key = policy_.files->KeyOf(constant, making_->form, floats);
  if (key) {
    if (std::optional<Tensor> loaded = policy_.files->Load(*key)) return *std::move(loaded);
  }
  TENON_RETURN_IF_ERROR(Allocate(floats, pages));
  Tensor made = making_->memory;
  fill(constant, made.data<float>());
  // The system may join the small pages, now that they are there.
  PreferHugePages(made.raw(), made.bytes(), HugePages::kPreferred);
  if (key) policy_.files->Store(*key, made);
  return made;
}

Result<const float*> LazyWeights::MakeAll(size_t floats, Fill fill, HugePages pages) const {
  if (const float* weights = ready()) return weights;
  const StopScope whole(nullptr);  // later runs use the weights
  const auto make = [&](const Tensor& constant) { return Make(constant, floats, fill, pages); };
  Tensor& constant = making_->constant;
  if (policy_.shared != nullptr) {
    TENON_ASSIGN_OR_RETURN(making_->weights, policy_.shared->Get(constant, making_->form, make));
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

}  // namespace tenon
