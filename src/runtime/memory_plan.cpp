#include "runtime/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "base/arithmetic.h"

namespace tenon {
namespace {

using Place = MemoryPlan::Place;

// One piece of memory and the values that share it: a value, its views, and values written over it.
// It may be a part of another piece: an input of a concatenation is made where the output has it.
struct Storage {
  Place place = Place::kSlab;
  Slot root = kNoSlot;
  size_t location = 0;
  size_t bytes = 0;
  int32_t first = 0, last = 0;  // steps
  size_t offset = 0;            // if it is a part, in the whole until PlaceParts
  int32_t whole = -1;           // the storage that this one is a part of; -1: none
};

class MemoryPlanner {
 public:
  MemoryPlanner(const Plan& plan, const Region& region, const RunRecord& record)
      : plan_(plan),
        region_(region),
        record_(record),
        storage_of_(plan.slot_count, -1),
        is_guest_(plan.slot_count, false),
        is_read_(plan.slot_count, false),
        stays_(region.is_fetched) {
    for (const Slot slot : region.live_out) stays_[static_cast<size_t>(slot)] = true;
    result_->slab_bytes.resize(plan.locations.size());
    result_->bindings.resize(plan.slot_count);
    result_->is_bound.assign(plan.steps.size(), false);
  }

  std::shared_ptr<const MemoryPlan> Build() {
    for (const Slot slot : region_.feeds) NewStorage(slot, Place::kFeed, -1);
    for (const Slot slot : region_.live_in) NewStorage(slot, Place::kFeed, -1);
    for (const auto& [slot, value] : plan_.constants) {
      if (StorageOf(slot) < 0) NewStorage(slot, Place::kConstant, -1);
    }
    for (const uint32_t step : region_.steps) PlaceStep(step);
    KeepFixedValues();
    ClaimOutputs();
    for (size_t i = 0; i < plan_.locations.size(); ++i) {
      if (!AssignOffsets(i)) return nullptr;
    }
    PlaceParts();
    for (size_t slot = 0; slot < plan_.slot_count; ++slot) Bind(static_cast<Slot>(slot));
    std::stable_sort(result_->moving.begin(), result_->moving.end(),
                     [&](Slot a, Slot b) { return RootOf(a) < RootOf(b); });
    FindUses();
    return result_;
  }

 private:
  Storage& StorageAt(Slot slot) { return storages_[static_cast<size_t>(StorageOf(slot))]; }
  int32_t& StorageOf(Slot slot) { return storage_of_[static_cast<size_t>(slot)]; }
  const SlotRecord& Record(Slot slot) const { return record_.slots[static_cast<size_t>(slot)]; }

  void NewStorage(Slot slot, Place place, int32_t step) {
    Storage storage;
    storage.place = place;
    storage.root = slot;
    storage.location = plan_.location_of[static_cast<size_t>(slot)];
    storage.bytes = BytesOf(slot);
    storage.first = step;
    storage.last = LastUse(slot);
    StorageOf(slot) = static_cast<int32_t>(storages_.size());
    storages_.push_back(storage);
  }

  size_t BytesOf(Slot slot) const {
    const SlotRecord& record = Record(slot);
    return DataTypeBytes(record.type, record.shape.NumElements()).value_or(0);
  }

  void Share(Slot slot, Slot with) {
    StorageOf(slot) = StorageOf(with);
    Storage& storage = StorageAt(slot);
    storage.last = std::max(storage.last, LastUse(slot));
  }

  // Lets a value share the storage of `host` if its step decides in the run whether it lies there.
  void Shelter(Slot guest, Slot host) {
    if (host == kNoSlot || StorageOf(host) < 0) return;
    is_guest_[static_cast<size_t>(guest)] = true;
    Share(guest, host);
  }

  bool IsBound(Slot slot) { return StorageOf(slot) >= 0 && !is_guest_[static_cast<size_t>(slot)]; }

  bool Stays(Slot slot) const { return stays_[static_cast<size_t>(slot)]; }

