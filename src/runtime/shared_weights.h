// Forms of constants that kernels made for themselves, shared among the sessions that read the same
// constants: the second session on a model needs no memory for its packed weights.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "base/function_ref.h"
#include "base/mutex.h"
#include "base/status.h"
#include "tensor/tensor.h"

namespace tenon {

// Thread-safe. Holds no form itself: one lives as long as the longest of its users.
class SharedWeights {
 public:
  // Whose constants are shared besides those in mapped files, which are the same for all who map
  // the same file.
  enum class Memory {
    kFiles,
    // Of callers, too, who keep it unchanged as long as any session that reads it lives.
    kFilesAndCallers,
  };
  explicit SharedWeights(Memory memory = Memory::kFiles) : memory_(memory) {}

  // What `make` makes of `constant`, or what it made for another session. `form` says all that
  // decides about the result besides the elements of the constant, which may be the result of an
  // earlier call. Callers at the same time may both make it; both get the same one. Errors: those
  // of `make`.
  Result<std::shared_ptr<const Tensor>> Get(const Tensor& constant, const std::string& form,
                                            FunctionRef<Result<Tensor>(const Tensor&)> make);

 private:
  using Key = std::tuple<const void*, size_t, std::string>;  // address, bytes, form
  struct Form {
    Tensor tensor;
    Tensor constant;  // nothing else can come to lie at its address meanwhile
    Key key;
  };

  bool Covers(const Tensor& constant) const;
  std::shared_ptr<const Form> Find(const Key& key);
  // The form whose tensor this is; null if it is none, or of somebody else.
  std::shared_ptr<const Form> FormOf(const Tensor& tensor);
  // The form to use: `made`, or one that was kept before.
  std::shared_ptr<const Form> Keep(std::shared_ptr<const Form> made);

  const Memory memory_;
  Mutex mutex_;
  std::map<Key, std::weak_ptr<const Form>> forms_;
  std::map<const void*, std::weak_ptr<const Form>> by_address_;  // of their tensors
  size_t next_sweep_ = 64;  // forms of nobody are forgotten when there are so many
};

}  // namespace tenon
