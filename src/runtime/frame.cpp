#include "runtime/frame.h"

#include <utility>

namespace tenon {
namespace {

Result<Tensor> Bytes(size_t bytes, const std::shared_ptr<Allocator>& memory) {
  return Tensor::Allocate(DataType::kUint8, Shape({static_cast<int64_t>(bytes)}), memory);
}

}  // namespace

Frame::Frame(const Plan& plan) : plan_(plan), values_(plan.slot_count) {
  for (const Slot slot : plan.slots) {
    Value* value = slot == kNoSlot ? nullptr : &values_[static_cast<size_t>(slot)];
    inputs_.push_back(value);
    outputs_.push_back(value);
  }
  for (const auto& [slot, constant] : plan.constants) value(slot) = constant;
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
  if (memory_ == memory) return OkStatus();
  Unbind();
  if (memory == nullptr) return OkStatus();
  if (slab_.bytes() < memory->slab_bytes) {
    slab_ = Tensor();
    TENON_ASSIGN_OR_RETURN(slab_, Bytes(memory->slab_bytes, plan_.memory));
  }
  memory_ = std::move(memory);
  for (const auto& [slot, fixed] : memory_->fixed_values) value(slot) = fixed;
  for (size_t i = 0; i < memory_->bindings.size(); ++i) {
    const MemoryPlan::Binding& binding = memory_->bindings[i];
    if (binding.place != MemoryPlan::Place::kSlab) continue;
    values_[i] =
        Tensor::View(binding.type, binding.shape, slab_.data<std::byte>() + binding.offset);
  }
  return OkStatus();
}

void Frame::BindMoving() {
  for (const Slot slot : memory_->moving) {
    const MemoryPlan::Binding& binding = memory_->bindings[static_cast<size_t>(slot)];
    Tensor& root = value(binding.root).tensor();
    value(slot) = Tensor::View(binding.type, binding.shape, root.raw());
  }
}

void Frame::Clear() {
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

void* Frame::Scratch(size_t bytes) {
  if (scratch_.bytes() < bytes) {
    scratch_ = Tensor();
    Result<Tensor> larger = Bytes(bytes, plan_.memory);
    if (!larger) return nullptr;
    scratch_ = std::move(*larger);
  }
  return scratch_.raw();
}

}  // namespace tenon