  // Fetched values, and values that later regions read, are used after the last step.
  int32_t LastUse(Slot slot) const {
    return Stays(slot) ? static_cast<int32_t>(plan_.steps.size())
                       : plan_.last_use[static_cast<size_t>(slot)];
  }

  // Strings and other values that own memory are not in the slab.
  bool CanBeBound(Slot slot) const {
    const SlotRecord& record = Record(slot);
    return record.shape_is_fixed && record.type != DataType::kString;
  }

  void PlaceStep(uint32_t index) {
    const Step& step = plan_.steps[index];
    const std::span<const Slot> outputs = plan_.OutputsOf(step);
    const auto each = [&](auto condition) {
      return std::all_of(outputs.begin(), outputs.end(),
                         [&](Slot slot) { return slot == kNoSlot || condition(slot); });
    };
    if (each([&](Slot slot) { return Record(slot).data_is_fixed; })) {
      for (const Slot slot : outputs) {
        if (slot != kNoSlot) NewStorage(slot, Place::kConstant, static_cast<int32_t>(index));
      }
      return;
    }
    result_->steps.push_back(index);
    NoteReads(step);
    const bool can_be_bound = !step.traits.allocates_outputs && step.subgraphs.empty() &&
                              each([&](Slot slot) { return CanBeBound(slot); }) &&
                              ViewSourceIsBound(step);
    if (!can_be_bound) {
      ShelterOutputs(index);
      return;
    }
    result_->is_bound[index] = true;
    if (step.traits.is_view) result_->steps.pop_back();
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (outputs[i] == kNoSlot) continue;
      const Slot shared = i == 0 ? SharedInput(index) : kNoSlot;
      if (shared != kNoSlot) {
        Share(outputs[i], shared);
      } else {
        NewStorage(outputs[i], Place::kSlab, static_cast<int32_t>(index));
      }
    }
    if (step.traits.joins_inputs) TakeInParts(index);
  }

  void NoteReads(const Step& step) {
    const auto note = [&](Slot slot) {
      if (slot != kNoSlot) is_read_[static_cast<size_t>(slot)] = true;
    };
    for (const Slot slot : plan_.InputsOf(step)) note(slot);
    for (const auto& captured : step.captures)
      std::for_each(captured.begin(), captured.end(), note);
  }

  // Most of the values with fixed elements are only needed on the way to others.
  void KeepFixedValues() {
    for (size_t i = 0; i < plan_.slot_count; ++i) {
      const auto slot = static_cast<Slot>(i);
      if (!is_read_[i] && !Stays(slot)) continue;
      if (StorageOf(slot) < 0 || StorageAt(slot).place != Place::kConstant) continue;
      if (plan_.IsConstant(slot)) continue;
      result_->fixed_values.emplace_back(slot, Record(slot).value);
      result_->fixed_bytes += BytesOf(slot);
    }
  }

  // Makes the inputs of a concatenation parts of the output's storage, if they lie one behind
  // another there and nothing reads them later.
  void TakeInParts(uint32_t index) {
    const std::span<const Slot> inputs = plan_.InputsOf(plan_.steps[index]);
    const Slot output = plan_.OutputsOf(plan_.steps[index])[0];
    Storage& whole = StorageAt(output);
    if (whole.place != Place::kSlab) return;
    size_t offset = 0;
    for (const Slot input : inputs) {
      if (input == kNoSlot || !IsWholeRange(input, output)) return;
      Storage* const part = IsBound(input) ? &StorageAt(input) : nullptr;
      const bool fits = part != nullptr && part->whole < 0 && part->location == whole.location &&
                        part->bytes == BytesOf(input) && MayTakeOver(input, index) &&
                        offset % plan_.locations[whole.location].SlabAlignment() == 0;
      if (fits) {
        part->whole = StorageOf(output);
        part->offset = offset;
        whole.first = std::min(whole.first, part->first);
      }
      offset += BytesOf(input);
    }
  }

  // Whether the elements of a concatenation's input are neighbours in the output: the axis is the
  // first on which the shapes differ.
  bool IsWholeRange(Slot input, Slot output) const {
    const Shape &part = Record(input).shape, &whole = Record(output).shape;
    size_t axis = 0;
    while (axis < whole.rank() && part[axis] == whole[axis]) ++axis;
    return axis == whole.rank() || whole.Product(0, axis) == 1;
  }

