#include "runtime/even_constants.h"

#include <algorithm>

#include "base/repeated_memory.h"

namespace tenon {
namespace {

// Smaller constants are made faster than they are found.
constexpr size_t kLeastShared = 1024;
// Of different values; beyond them the oldest is forgotten.
constexpr size_t kMostHeld = 16;

using Fill = FunctionRef<Status(Tensor tensor)>;

Result<Tensor> MakeAlone(DataType type, const Shape& shape,
                         const std::shared_ptr<Allocator>& allocator, Fill fill) {
  TENON_ASSIGN_OR_RETURN(Tensor made, Tensor::Allocate(type, shape, allocator));
  TENON_RETURN_IF_ERROR(fill(made));
  return made;
}

// Elements of `type` in `bytes` bytes at `memory`.
Tensor ViewOf(DataType type, void* memory, size_t bytes) {
  const auto elements = static_cast<int64_t>(bytes * 8 / DataTypeBits(type));
  return Tensor::View(type, Shape({elements}), memory);
}

// One filled period over and over; null where the system cannot repeat memory.
Result<std::shared_ptr<const void>> Repeated(DataType type, size_t bytes, Fill fill) {
  Status filled = OkStatus();
  std::shared_ptr<const void> memory = RepeatMemory(
      bytes, [&](std::byte* block, size_t period) { filled = fill(ViewOf(type, block, period)); });
  TENON_RETURN_IF_ERROR(filled);
  return memory;
}

}  // namespace

Result<Tensor> EvenConstants::Make(DataType type, const Shape& shape,
                                   const std::shared_ptr<Allocator>& allocator, Fill fill) {
  TENON_ASSIGN_OR_RETURN(const int64_t count, shape.CheckedNumElements());
  TENON_ASSIGN_OR_RETURN(const size_t bytes, DataTypeBytes(type, count));
  if (type == DataType::kString || bytes < kLeastShared) {
    return MakeAlone(type, shape, allocator, fill);
  }
  alignas(16) Pattern pattern;
  TENON_RETURN_IF_ERROR(fill(ViewOf(type, pattern.data(), pattern.size())));
  auto held = std::find_if(held_.begin(), held_.end(),
                           [&](const Held& each) { return each.pattern == pattern; });
  if (held == held_.end() || held->bytes < bytes) {
    std::shared_ptr<const void> memory;
    if (bytes >= kLeastRepeated) {
      TENON_ASSIGN_OR_RETURN(memory, Repeated(type, bytes, fill));
    }
    if (memory == nullptr) {
      TENON_ASSIGN_OR_RETURN(const Tensor made, MakeAlone(type, shape, allocator, fill));
      memory = {made.owner(), made.raw()};
    }
    if (held != held_.end()) held_.erase(held);
    if (held_.size() == kMostHeld) held_.erase(held_.begin());
    held = held_.insert(held_.end(), {pattern, bytes, std::move(memory)});
  }
  return Tensor::ReadOnlyView(type, shape, held->memory.get(),
                              std::const_pointer_cast<void>(held->memory));
}

}  // namespace tenon
