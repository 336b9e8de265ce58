#include "runtime/shared_weights.h"

#include <algorithm>
#include <utility>

#include "base/mapped_file.h"
#include "base/text.h"

namespace tenon {

bool SharedWeights::Covers(const Tensor& constant) const {
  if (constant.owner() == nullptr) return memory_ == Memory::kFilesAndCallers;
  return MappedFile::IsShared(constant.owner());
}

std::optional<SharedWeights::Identity> SharedWeights::Identify(const Tensor& constant,
                                                               const std::string& form) {
  if (const std::shared_ptr<const Form> earlier = FormOf(constant)) {
    // The constant is itself a form. Its key is used instead of its address: the form may be freed
    // before what is made from it, while its own constant stays.
    Identity identity = {earlier->key, earlier->constant};
    std::get<std::string>(identity.key) += Format("; {}", form);
    return identity;
  }
  if (!Covers(constant)) return std::nullopt;
  return Identity{{constant.raw(), constant.bytes(), form}, constant};
}

Result<std::shared_ptr<const Tensor>> SharedWeights::Get(
    const Tensor& constant, const std::string& form,
    FunctionRef<Result<Tensor>(const Tensor&)> make) {
  std::optional<Identity> identity = Identify(constant, form);
  if (!identity) {
    TENON_ASSIGN_OR_RETURN(Tensor made, make(constant));
    return std::make_shared<const Tensor>(std::move(made));
  }
  std::shared_ptr<const Form> shared = Find(identity->key);
  if (shared == nullptr) {
    TENON_ASSIGN_OR_RETURN(Tensor made, make(constant));
    shared = Keep(std::make_shared<const Form>(
        Form{std::move(made), std::move(identity->origin), std::move(identity->key)}));
  }
  return std::shared_ptr<const Tensor>(shared, &shared->tensor);
}

std::shared_ptr<const Tensor> SharedWeights::Find(const Tensor& constant, const std::string& form) {
  const std::optional<Identity> identity = Identify(constant, form);
  const std::shared_ptr<const Form> shared = identity ? Find(identity->key) : nullptr;
  return shared == nullptr ? nullptr : std::shared_ptr<const Tensor>(shared, &shared->tensor);
}

std::shared_ptr<const SharedWeights::Form> SharedWeights::Find(const Key& key) {
  const MutexLock lock(mutex_);
  const auto known = forms_.find(key);
  return known == forms_.end() ? nullptr : known->second.lock();
}

std::shared_ptr<const SharedWeights::Form> SharedWeights::FormOf(const Tensor& tensor) {
  const MutexLock lock(mutex_);
  const auto known = by_address_.find(tensor.raw());
  if (known == by_address_.end()) return nullptr;
  std::shared_ptr<const Form> form = known->second.lock();
  const bool is_same =
      form != nullptr && !form.owner_before(tensor.owner()) && !tensor.owner().owner_before(form);
  return is_same ? form : nullptr;
}

std::shared_ptr<const SharedWeights::Form> SharedWeights::Keep(std::shared_ptr<const Form> made) {
  const MutexLock lock(mutex_);
  std::weak_ptr<const Form>& known = forms_[made->key];
  if (std::shared_ptr<const Form> other = known.lock()) return other;
  known = made;
  by_address_[made->tensor.raw()] = made;
  if (forms_.size() >= next_sweep_) {
    const auto is_gone = [](const auto& entry) { return entry.second.expired(); };
    std::erase_if(forms_, is_gone);
    std::erase_if(by_address_, is_gone);
    next_sweep_ = std::max<size_t>(64, 2 * forms_.size());
  }
  return made;
}

}  // namespace tenon
