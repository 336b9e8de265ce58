#include "runtime/region.h"

#include <algorithm>
#include <utility>

namespace tenon {
namespace {

// Where one slot of a plan is made and used.
struct SlotLife {
  int32_t made_by = -1;  // step
  bool is_constant = false;
  bool is_input = false;
  bool is_output = false;
  bool is_fed = false;
};

std::vector<SlotLife> LivesOf(const Plan& plan, std::span<const Slot> feeds) {
  std::vector<SlotLife> lives(plan.slot_count);
  const auto at = [&](Slot slot) -> SlotLife& { return lives[static_cast<size_t>(slot)]; };
  for (const auto& [slot, value] : plan.constants) at(slot).is_constant = true;
  for (const Slot slot : plan.inputs) at(slot).is_input = true;
  for (const PlanOutput& output : plan.outputs) at(output.slot).is_output = true;
  for (const Slot slot : feeds) at(slot).is_fed = true;
  for (size_t i = 0; i < plan.steps.size(); ++i) {
    for (const Slot slot : plan.OutputsOf(plan.steps[i])) {
      if (slot != kNoSlot) at(slot).made_by = static_cast<int32_t>(i);
    }
  }
  return lives;
}

void SetFetches(Region& region, const Plan& plan, std::vector<Slot> fetches) {
  region.fetches = std::move(fetches);
  region.is_fetched.assign(plan.slot_count, false);
  for (const Slot slot : region.fetches) region.is_fetched[static_cast<size_t>(slot)] = true;
}

Status CheckSlots(const Plan& plan, std::span<const Slot> slots) {
  for (const Slot slot : slots) {
    if (slot < 0 || static_cast<size_t>(slot) >= plan.slot_count) {
      return InvalidArgument("value {} is not one of the {} values of the plan", slot,
                             plan.slot_count);
    }
  }
  return OkStatus();
}

class Resolver {
 public:
  Resolver(const Plan& plan, Region& region)
      : plan_(plan), region_(region), lives_(LivesOf(plan, region.feeds)) {}

  void Resolve() {
    for (uint32_t i = region_.begin; i < region_.end; ++i) {
      if (plan_.steps[i].traits.yields) continue;
      (IsGiven(plan_.steps[i]) ? region_.given : region_.steps).push_back(i);
    }
    FindNeeded();
    int32_t first = begin();
    while (first < end() && plan_.steps[static_cast<size_t>(first)].traits.yields) ++first;
    for (size_t i = 0; i < plan_.slot_count; ++i) {
      const SlotLife& life = lives_[i];
      if (life.is_constant && !life.is_input) continue;
      const auto slot = static_cast<Slot>(i);
      const bool is_before = life.is_input || (life.made_by >= 0 && life.made_by < begin());
      if (is_before && !life.is_fed && IsUsedFrom(slot, begin())) {
        (IsUsedFrom(slot, first) ? region_.live_in : region_.taken).push_back(slot);
      }
      const bool is_there =
          life.is_input || life.is_fed || (life.made_by >= 0 && life.made_by < end());
      if (is_there && IsUsedFrom(slot, end())) region_.live_out.push_back(slot);
    }
  }

 private:
  int32_t begin() const { return static_cast<int32_t>(region_.begin); }
  int32_t end() const { return static_cast<int32_t>(region_.end); }
  const SlotLife& At(Slot slot) const { return lives_[static_cast<size_t>(slot)]; }

  bool IsGiven(const Step& step) const {
    bool has_output = false;
    for (const Slot slot : plan_.OutputsOf(step)) {
      if (slot == kNoSlot) continue;
      if (!At(slot).is_fed) return false;
      has_output = true;
    }
    return has_output;
  }

  // A graph output may be fetched at any time after its step.
  bool IsUsedFrom(Slot slot, int32_t step) const {
    return plan_.last_use[static_cast<size_t>(slot)] >= step || At(slot).is_output;
  }

  void FindNeeded() {
    std::vector<bool> is_there(plan_.slot_count, false);
    const auto need = [&](Slot slot) {
      if (slot == kNoSlot || is_there[static_cast<size_t>(slot)]) return;
      is_there[static_cast<size_t>(slot)] = true;
      if (!At(slot).is_constant) region_.needed.push_back(slot);
    };
    for (const uint32_t i : region_.steps) {
      const Step& step = plan_.steps[i];
      for (const Slot slot : plan_.InputsOf(step)) need(slot);
      for (const auto& captures : step.captures) {
        for (const Slot slot : captures) need(slot);
      }
      for (const Slot slot : plan_.OutputsOf(step)) {
        if (slot != kNoSlot) is_there[static_cast<size_t>(slot)] = true;
      }
    }
  }

  const Plan& plan_;
  Region& region_;
  const std::vector<SlotLife> lives_;
};

}  // namespace

Region WholePlan(const Plan& plan) {
  Region region;
  region.end = static_cast<uint32_t>(plan.steps.size());
  region.is_whole = true;
  for (uint32_t i = 0; i < region.end; ++i) {
    const Step& step = plan.steps[i];
    if (!step.traits.yields) {
      region.steps.push_back(i);
      continue;
    }
    for (const Slot supplied : plan.OutputsOf(step)) {
      if (supplied != kNoSlot) region.needed.push_back(supplied);
    }
  }
  region.feeds = plan.inputs;
  std::vector<Slot> outputs;
  for (const PlanOutput& output : plan.outputs) outputs.push_back(output.slot);
  SetFetches(region, plan, std::move(outputs));
  return region;
}

Result<Region> ResolveRegion(const Plan& plan, uint32_t begin, uint32_t end,
                             std::span<const Slot> feeds, std::span<const Slot> fetches) {
  if (begin > end || end > plan.steps.size()) {
    return InvalidArgument("expected a range of steps within [0, {}), got [{}, {})",
                           plan.steps.size(), begin, end);
  }
  TENON_RETURN_IF_ERROR(CheckSlots(plan, feeds));
  TENON_RETURN_IF_ERROR(CheckSlots(plan, fetches));
  Region region;
  region.begin = begin;
  region.end = end;
  region.feeds.assign(feeds.begin(), feeds.end());
  SetFetches(region, plan, {fetches.begin(), fetches.end()});
  Resolver(plan, region).Resolve();
  return region;
}

}  // namespace tenon