  // A whole is made after its parts.
  void PlaceParts() {
    for (size_t i = storages_.size(); i-- > 0;) {
      Storage& part = storages_[i];
      if (part.whole < 0) continue;
      const Storage& whole = storages_[static_cast<size_t>(part.whole)];
      part.place = whole.place;
      part.root = whole.root;
      part.offset += whole.offset;
    }
  }

  // A view of a constant that is not one itself waits for another input: it is made in the run.
  bool ViewSourceIsBound(const Step& step) {
    if (!step.traits.is_view) return true;
    const Slot source = plan_.InputsOf(step)[0];
    return IsBound(source) && StorageAt(source).place != Place::kConstant;
  }

  // Lets outputs that a step finds in the run share an input's storage: views of the input, and
  // outputs that may be written over it.
  void ShelterOutputs(uint32_t index) {
    const Step& step = plan_.steps[index];
    const std::span<const Slot> inputs = plan_.InputsOf(step);
    const std::span<const Slot> outputs = plan_.OutputsOf(step);
    if (step.traits.is_view && outputs[0] != kNoSlot) Shelter(outputs[0], inputs[0]);
    if (!step.traits.allocates_outputs) return;
    for (const InPlace& way : plan_.InPlaceOf(step)) {
      const Slot input = inputs[way.input], output = outputs[way.output];
      // A fetched value would have to be copied at the end.
      if (Stays(output) || !MayTakeOver(input, index)) continue;
      Shelter(output, input);
      result_->overwritten.emplace_back(output, input);
    }
  }

  // The input whose memory output 0 takes over, or kNoSlot.
  Slot SharedInput(uint32_t index) {
    const Step& step = plan_.steps[index];
    const std::span<const Slot> inputs = plan_.InputsOf(step);
    if (step.traits.is_view) return inputs[0];
    for (const InPlace& way : plan_.InPlaceOf(step)) {
      const Slot slot = inputs[way.input];
      if (CanOverwrite(slot, plan_.OutputsOf(step)[0], index)) return slot;
    }
    return kNoSlot;
  }

  bool CanOverwrite(Slot input, Slot output, uint32_t index) {
    return IsBound(input) && MayTakeOver(input, index) &&
           StorageAt(input).bytes == BytesOf(output) && StorageAt(input).bytes == BytesOf(input);
  }

  // Whether the step may write over the storage of `input`: this is the last step that uses the
  // storage, and it reads it once. Views of the input count as uses.
  bool MayTakeOver(Slot input, uint32_t index) {
    if (StorageOf(input) < 0) return false;
    const Storage& storage = StorageAt(input);
    return storage.place == Place::kSlab && storage.last == static_cast<int32_t>(index) &&
           Reads(index, input) == 1;
  }

  // How many inputs of the step lie in the storage of `slot`.
  int Reads(uint32_t index, Slot slot) {
    int reads = 0;
    for (const Slot input : plan_.InputsOf(plan_.steps[index])) {
      reads += input != kNoSlot && StorageOf(input) == StorageOf(slot);
    }
    return reads;
  }

  // A storage that holds a fetched value becomes that value's memory. If it holds two, the first
  // one claims it, and the other is copied at the end.
  void ClaimOutputs() {
    for (const Slot slot : region_.fetches) {
      if (!IsBound(slot)) continue;
      Storage& storage = StorageAt(slot);
      if (storage.place != Place::kSlab || storage.bytes != BytesOf(slot)) continue;
      storage.place = Place::kOutput;
      storage.root = slot;
    }
  }

