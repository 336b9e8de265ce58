// Copying tensors between memories.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "runtime/stream.h"
#include "tensor/tensor.h"

namespace tenon {

// Both tensors have the same type and size in bytes.
struct TensorCopy {
  const Tensor* from = nullptr;
  Tensor* into = nullptr;
};

// Copies between some pair of memories. Thread-safe.
class DataTransfer {
 public:
  virtual ~DataTransfer() = default;
  virtual bool CanCopy(const MemoryInfo& from, const MemoryInfo& into) const = 0;
  // Copies all. Every source lies in one memory, every destination in one. With a stream the copies
  // may be done later, in the stream's order; without one they are done on return.
  virtual Status Copy(std::span<const TensorCopy> copies, Stream* stream) = 0;
};

// The transfers of an environment or a session. Thread-safe.
class DataTransfers {
 public:
  // `next` gets the copies that no transfer added here can do. It outlives this object; may be
  // null.
  explicit DataTransfers(const DataTransfers* next = nullptr) : next_(next) {}

  void Add(std::shared_ptr<DataTransfer> transfer);
  void Remove(const DataTransfer* transfer);

  // Copies all through the first transfer that can. Memory that the host can reach needs no
  // transfer. Errors: kInvalidArgument for a pair of different types or sizes or for mixed
  // memories; kNotImplemented naming both memories; the error of the transfer.
  Status Copy(std::span<const TensorCopy> copies, Stream* stream = nullptr) const;
  // Copies one tensor, in two steps through CPU memory where there is no direct way.
  Status CopyTensor(const Tensor& from, Tensor& into, Stream* stream = nullptr) const;

 private:
  std::shared_ptr<DataTransfer> Find(const MemoryInfo& from, const MemoryInfo& into) const;

  const DataTransfers* const next_;
  mutable Mutex mutex_;
  std::vector<std::shared_ptr<DataTransfer>> transfers_;
};

}  // namespace tenon
