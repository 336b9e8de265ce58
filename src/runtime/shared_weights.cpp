#include "runtime/shared_weights.h"

#include <algorithm>
#include <utility>

#include "base/mapped_file.h"

namespace tenon {

bool SharedWeights::Covers(const Tensor& constant) const {
  if (constant.owner() == nullptr) return memory_ == Memory::kFilesAndCallers;
  return MappedFile::IsShared(constant.owner());
}

Result<std::shared_ptr<const Tensor>> SharedWeights::Get(
    const Tensor& constant, const std::string& form,
    FunctionRef<Result<Tensor>(const Tensor&)> make) {
  if (!Covers(constant)) {
    TENON_ASSIGN_OR_RETURN(Tensor made, make(constant));
    return std::make_shared<const Tensor>(std::move(made));
  }
  Key key = {constant.raw(), constant.bytes(), form};
  std::shared_ptr<const Form> shared = Find(key);
  if (shared == nullptr) {
    TENON_ASSIGN_OR_RETURN(Tensor made, make(constant));
    shared = Keep(std::move(key), std::make_shared<const Form>(Form{std::move(made), constant}));
  }
  return std::shared_ptr<const Tensor>(shared, &shared->tensor);
}

std::shared_ptr<const SharedWeights::Form> SharedWeights::Find(const Key& key) {
  const MutexLock lock(mutex_);
  const auto known = forms_.find(key);
  return known == forms_.end() ? nullptr : known->second.lock();
}

std::shared_ptr<const SharedWeights::Form> SharedWeights::Keep(Key key,
                                                               std::shared_ptr<const Form> made) {
  const MutexLock lock(mutex_);
  std::weak_ptr<const Form>& known = forms_[std::move(key)];
  if (std::shared_ptr<const Form> other = known.lock()) return other;
  known = made;
  if (forms_.size() >= next_sweep_) {
    std::erase_if(forms_, [](const auto& entry) { return entry.second.expired(); });
    next_sweep_ = std::max<size_t>(64, 2 * forms_.size());
  }
  return made;
}

}  // namespace tenon
