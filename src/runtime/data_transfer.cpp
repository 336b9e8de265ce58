#include "runtime/data_transfer.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tenon {
namespace {

Status CopyOnHost(const Tensor& from, Tensor& into) {
  if (from.type() == DataType::kString) {
    std::copy_n(from.data<std::string>(), from.size(), into.data<std::string>());
  } else if (from.bytes() > 0 && from.raw() != into.raw()) {
    std::memcpy(into.raw(), from.raw(), from.bytes());
  }
  return OkStatus();
}

std::string Describe(const MemoryInfo& memory) {
  return Format("{} (device type {}, vendor {}, id {})", memory.name,
                static_cast<int>(memory.device_type), memory.vendor_id, memory.device_id);
}

Status CheckPair(const TensorCopy& copy, const TensorCopy& first) {
  const Tensor& from = *copy.from;
  const Tensor& into = *copy.into;
  if (from.type() != into.type() || from.bytes() != into.bytes()) {
    return InvalidArgument("cannot copy {} {} into {} {}", DataTypeName(from.type()), from.shape(),
                           DataTypeName(into.type()), into.shape());
  }
  if (!from.memory().SameDevice(first.from->memory()) ||
      !into.memory().SameDevice(first.into->memory())) {
    return InvalidArgument("the tensors of one batch of copies lie in different memories");
  }
  return OkStatus();
}

}  // namespace

void DataTransfers::Add(std::shared_ptr<DataTransfer> transfer) {
  const MutexLock lock(mutex_);
  transfers_.push_back(std::move(transfer));
}

void DataTransfers::Remove(const DataTransfer* transfer) {
  const MutexLock lock(mutex_);
  std::erase_if(transfers_, [&](const auto& entry) { return entry.get() == transfer; });
}

std::shared_ptr<DataTransfer> DataTransfers::Find(const MemoryInfo& from,
                                                  const MemoryInfo& into) const {
  {
    const MutexLock lock(mutex_);
    for (const auto& transfer : transfers_) {
      if (transfer->CanCopy(from, into)) return transfer;
    }
  }
  return next_ ? next_->Find(from, into) : nullptr;
}

Status DataTransfers::Copy(std::span<const TensorCopy> copies, Stream* stream) const {
  if (copies.empty()) return OkStatus();
  for (const TensorCopy& copy : copies) TENON_RETURN_IF_ERROR(CheckPair(copy, copies[0]));
  const MemoryInfo& from = copies[0].from->memory();
  const MemoryInfo& into = copies[0].into->memory();
  const bool both_cpu =
      from.device_type == DeviceType::kCpu && into.device_type == from.device_type;
  const auto has_strings = [](const TensorCopy& copy) {
    return copy.from->type() == DataType::kString;
  };
  if (!both_cpu && std::any_of(copies.begin(), copies.end(), has_strings)) {
    return InvalidArgument("strings can be copied between CPU memories only");
  }
  if (!both_cpu) {
    if (const auto transfer = Find(from, into)) return transfer->Copy(copies, stream);
  }
  if (!from.IsHostAccessible() || !into.IsHostAccessible()) {
    return NotImplemented("no data transfer can copy from {} to {}", Describe(from),
                          Describe(into));
  }
  for (const TensorCopy& copy : copies) {
    TENON_RETURN_IF_ERROR(CopyOnHost(*copy.from, *copy.into));
  }
  return OkStatus();
}

Status DataTransfers::CopyTensor(const Tensor& from, Tensor& into, Stream* stream) const {
  const TensorCopy direct{&from, &into};
  const bool is_direct = from.memory().IsHostAccessible() || into.memory().IsHostAccessible() ||
                         Find(from.memory(), into.memory()) != nullptr;
  if (is_direct) return Copy({&direct, 1}, stream);
  if (stream != nullptr) TENON_RETURN_IF_ERROR(stream->Flush());
  TENON_ASSIGN_OR_RETURN(Tensor between, Tensor::Allocate(from.type(), from.shape()));
  const TensorCopy out{&from, &between};
  TENON_RETURN_IF_ERROR(Copy({&out, 1}));
  const TensorCopy in{&between, &into};
  return Copy({&in, 1});
}

}  // namespace tenon