  // Places the largest first, each at the lowest offset that is free during its life. Returns false
  // if that is too much memory.
  bool AssignOffsets(size_t location) {
    const size_t alignment = plan_.locations[location].SlabAlignment();
    std::vector<size_t> order;
    for (size_t i = 0; i < storages_.size(); ++i) {
      const Storage& storage = storages_[i];
      if (storage.place != Place::kSlab || storage.location != location) continue;
      if (storage.whole < 0) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return storages_[a].bytes > storages_[b].bytes; });
    // All that the search reads lies together: there may be many thousands of storages.
    struct Placed {
      size_t offset, end;
      int32_t first, last;  // steps
    };
    std::vector<Placed> placed;  // by offset
    for (const size_t index : order) {
      Storage& storage = storages_[index];
      const size_t bytes = RoundUp(storage.bytes, alignment);
      size_t offset = 0;
      for (const Placed& other : placed) {
        if (other.last < storage.first || storage.last < other.first) continue;
        if (offset + bytes <= other.offset) break;
        offset = std::max(offset, other.end);
      }
      if (offset > kMostPlannedBytes - std::min(bytes, kMostPlannedBytes)) return false;
      storage.offset = offset;
      size_t& slab_bytes = result_->slab_bytes[location];
      slab_bytes = std::max(slab_bytes, offset + bytes);
      const auto above =
          std::upper_bound(placed.begin(), placed.end(), offset,
                           [](size_t value, const Placed& one) { return value < one.offset; });
      placed.insert(above, {offset, offset + bytes, storage.first, storage.last});
    }
    return true;
  }

  void Bind(Slot slot) {
    if (!IsBound(slot)) return;
    const Storage& storage = StorageAt(slot);
    const SlotRecord& record = Record(slot);
    result_->bindings[static_cast<size_t>(slot)] = {storage.place, record.type, record.shape,
                                                    storage.offset, storage.root};
    const bool moves = storage.place == Place::kFeed || storage.place == Place::kOutput;
    if (moves && slot != storage.root) result_->moving.push_back(slot);
  }

  Slot RootOf(Slot slot) const { return result_->bindings[static_cast<size_t>(slot)].root; }

  void FindUses() {
    const auto is_streamed = [](const Step& step) { return step.stream >= 0; };
    if (std::any_of(plan_.steps.begin(), plan_.steps.end(), is_streamed)) return;
    const auto end = static_cast<int32_t>(plan_.steps.size());
    for (const Storage& storage : storages_) {
      if (storage.whole >= 0) continue;
      if (storage.place == Place::kOutput) {
        result_->first_uses.emplace_back(storage.first, storage.root);
      } else if (storage.place == Place::kFeed && storage.last < end &&
                 !plan_.IsConstant(storage.root)) {
        result_->last_uses.emplace_back(storage.last, storage.root);
      }
    }
    std::sort(result_->first_uses.begin(), result_->first_uses.end());
    std::sort(result_->last_uses.begin(), result_->last_uses.end());
  }

  const Plan& plan_;
  const Region& region_;
  const RunRecord& record_;
  std::shared_ptr<MemoryPlan> result_ = std::make_shared<MemoryPlan>();
  std::vector<Storage> storages_;
  std::vector<int32_t> storage_of_;  // by slot; -1: none
  std::vector<bool> is_guest_;       // by slot: bound by its step, not by the plan
  std::vector<bool> is_read_;        // by slot: by a step that runs
  std::vector<bool> stays_;          // by slot: fetched, or read by a later region
};

}  // namespace

void SlotRecord::Set(const Value& known, bool has_fixed_data) {
  shape_is_fixed = known.is_tensor();
  data_is_fixed = has_fixed_data;
  if (!known.is_tensor()) return;
  type = known.tensor().type();
  shape = known.tensor().shape();
}

std::span<const Slot> MemoryPlan::MovingWith(Slot root) const {
  const auto root_of = [&](Slot slot) { return bindings[static_cast<size_t>(slot)].root; };
  const auto begin = std::partition_point(moving.begin(), moving.end(),
                                          [&](Slot slot) { return root_of(slot) < root; });
  const auto end =
      std::find_if(begin, moving.end(), [&](Slot slot) { return root_of(slot) != root; });
  return {begin, end};
}

std::shared_ptr<const MemoryPlan> PlanMemory(const Plan& plan, const Region& region,
                                             const RunRecord& record) {
  return MemoryPlanner(plan, region, record).Build();
}

}  // namespace tenon
