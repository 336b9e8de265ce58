#include "runtime/frame.h"

#include <algorithm>
#include <utility>

#include "base/huge_pages.h"
#include "runtime/region.h"

namespace tenon {
namespace {

Result<Tensor> Bytes(size_t bytes, const std::shared_ptr<Allocator>& memory) {
  return Tensor::Allocate(DataType::kUint8, Shape({static_cast<int64_t>(bytes)}), memory);
}

}  // namespace

Frame::Frame(const Plan& plan)
    : plan_(plan),
      values_(plan.slot_count),
      slabs_(plan.locations.size()),
      slab_places_(plan.locations.size()),
      streams_(plan.providers) {
  for (const Slot slot : plan.slots) {
    Value* value = slot == kNoSlot ? nullptr : &values_[static_cast<size_t>(slot)];
    inputs_.push_back(value);
    outputs_.push_back(value);
  }
  for (const auto& [slot, constant] : plan.constants) value(slot) = constant;
}

void Frame::BeginPart(const Region& region) {
  is_in_parts_ = true;
  for (const Slot slot : region.taken) value(slot) = Value();
}

void Frame::EndPart(const Region& region, bool is_ok) {
  has_failed_ = !is_ok;
  if (!is_ok) return;
  Settle(region);
  position_ = region.end;
}

// Gives back what there was first, or an arena would keep it: each of many growing shapes would
// leave a block that is too small for the next. For the same reason it grows by some more than it
// must.
Status Frame::Enlarge(Tensor& memory, size_t bytes, const std::shared_ptr<Allocator>& place) const {
  const bool grows = memory.bytes() > 0;
  memory = Tensor();
  if (grows && plan_.may_shrink_memory) TENON_RETURN_IF_ERROR(place->Shrink());
  TENON_ASSIGN_OR_RETURN(memory, Bytes(grows ? bytes + bytes / 8 : bytes, place));
  return OkStatus();
}

void Frame::Unbind() {
  if (memory_ == nullptr) return;
  for (const auto& [slot, fixed] : memory_->fixed_values) value(slot) = Value();
  for (size_t i = 0; i < memory_->bindings.size(); ++i) {
    if (memory_->bindings[i].place == MemoryPlan::Place::kSlab) values_[i] = Value();
  }
  memory_ = nullptr;
}

Status Frame::Bind(std::shared_ptr<const MemoryPlan> memory) {
  if (memory_ != memory) Unbind();
  if (memory == nullptr) return OkStatus();
  // Many runs will write the slabs; only the first does not wait for huge pages.
  if (std::exchange(has_new_slab_, false) && plan_.owns_memory) {
    for (Tensor& slab : slabs_) {
      const bool is_host = slab.defined() && slab.memory().SameDevice(CpuMemory());
      if (is_host) PreferHugePages(slab.raw(), slab.bytes(), HugePages::kPreferred);
    }
  }
  for (size_t i = 0; i < slabs_.size(); ++i) {
    if (slabs_[i].bytes() >= memory->slab_bytes[i]) continue;
    const auto& place = i == 0 ? plan_.work_memory : plan_.locations[i].allocator;
    TENON_RETURN_IF_ERROR(Enlarge(slabs_[i], memory->slab_bytes[i], place));
    has_new_slab_ = true;
  }
  if (memory_ == memory && AreSlabsInPlace()) return OkStatus();
  memory_ = std::move(memory);
  for (const auto& [slot, fixed] : memory_->fixed_values) value(slot) = fixed;
  for (size_t i = 0; i < memory_->bindings.size(); ++i) {
    const MemoryPlan::Binding& binding = memory_->bindings[i];
    if (binding.place == MemoryPlan::Place::kSlab) values_[i] = InSlab(i, nullptr);
  }
  for (size_t i = 0; i < slabs_.size(); ++i) slab_places_[i] = slabs_[i].raw();
  return OkStatus();
}

bool Frame::AreSlabsInPlace() const {
  return std::equal(slabs_.begin(), slabs_.end(), slab_places_.begin(),
                    [](const Tensor& slab, const void* place) { return slab.raw() == place; });
}

void Frame::ReturnWorkMemory() {
  std::fill(slabs_.begin(), slabs_.end(), Tensor());
  scratch_ = Tensor();
}

Tensor Frame::InSlab(size_t slot, std::shared_ptr<void> owner) {
  const MemoryPlan::Binding& binding = memory_->bindings[slot];
  Tensor& slab = slabs_[plan_.location_of[slot]];
  return Tensor::View(binding.type, binding.shape, slab.data<std::byte>() + binding.offset,
                      std::move(owner), slab.memory());
}

void Frame::BindMoving() {
  for (const Slot slot : memory_->moving) {
    if (value(memory_->bindings[static_cast<size_t>(slot)].root).has_value()) PointToRoot(slot);
  }
}

void Frame::BindMovingWith(Slot root) {
  for (const Slot slot : memory_->MovingWith(root)) PointToRoot(slot);
}

void Frame::PointToRoot(Slot slot) {
  const MemoryPlan::Binding& binding = memory_->bindings[static_cast<size_t>(slot)];
  Tensor& root = value(binding.root).tensor();
  // A view of a feed shares the feed's owner, so that fetching the view needs no copy. A view of
  // an output does not: the output must stay the only owner of its memory.
  const bool is_fed = binding.place == MemoryPlan::Place::kFeed;
  value(slot) = Tensor::View(binding.type, binding.shape,
                             static_cast<std::byte*>(root.raw()) + binding.offset,
                             is_fed ? root.owner() : nullptr, root.memory());
}

void Frame::DropFeed(Slot root) {
  for (const Slot slot : memory_->MovingWith(root)) value(slot) = Value();
  value(root) = Value();
}

void Frame::Settle(const Region& region) {
  PooledVector<bool> stays(values_.size(), false);
  for (const Slot slot : region.live_out) stays[static_cast<size_t>(slot)] = true;
  for (const auto& [slot, constant] : plan_.constants) stays[static_cast<size_t>(slot)] = true;
  PooledVector<bool> is_slab_held(slabs_.size(), false);
  for (size_t i = 0; memory_ != nullptr && i < values_.size(); ++i) {
    if (stays[i]) Keep(i, is_slab_held);
  }
  for (size_t i = 0; i < values_.size(); ++i) {
    if (!stays[i]) values_[i] = Value();
  }
  for (size_t i = 0; i < slabs_.size(); ++i) {
    if (is_slab_held[i]) slabs_[i] = Tensor();
  }
  memory_ = nullptr;
}

// Makes a value that stays after the region own the memory that it points to.
void Frame::Keep(size_t slot, PooledVector<bool>& is_slab_held) {
  const MemoryPlan::Binding& binding = memory_->bindings[slot];
  if (binding.place == MemoryPlan::Place::kDynamic && values_[slot].is_tensor()) {
    // A view into the slab needs the slab as its owner.
    Tensor& view = values_[slot].tensor();
    const size_t location = plan_.location_of[slot];
    const Tensor& slab = slabs_[location];
    const auto* const begin = static_cast<const std::byte*>(slab.raw());
    const auto* const at = static_cast<const std::byte*>(view.raw());
    if (view.owner() != nullptr || at < begin || at >= begin + slab.bytes()) return;
    view = Tensor::View(view.type(), view.shape(), view.raw(), slab.owner(), view.memory());
    is_slab_held[location] = true;
    return;
  }
  const bool is_view_of_other = binding.root != static_cast<Slot>(slot);
  if (binding.place == MemoryPlan::Place::kSlab) {
    const size_t location = plan_.location_of[slot];
    values_[slot] = InSlab(slot, slabs_[location].owner());
    is_slab_held[location] = true;
  } else if (is_view_of_other && (binding.place == MemoryPlan::Place::kFeed ||
                                  binding.place == MemoryPlan::Place::kOutput)) {
    Tensor& view = values_[slot].tensor();
    const Tensor& root = value(binding.root).tensor();
    view = Tensor::View(view.type(), view.shape(), view.raw(), root.owner(), root.memory());
  }
}

void Frame::Clear() {
  ForgetOutputs();
  if (memory_ == nullptr) {
    for (Value& value : values_) value = Value();
    for (const auto& [slot, constant] : plan_.constants) value(slot) = constant;
    return;
  }
  for (size_t i = 0; i < values_.size(); ++i) {
    const MemoryPlan::Place place = memory_->bindings[i].place;
    const bool stays = place == MemoryPlan::Place::kSlab || place == MemoryPlan::Place::kConstant;
    if (!stays) values_[i] = Value();
  }
  for (const auto& [slot, constant] : plan_.default_inputs) value(slot) = constant;
}

void Frame::Reset() {
  if (is_in_parts_) {
    streams_.Clear();
    last_plan_ = nullptr;  // made for a part; the next run may be a whole one
  }
  keeps_values_ = false;
  position_ = 0;
  is_in_parts_ = has_failed_ = false;
  Clear();
  if (!plan_.owns_memory) ReturnWorkMemory();
}

void* Frame::Scratch(size_t bytes) {
  if (scratch_.defined() && scratch_.bytes() >= bytes) return scratch_.raw();
  // What earlier runs needed, too: growing from kernel to kernel would shrink the arena each time.
  bytes = std::max({bytes, most_scratch_, size_t{1}});  // null means that there is no memory
  if (!Enlarge(scratch_, bytes, plan_.work_memory).ok()) return nullptr;
  most_scratch_ = scratch_.bytes();
  return scratch_.raw();
}

Result<Tensor> Frame::AllocateOutput(Slot slot, DataType type, const Shape& shape,
                                     const std::shared_ptr<Allocator>& memory) {
  for (const auto& [offered, tensor] : offered_) {
    if (offered != slot) continue;
    if (!tensor) return Buffer(slot, type, shape);
    if (tensor->type() == type && tensor->shape() == shape) return *tensor;
  }
  return Tensor::Allocate(type, shape, memory);
}

const Tensor* Frame::OfferedOutput(Slot slot) const {
  for (const auto& [offered, tensor] : offered_) {
    if (offered == slot && tensor) return &*tensor;
  }
  return nullptr;
}

Result<Tensor> Frame::Buffer(Slot slot, DataType type, const Shape& shape) {
  const auto known = std::find_if(buffers_.begin(), buffers_.end(),
                                  [&](const auto& entry) { return entry.first == slot; });
  if (known != buffers_.end()) {
    if (known->second.type() == type && known->second.shape() == shape) return known->second;
    buffers_.erase(known);
  }
  const Location& location = plan_.locations[plan_.location_of[static_cast<size_t>(slot)]];
  TENON_ASSIGN_OR_RETURN(Tensor buffer, Tensor::Allocate(type, shape, location.allocator));
  return buffers_.emplace_back(slot, std::move(buffer)).second;
}

}  // namespace tenon
