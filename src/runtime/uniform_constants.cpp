#include "runtime/uniform_constants.h"

#include <algorithm>

namespace tenon {
namespace {

// Below this size, making a constant is faster than finding a shared one.
constexpr size_t kLeastShared = 1024;
// How many different values are kept; then the oldest is forgotten.
constexpr size_t kMostHeld = 16;

// A tensor of type `type` over `bytes` bytes at `memory`.
Tensor ViewOf(DataType type, void* memory, size_t bytes) {
  const auto elements = static_cast<int64_t>(bytes * 8 / DataTypeBits(type));
  return Tensor::View(type, Shape({elements}), memory);
}

// Returns null if the system cannot repeat memory.
Result<std::unique_ptr<RepeatedBlock>> MakeBlock(DataType type, size_t period,
                                                 UniformConstants::Fill fill) {
  Status filled = OkStatus();
  auto made = MakeRepeatedBlock(
      period, [&](std::byte* block) { filled = fill(ViewOf(type, block, period)); });
  TENON_RETURN_IF_ERROR(filled);
  return made;
}

}  // namespace

UniformConstants::Held& UniformConstants::Find(const Start& start) {
  const auto found = std::find_if(held_.begin(), held_.end(),
                                  [&](const Held& held) { return held.start == start; });
  if (found != held_.end()) return *found;
  if (held_.size() == kMostHeld) held_.erase(held_.begin());
  return held_.emplace_back(Held{.start = start});
}

Result<Tensor> UniformConstants::Make(DataType type, const Shape& shape,
                                      const std::shared_ptr<Allocator>& allocator, Fill fill) {
  TENON_ASSIGN_OR_RETURN(const int64_t count, shape.CheckedNumElements());
  TENON_ASSIGN_OR_RETURN(const size_t bytes, DataTypeBytes(type, count));
  const auto make_alone = [&]() -> Result<Tensor> {
    TENON_ASSIGN_OR_RETURN(Tensor made, Tensor::Allocate(type, shape, allocator));
    TENON_RETURN_IF_ERROR(fill(made));
    return made;
  };
  if (type == DataType::kString || bytes < kLeastShared) return make_alone();

  alignas(16) Start start;
  TENON_RETURN_IF_ERROR(fill(ViewOf(type, start.data(), start.size())));
  Held& held = Find(start);
  if (bytes >= kLeastRepeated) {
    const size_t period = RepeatedPeriod(bytes);
    if (held.block == nullptr || held.block->period() < period) {
      TENON_ASSIGN_OR_RETURN(held.block, MakeBlock(type, period, fill));
    }
    std::shared_ptr<const void> memory = held.block ? held.block->Map(bytes) : nullptr;
    if (memory != nullptr) {
      const void* const begin = memory.get();
      return Tensor::ReadOnlyView(type, shape, begin, std::const_pointer_cast<void>(memory));
    }
  }
  if (held.bytes < bytes) {
    TENON_ASSIGN_OR_RETURN(Tensor made, make_alone());
    held.memory = {made.owner(), made.raw()};
    held.bytes = bytes;
  }
  return Tensor::ReadOnlyView(type, shape, held.memory.get(), held.memory);
}

}  // namespace tenon
