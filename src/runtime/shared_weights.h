// Packed and other forms of constants that kernels made, shared among the sessions that read the
// same constants: the second session on a model needs no memory for packed weights.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "base/function_ref.h"
#include "base/mutex.h"
#include "base/status.h"
#include "tensor/tensor.h"

namespace tenon {

// Holds no form itself: a form lives as long as any of its users. Thread-safe.
class SharedWeights {
 public:
  // Which constants are shared. Those in mapped files always are: they are the same for all that
  // map the file.
  enum class Memory {
    kFiles,
    // Also those in callers' memory, which stays unchanged as long as any session reads it.
    kFilesAndCallers,
  };
  explicit SharedWeights(Memory memory = Memory::kFiles) : memory_(memory) {}

  // Returns `make(constant)`, or the result of an earlier call for another session. `form`
  // describes all that decides about the result besides the elements of `constant`, which may be
  // the result of an earlier call. Simultaneous callers may both make it, and both get the same
  // one. Errors: those of `make`.
  Result<std::shared_ptr<const Tensor>> Get(const Tensor& constant, const std::string& form,
                                            FunctionRef<Result<Tensor>(const Tensor&)> make);
  // What Get would return without a call of make; null if it would make the form.
  std::shared_ptr<const Tensor> Find(const Tensor& constant, const std::string& form);

 private:
  using Key = std::tuple<const void*, size_t, std::string>;  // address, bytes, form
  struct Form {
    Tensor tensor;
    Tensor constant;  // keeps its address from being reused
    Key key;
  };

  // What identifies a form.
  struct Identity {
    Key key;
    Tensor origin;  // whose address is in the key
  };

  bool Covers(const Tensor& constant) const;
  // Absent if the constant's forms are not shared.
  std::optional<Identity> Identify(const Tensor& constant, const std::string& form);
  std::shared_ptr<const Form> Find(const Key& key);
  // The form whose tensor this is; null if it is no form of this object.
  std::shared_ptr<const Form> FormOf(const Tensor& tensor);
  // The form to use: `made`, or one that was kept before.
  std::shared_ptr<const Form> Keep(std::shared_ptr<const Form> made);

  const Memory memory_;
  Mutex mutex_;
  std::map<Key, std::weak_ptr<const Form>> forms_;
  std::map<const void*, std::weak_ptr<const Form>> by_address_;  // of their tensors
  size_t next_sweep_ = 64;  // at so many forms, those without users are removed
};

}  // namespace tenon
