#include "runtime/in_place.h"

#include <algorithm>

#include "runtime/kernel.h"

namespace tenon {
namespace {

// Slots that stay in use to the end: constants, and outputs, which a later part may fetch.
std::vector<bool> KeptSlots(const Plan& plan) {
  std::vector<bool> kept = plan.is_constant;
  for (const PlanOutput& output : plan.outputs) kept[static_cast<size_t>(output.slot)] = true;
  return kept;
}

// Finds the inputs that a step reads once and no later step reads.
void FindLastReads(Plan& plan) {
  const std::vector<bool> kept = KeptSlots(plan);
  std::vector<uint32_t> reads(plan.slot_count, 0);  // by the current step
  plan.is_last_read.assign(plan.slots.size(), false);
  for (size_t index = 0; index < plan.steps.size(); ++index) {
    const Step& step = plan.steps[index];
    const std::span<const Slot> inputs = plan.InputsOf(step);
    const auto for_each_read = [&](auto body) {
      const auto use = [&](Slot slot) {
        if (slot != kNoSlot) body(static_cast<size_t>(slot));
      };
      std::for_each(inputs.begin(), inputs.end(), use);
      for (const auto& captured : step.captures) {
        std::for_each(captured.begin(), captured.end(), use);
      }
    };
    for_each_read([&](size_t slot) { ++reads[slot]; });
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto slot = static_cast<size_t>(inputs[i]);
      plan.is_last_read[step.inputs_begin + i] = inputs[i] != kNoSlot && !kept[slot] &&
                                                 reads[slot] == 1 &&
                                                 plan.last_use[slot] == static_cast<int32_t>(index);
    }
    for_each_read([&](size_t slot) { reads[slot] = 0; });
  }
}

// Adds a way to work in place that the kernel offers, if the plan allows it; input -1: none.
void AddWay(Plan& plan, const Step& step, size_t output, int input) {
  const std::span<const Slot> inputs = plan.InputsOf(step);
  if (input < 0 || static_cast<size_t>(input) >= inputs.size()) return;
  const Slot from = inputs[static_cast<size_t>(input)], into = plan.OutputsOf(step)[output];
  if (from == kNoSlot || into == kNoSlot) return;
  if (!plan.IsLastRead(step, static_cast<size_t>(input))) return;
  if (&plan.LocationOf(from) != &plan.LocationOf(into)) return;
  plan.in_place.push_back({static_cast<uint32_t>(output), static_cast<uint32_t>(input)});
}

void AddWaysOf(Plan& plan, const Step& step) {
  const size_t outputs = plan.OutputsOf(step).size();
  if (step.traits.is_view || outputs == 0) return;
  if (!step.traits.allocates_outputs) {
    AddWay(plan, step, 0, step.traits.in_place_input);
    AddWay(plan, step, 0, step.traits.in_place_also);
    return;
  }
  // Steps on other streams could still use the memory and know nothing of the new writer.
  if (!step.waits.empty()) return;
  for (size_t i = 0; i < outputs; ++i) AddWay(plan, step, i, step.kernel->InputToOverwrite(i));
}

}  // namespace

void FindInPlace(Plan& plan) {
  FindLastReads(plan);
  for (Step& step : plan.steps) {
    step.in_place_begin = static_cast<uint32_t>(plan.in_place.size());
    AddWaysOf(plan, step);
    step.in_place_end = static_cast<uint32_t>(plan.in_place.size());
  }
}

bool FitsInto(const Tensor& input, DataType type, const Shape& shape) {
  return input.type() != DataType::kString && type != DataType::kString &&
         DataTypeBytes(type, shape.NumElements()) == input.bytes();
}

}  // namespace tenon
